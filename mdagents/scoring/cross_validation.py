"""Chooses policies on other questions than those that they are scored on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mdagents.scoring.policies import Family
from mdagents_llm.bootstrap import SEED

FOLDS = 10
SMALLEST_FOR_A_CHOICE = 2 * FOLDS
"""Questions from which on a threshold or a policy is chosen: each fold scores two."""


class CrossValidation:
    """Policies and the folds of the questions; a policy is told by its number.

    Best is: most right answers, then fewest tokens, then the first one.

    Args:
        families: In the order in which equally good ones are preferred, at least one.
        ids: Of the questions, in the families' order.
    """

    def __init__(self, families: Sequence[Family], ids: Sequence[str]) -> None:
        self._families = families
        self._right = np.concatenate([family.right for family in families])
        self._tokens = np.concatenate([family.tokens for family in families])
        self._ends = np.cumsum([len(family.right) for family in families])
        self._fold = _folds(ids)
        # What each policy reaches on all folds but one: [policy, fold].
        is_in_fold = self._fold[:, np.newaxis] == np.arange(FOLDS)
        self._right_elsewhere = self._right @ ~is_in_fold
        self._tokens_elsewhere = self._tokens @ ~is_in_fold

    @property
    def all(self) -> range:
        """The numbers of all policies."""
        return range(len(self._right))

    def of_family(self, place: int) -> range:
        """Return the numbers of the policies of a family."""
        end = int(self._ends[place])
        return range(end - len(self._families[place].right), end)

    def chosen(self, policies: range) -> NDArray[np.int64]:
        """Return for each fold which of some policies is best on the other folds."""
        of = slice(policies.start, policies.stop)
        right, tokens = self._right_elsewhere[of], self._tokens_elsewhere[of]
        best: NDArray[np.int64] = np.lexsort((tokens, -right), axis=0)[0]
        return best + policies.start

    def best_in_hindsight(self, policies: range) -> int:
        """Return which of some policies is best on all questions."""
        of = slice(policies.start, policies.stop)
        right, tokens = self._right[of].sum(axis=1), self._tokens[of].sum(axis=1)
        return int(np.lexsort((tokens, -right))[0]) + policies.start

    def held_out(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return right answers and tokens of each question, by the policy of its fold.

        Args:
            chosen: The policy of each fold.
        """
        policy, question = chosen[self._fold], np.arange(len(self._fold))
        return self._right[policy, question], self._tokens[policy, question]

    def family_of(self, policy: int) -> Family:
        """Return the family of a policy."""
        return self._families[self._place_of(policy)]

    def name_of(self, policy: int) -> str:
        """Return the name of a policy, with its threshold."""
        first = self.of_family(self._place_of(policy)).start
        return self.family_of(policy).policy_name(policy - first)

    def _place_of(self, policy: int) -> int:
        return int(np.searchsorted(self._ends, policy, side="right"))


def _folds(ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the fold of each question, by a hash of its id: the order of questions is nothing."""
    hashes = [hashlib.sha256(f"{SEED} {id_}".encode()).digest() for id_ in ids]
    folds = np.empty(len(ids), dtype=np.int64)
    folds[sorted(range(len(ids)), key=hashes.__getitem__)] = np.arange(len(ids)) % FOLDS
    return folds
