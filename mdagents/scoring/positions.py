"""Whether answers depend on where an option stands, from epochs that present it in several orders.

It loads numpy, which takes time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status

SEED = 42
SHUFFLES = 2_000

_AT_ONCE = 2_000_000  # answers that are shuffled at once
_NOWHERE = -1  # place of an answer that was not given
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Place:
    """A presented place of an option: the first is `A`."""

    n: int
    """Answers to questions whose right option stood here."""
    accuracy: float | None
    """Of these, the mean over epochs; None for n = 0."""
    answers: float
    """Share of the answers that named the option here, the mean over epochs."""
    answers_without_bias: float
    """What that share is when every place of a question is as likely: mean of 1 / options."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Accuracy and answers by place, averaged over the orders of the epochs."""

    places: dict[str, Place]
    accuracy_without_bias: float
    """What the accuracy at every place is when the place is nothing: that of all answers."""
    accuracy_p: float
    """Chance of a spread of accuracy over places like this one or wider, without bias."""
    answers_p: float
    """The same of the answers."""
    shuffles: int
    seed: int


def position_bias(questions: Sequence[Sequence[ScoredRow]]) -> PositionBias | None:
    """Compute the position bias of the answers to questions.

    The p-values are those of a permutation test: which option is answered, and whether it is right,
    is shuffled among the epochs of each question, whose orders stay. Without bias that changes
    nothing but chance.

    Args:
        questions: For each the rows of its epochs, as many for each.

    Returns:
        None where an order is not known, or no question was shown in two.

    Source: permutation tests: Fisher, R. A. (1935), The Design of Experiments, section 21.
    """
    known = all(len(row.order) == row.options > 0 for rows in questions for row in rows)
    if not known or not any(len({row.order for row in rows}) > 1 for rows in questions):
        return None
    shown = _Shown(questions)
    as_given = np.arange(shown.epochs)[np.newaxis, np.newaxis].repeat(len(questions), axis=1)
    accuracy_spread, answers_spread = (float(spread[0]) for spread in shown.spreads(as_given))
    rng = np.random.default_rng(SEED)
    at_once = max(1, _AT_ONCE // as_given.size)
    wider = np.zeros(2, dtype=np.int64)
    for done in range(0, SHUFFLES, at_once):
        size = (min(at_once, SHUFFLES - done), *as_given.shape[1:])
        accuracy, answers = shown.spreads(rng.random(size).argsort(axis=-1))
        wider += [
            (accuracy >= accuracy_spread - _ROUNDING).sum(),
            (answers >= answers_spread - _ROUNDING).sum(),
        ]
    accuracy_p, answers_p = ((wider + 1) / (SHUFFLES + 1)).tolist()
    return PositionBias(
        places=shown.places(),
        accuracy_without_bias=float(shown.right.mean()),
        accuracy_p=accuracy_p,
        answers_p=answers_p,
        shuffles=SHUFFLES,
        seed=SEED,
    )


class _Shown:
    """The answers of epochs and the orders of their options, as arrays [question, epoch].

    Args:
        questions: As for `position_bias`.
    """

    def __init__(self, questions: Sequence[Sequence[ScoredRow]]) -> None:
        self.epochs = len(questions[0])
        self.right = np.array([[row.correct for row in rows] for rows in questions])
        self._gold = np.array(
            [[row.order.find(row.source_label) for row in rows] for rows in questions]
        )
        # Where the answer of one epoch stands in the order of another: [question, order, answer].
        self._place = np.array(
            [
                [[_place(given, shown.order) for given in rows] for shown in rows]
                for rows in questions
            ]
        )
        sizes = np.array([[row.options for row in rows] for rows in questions])
        is_answered = self._given() != _NOWHERE
        every = range(int(sizes.max()))
        self._is_gold = [self._gold == place for place in every]
        self._chance = [np.where((place < sizes) & is_answered, 1 / sizes, 0) for place in every]

    def _given(self) -> NDArray[np.int64]:
        return np.diagonal(self._place, axis1=1, axis2=2)

    def spreads(self, answer: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how far accuracy and answers are from equal over the places, for each shuffle.

        Args:
            answer: [shuffle, question, epoch]: of which epoch the answer is taken.
        """
        question = np.arange(answer.shape[1])[:, np.newaxis]
        right = self.right[question, answer]
        place = self._place[question, np.arange(self.epochs), answer]
        of_accuracy = np.zeros(len(answer))
        of_answers = np.zeros(len(answer))
        for number, (is_gold, chance) in enumerate(zip(self._is_gold, self._chance, strict=True)):
            if n := is_gold.sum():
                accuracy = (right & is_gold).sum(axis=(1, 2)) / n
                of_accuracy += n * (accuracy - self.right.mean()) ** 2
            if expected := chance.sum():
                here = (place == number).sum(axis=(1, 2))
                of_answers += (here - expected) ** 2 / expected
        return of_accuracy, of_answers

    def places(self) -> dict[str, Place]:
        """Return the figures of each place."""
        given = self._given()
        answered = np.maximum((given != _NOWHERE).sum(axis=0), 1)  # of each epoch
        places = {}
        for number, (is_gold, chance) in enumerate(zip(self._is_gold, self._chance, strict=True)):
            of_epoch = is_gold.sum(axis=0)
            has_gold = of_epoch > 0
            right = (self.right & is_gold).sum(axis=0)
            places[LETTERS[number]] = Place(
                n=int(of_epoch.sum()),
                accuracy=float((right[has_gold] / of_epoch[has_gold]).mean())
                if has_gold.any()
                else None,
                answers=float(((given == number).sum(axis=0) / answered).mean()),
                answers_without_bias=float((chance.sum(axis=0) / answered).mean()),
            )
        return places


def _place(given: ScoredRow, order: str) -> int:
    """Return where an answer stands in an order of the options."""
    is_answered = given.status == Status.ANSWERED
    return order.find(given.source_response) if is_answered else _NOWHERE
