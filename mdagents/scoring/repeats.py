"""Figures over several epochs: the reliability of answers and the accuracy of a majority vote."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import stdev
from typing import TYPE_CHECKING

from mdagents.scoring.group import by_question, correct_answers, right_by_question
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import pass_at, pass_hat
from mdagents.settings import RoutedBy
from mdagents_llm.proportions import wilson

if TYPE_CHECKING:
    from mdagents.scoring.positions import PositionBias


@dataclass(frozen=True, slots=True)
class EpochAccuracy:
    """Accuracy of one epoch."""

    n: int
    correct: int
    accuracy: float
    accuracy_low: float
    """Lower end of Wilson's 95% interval."""
    accuracy_high: float


@dataclass(frozen=True, slots=True)
class Repeats:
    """Figures over the questions that have an answer or an error in all epochs."""

    epochs: int
    questions: int
    pass_at: dict[int, float | None]
    """k -> probability that at least one of k answers is right, for k = 1 to `epochs`."""
    pass_hat: dict[int, float | None]
    """k -> probability that k answers in a row are all right, for k = 1 to `epochs`."""
    majority: float
    """Accuracy of a majority vote of the epochs. Ties are broken by a fair draw: a right letter
    tied with one other counts half."""
    by_epoch: dict[int, EpochAccuracy]
    """Epoch, from 1 -> its accuracy on these questions."""
    between_epochs: float
    """Standard deviation of accuracy between epochs (n - 1)."""
    position_bias: PositionBias | None
    """Position bias; None when all epochs showed the options in one order, or it is unknown."""


def repeats(rows: Sequence[ScoredRow]) -> Repeats | None:
    """Compute the repeat figures of scored rows; None without a question that has all epochs."""
    epochs = len({row.epoch for row in rows})
    if epochs < 2 or max(right_by_question(rows)[1]) < epochs:
        return None
    from mdagents.scoring.positions import position_bias  # loads numpy: only when needed

    # By id, because a permutation test depends on the order of the questions.
    questions = sorted(by_question(rows), key=lambda answers: answers[0].question_id)
    complete = [answers for answers in questions if len(answers) == epochs]
    right = [correct_answers(answers) for answers in complete]
    trials = [epochs] * len(complete)
    ks = range(1, epochs + 1)
    of_epoch = defaultdict[int, list[ScoredRow]](list)
    for row in chain.from_iterable(complete):
        of_epoch[row.epoch].append(row)
    by_epoch = {epoch: _accuracy(of_epoch[epoch]) for epoch in sorted(of_epoch)}
    return Repeats(
        epochs=epochs,
        questions=len(complete),
        pass_at={k: pass_at(right, trials, k) for k in ks},
        pass_hat={k: pass_hat(right, trials, k) for k in ks},
        majority=sum(_vote(answers) for answers in complete) / len(complete),
        by_epoch=by_epoch,
        between_epochs=stdev(epoch.accuracy for epoch in by_epoch.values()),
        position_bias=position_bias(complete),
    )


def _accuracy(rows: Sequence[ScoredRow]) -> EpochAccuracy:
    n, correct = len(rows), correct_answers(rows)
    low, high = wilson(correct, n) or (0.0, 1.0)
    return EpochAccuracy(n, correct, correct / n, low, high)


def routing_stability(rows: Sequence[ScoredRow]) -> float | None:
    """Return the share of questions that were routed to the same level in all their epochs.

    Only questions routed in at least two epochs count; None without any. Forced levels do not count
    as routed.
    """
    routed = [row for row in rows if row.difficulty and row.routed_by != RoutedBy.FORCED]
    if max(right_by_question(routed)[1], default=0) < 2:
        return None
    levels = [
        {row.difficulty for row in answers} for answers in by_question(routed) if len(answers) >= 2
    ]
    return sum(len(chosen) == 1 for chosen in levels) / len(levels) if levels else None


def _vote(answers: Sequence[ScoredRow]) -> float:
    """Return the probability that a majority vote of the epochs is right."""
    votes = Counter(row.choice for row in answers if row.choice)
    most = max(votes.values(), default=0)
    leaders = [answer for answer, count in votes.items() if count == most]
    return 1 / len(leaders) if "right" in leaders else 0.0
