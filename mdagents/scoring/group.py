"""Figures of a group of questions: accuracy with its uncertainty, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status
from mdagents_llm.proportions import accuracy_interval


@dataclass(frozen=True, slots=True)
class Proportion:
    """A number of answers and the share of them that is right."""

    n: int
    correct: int
    accuracy: float | None
    """Share of right answers; None for n = 0."""

    @classmethod
    def of(cls, rows: Sequence[ScoredRow]) -> Proportion:
        """Return the proportion of `rows` that is right."""
        correct = correct_answers(rows)
        return cls(len(rows), correct, _rate(correct, len(rows)))


@dataclass(frozen=True, slots=True)
class Group:
    """Figures of a group of questions. Skipped questions are counted in `skipped` only."""

    n: int
    """Number of answers: questions times epochs."""
    questions: int
    """Number of distinct questions."""
    skipped: int
    answered: int
    correct: int
    coverage: float | None
    """Share of questions that were answered; None without questions, like every rate here."""
    accuracy: float | None
    """Share of questions that are right; a question without an answer counts as wrong."""
    accuracy_low: float | None
    """Lower end of the 95% interval of `accuracy`, computed by `accuracy_interval`."""
    accuracy_high: float | None
    accuracy_answered: float | None
    """Share of answered questions that are right."""
    chance: float | None
    """Mean of 1 / number of options: the accuracy of guessing."""
    tokens_per_question: float | None
    cost_per_question: float | None
    """Cost in USD; None when a price is unknown."""
    calls_per_question: float | None
    exaid_tokens_per_question: float | None
    """Tokens of EXAID's own calls, not included in `tokens_per_question`."""
    reasoning_tokens_per_question: float | None = None
    """Hidden reasoning tokens, included in `tokens_per_question`; None when unknown."""

    @property
    def right_per_1000_reasoning_tokens(self) -> float | None:
        """Right answers per 1,000 hidden reasoning tokens; None without any."""
        if self.accuracy is None or not self.reasoning_tokens_per_question:
            return None
        return 1000 * self.accuracy / self.reasoning_tokens_per_question


def scored(rows: Sequence[ScoredRow]) -> list[ScoredRow]:
    """Return the rows in the denominator of accuracy: all except the skipped ones."""
    return [row for row in rows if row.status != Status.SKIPPED]


def by_question(rows: Sequence[ScoredRow]) -> list[list[ScoredRow]]:
    """Return the rows of each question, by epoch, in the order of the questions' first appearance.

    A run with several questions in progress writes their epochs in any order.
    """
    questions: dict[str, list[ScoredRow]] = {}
    for row in rows:
        questions.setdefault(row.question_id, []).append(row)
    return [sorted(answers, key=attrgetter("epoch")) for answers in questions.values()]


def right_by_question(rows: Sequence[ScoredRow]) -> tuple[list[int], list[int]]:
    """Return the number of right answers and of all answers for each question.

    Args:
        rows: Rows of one run, which has each question once in an epoch.
    """
    if len({row.epoch for row in rows}) <= 1:
        return [int(row.correct) for row in rows], [1] * len(rows)
    answers = Counter([row.question_id for row in rows])
    right = Counter([row.question_id for row in rows if row.correct])
    return [right[id_] for id_ in answers], list(answers.values())


def correct_answers(rows: Sequence[ScoredRow]) -> int:
    """Return the number of right rows."""
    return sum([row.correct for row in rows])


def make_group(rows: Sequence[ScoredRow]) -> Group:
    """Compute the figures of `rows`."""
    counted = scored(rows)
    n = len(counted)
    answered = sum([row.status == Status.ANSWERED for row in counted])
    correct = correct_answers(counted)
    right, answers = right_by_question(counted)
    low, high = accuracy_interval(right, answers)
    return Group(
        n=n,
        questions=len(answers),
        skipped=len(rows) - n,
        answered=answered,
        correct=correct,
        coverage=_rate(answered, n),
        accuracy=_rate(correct, n),
        accuracy_low=low,
        accuracy_high=high,
        accuracy_answered=_rate(correct, answered),
        chance=chance_of(Counter(row.chance for row in counted)),
        tokens_per_question=_mean(counted, attrgetter("total_tokens")),
        cost_per_question=_mean(counted, attrgetter("cost_usd")),
        calls_per_question=_mean(counted, attrgetter("calls")),
        exaid_tokens_per_question=_mean(counted, attrgetter("exaid_tokens")),
        reasoning_tokens_per_question=_mean(counted, attrgetter("reasoning_tokens")),
    )


def chance_of(chances: Mapping[float | None, int]) -> float | None:
    """Return the expected accuracy of guessing; None if that of a question is unknown.

    Args:
        chances: Expected accuracy at a question (`ScoredRow.chance`) -> number of questions.
    """
    known = [(chance, count) for chance, count in chances.items() if chance is not None]
    if not known or len(known) < len(chances):
        return None
    return sum(chance * count for chance, count in known) / sum(chances.values())


def _mean(rows: Sequence[ScoredRow], value: Callable[[ScoredRow], float | None]) -> float | None:
    """Return the mean over the rows; None without rows or if any value is unknown."""
    known = [v for v in map(value, rows) if v is not None]
    return sum(known) / len(known) if known and len(known) == len(rows) else None


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
