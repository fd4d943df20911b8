"""Comparison of two runs on the same questions: difference, uncertainty, price and flips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum

from mdagents.scoring.group import by_question, correct_answers
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import (
    SIGNIFICANT,
    SMALLEST_FOR_RATES,
    mcnemar_exact,
    minimum_detectable_difference,
)
from mdagents_llm.proportions import Interval, difference_interval


@dataclass(frozen=True, slots=True)
class Flip:
    """A question that one of two runs got right more often than the other."""

    question_id: str
    gold: str
    """Letter of the right option. All letters are those of the data set, where the first run states
    them, else those that it presents."""
    first: list[str]
    """Letter of the first run's answer in each epoch, or its status without an answer."""
    second: list[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs; all differences are second minus first."""

    first: int
    """Number of the first run in its block, from 1."""
    second: int
    difference: float
    """Accuracy of the second run minus that of the first, from −1 to 1."""
    difference_low: float
    """Lower end of the 95% interval: Tango's; epochs count by their design effect."""
    difference_high: float
    mcnemar_p: float
    """Two-sided exact p-value. With several epochs, a question counts for the run that got it right
    more often."""
    mcnemar_p_holm: float | None
    """Holm-adjusted `mcnemar_p` over the pairs of all blocks; None for a single pair."""
    minimum_detectable_difference: float | None
    """Difference detectable with 80% power, for this number of questions and this share of
    discordant ones."""
    extra_correct: int
    extra_tokens: int | None
    """Additional tokens of the second run; None when a file does not hold its tokens."""
    extra_cost_usd: float | None
    tokens_per_extra_correct: float | None
    """Tokens per additional right answer; negative when the more accurate run also needs fewer.
    None when both runs are equally accurate or tokens are unknown."""
    cost_per_extra_correct: float | None
    """USD per additional right answer; negative when the more accurate run also costs less. None
    when both runs are equally accurate or a cost is unknown."""
    right_to_wrong: list[Flip]
    wrong_to_right: list[Flip]

    def shows_difference(self, questions: int) -> bool:
        """Return whether the difference is statistically significant on so many questions."""
        ends = (self.difference_low, self.difference_high)
        net = len(self.wrong_to_right) - len(self.right_to_wrong)
        return shows_difference(ends, self.p, net=net, questions=questions)

    @property
    def p(self) -> float:
        """The p-value to report: Holm-adjusted if there are several pairs."""
        return self.mcnemar_p if self.mcnemar_p_holm is None else self.mcnemar_p_holm


def shows_difference(ends: Interval, p: float, *, net: int, questions: int) -> bool:
    """Return whether a difference is statistically significant by interval and test.

    Fewer than `SMALLEST_FOR_RATES` questions show none. With epochs, the interval is about answers
    and the test about questions: where they point in opposite directions, neither is shown.

    Args:
        ends: Ends of the 95% interval of the difference.
        p: Two-sided p-value of McNemar's test, adjusted for the number of tests.
        net: Questions that the test counts for the second system, minus those for the first.
        questions: Number of questions of the comparison.
    """
    if questions < SMALLEST_FOR_RATES or p >= SIGNIFICANT:
        return False
    low, high = ends
    return (low > 0 and net > 0) or (high < 0 and net < 0)


def make_pair(
    numbers: tuple[int, int], first: Sequence[ScoredRow], second: Sequence[ScoredRow]
) -> Pair:
    """Compare two runs, without Holm adjustment.

    Args:
        numbers: Numbers of the two runs.
        first: Rows of the first run, not empty.
        second: Rows of the second run for the same questions, in the same order.
    """
    questions = list(zip(by_question(first), by_question(second), strict=True))
    gains = [correct_answers(after) - correct_answers(before) for before, after in questions]
    flips = [(gain, _flip(*answers)) for gain, answers in zip(gains, questions, strict=True)]
    better = [flip for gain, flip in flips if gain > 0]
    worse = [flip for gain, flip in flips if gain < 0]
    squares = [
        (gain / len(before)) ** 2 for gain, (before, _) in zip(gains, questions, strict=True)
    ]
    extra_correct = sum(gains)
    extra_tokens = _extra(first, second, lambda row: row.total_tokens)
    extra_cost = _extra(first, second, lambda row: row.cost_usd)
    low, high = interval_between(first, second)
    return Pair(
        first=numbers[0],
        second=numbers[1],
        difference=extra_correct / len(first),
        difference_low=low,
        difference_high=high,
        mcnemar_p=mcnemar_exact(worse=len(worse), better=len(better)),
        mcnemar_p_holm=None,
        minimum_detectable_difference=minimum_detectable_difference(
            len(questions), discordance=sum(squares) / len(squares)
        ),
        extra_correct=extra_correct,
        extra_tokens=None if extra_tokens is None else round(extra_tokens),
        extra_cost_usd=extra_cost,
        tokens_per_extra_correct=_ratio(extra_tokens, extra_correct),
        cost_per_extra_correct=_ratio(extra_cost, extra_correct),
        right_to_wrong=worse,
        wrong_to_right=better,
    )


def interval_between(first: Sequence[ScoredRow], second: Sequence[ScoredRow]) -> Interval:
    """Return the 95% interval of the accuracy of `second` minus that of `first`.

    Args:
        first: Rows of the first run, not empty.
        second: Rows of the second run for the same questions, in the same order.
    """
    before, after = by_question(first), by_question(second)
    gains = [correct_answers(b) - correct_answers(a) for a, b in zip(before, after, strict=True)]
    return difference_interval(gains, [len(answers) for answers in before])


def _flip(first: Sequence[ScoredRow], second: Sequence[ScoredRow]) -> Flip:
    shown, *_ = first
    said = [[row.letter_in(shown) or row.status for row in answers] for answers in (first, second)]
    return Flip(shown.question_id, shown.source_label, *said)


def _extra(
    first: Sequence[ScoredRow],
    second: Sequence[ScoredRow],
    value: Callable[[ScoredRow], float | None],
) -> float | None:
    """Return the second run's total minus the first's; None if any value is unknown."""
    amounts = [*map(value, second), *map(value, first)]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts):
        return None
    return fsum(known[: len(second)]) - fsum(known[len(second) :])


def _ratio(extra: float | None, extra_correct: int) -> float | None:
    # Adding zero turns −0.0, the price of a worse run at the same cost, into 0.0.
    return None if extra is None or extra_correct == 0 else extra / extra_correct + 0.0
