"""Position bias: whether answers depend on the place of an option, tested over several epochs.

Importing this module loads numpy, which is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.bootstrap import SEED

SHUFFLES = 2_000

_AT_ONCE = 2_000_000  # answers per shuffled batch
_NOWHERE = -1  # place of a missing answer
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Place:
    """Figures of a presented place of an option; the first place is `A`."""

    n: int
    """Number of answers to questions whose right option was at this place."""
    accuracy: float | None
    """Mean accuracy of these answers over epochs; None for n = 0."""
    answers: float
    """Share of answers that chose the option at this place, averaged over epochs."""
    answers_without_bias: float
    """Expected value of `answers` if all places are equally likely: mean of 1 / options."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Accuracy and answers by place, averaged over the orders of the epochs."""

    places: dict[str, Place]
    accuracy_without_bias: float
    """Expected accuracy at every place without bias: the overall accuracy."""
    accuracy_p: float
    """P-value of the spread of accuracy over places, under no bias."""
    answers_p: float
    """P-value of the spread of answers over places, under no bias."""
    shuffles: int
    seed: int


def position_bias(questions: Sequence[Sequence[ScoredRow]]) -> PositionBias | None:
    """Compute the position bias of the answers to questions.

    The p-values come from a permutation test: answers, with their correctness, are shuffled among
    the epochs of each question, while the option orders stay fixed. Without bias, a shuffle changes
    the spreads only by chance.

    Args:
        questions: Rows of each question's epochs, equally many for each question.

    Returns:
        The position bias; None when an order is unknown, or no question was shown in two orders.

    Source: permutation tests: Fisher, R. A. (1935), The Design of Experiments, section 21.
    """
    known = all(row.options and _has_all_places(row) for rows in questions for row in rows)
    if not known or not any(len({row.by_text for row in rows}) > 1 for rows in questions):
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
    """Answers and option orders of the epochs, as arrays [question, epoch].

    Args:
        questions: Rows of each question's epochs, equally many for each question.
    """

    def __init__(self, questions: Sequence[Sequence[ScoredRow]]) -> None:
        self.epochs = len(questions[0])
        self.right = np.array([[row.correct for row in rows] for rows in questions])
        self._gold = np.array([[LETTERS.index(row.label) for row in rows] for rows in questions])
        # Place of one epoch's answer in another epoch's order: [question, order, answer].
        self._place = np.array(
            [[[_place(given, shown) for given in rows] for shown in rows] for rows in questions]
        )
        sizes = np.array([[row.options for row in rows] for rows in questions])
        is_answered = self._given() != _NOWHERE
        every = range(int(sizes.max()))
        self._is_gold = [self._gold == place for place in every]
        self._chance = [np.where((place < sizes) & is_answered, 1 / sizes, 0) for place in every]

    def _given(self) -> NDArray[np.int64]:
        return np.diagonal(self._place, axis1=1, axis2=2)

    def spreads(self, answer: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the spread of accuracy and of answers over the places, for each shuffle.

        Args:
            answer: [shuffle, question, epoch]: epoch from which the answer is taken.
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
        answered = np.maximum((given != _NOWHERE).sum(axis=0), 1)  # answers per epoch
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


def _has_all_places(row: ScoredRow) -> bool:
    """Return whether the options have the first letters, without a gap."""
    return "".join(sorted(row.by_text)) == LETTERS[: row.options]


def _place(given: ScoredRow, shown: ScoredRow) -> int:
    letter = given.shown_in(shown)
    return LETTERS.index(letter) if letter else _NOWHERE
