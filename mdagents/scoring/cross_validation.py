"""Cross-validation of policies: they are scored on held-out questions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mdagents.scoring.policies import Family
from mdagents_llm.bootstrap import SEED

FOLDS = 10
SMALLEST_FOR_A_CHOICE = 2 * FOLDS
"""Minimum number of questions for choosing a threshold or a policy: two per fold."""


class CrossValidation:
    """Cross-validation of numbered policies over folds of the questions.

    The best policy has the most right answers, then the fewest tokens, then the lowest number.

    Args:
        families: Families of policies, at least one, in order of preference on ties.
        ids: Ids of the questions, in the families' order.
    """

    def __init__(self, families: Sequence[Family], ids: Sequence[str]) -> None:
        self._families = families
        self._right = np.concatenate([family.right for family in families])
        self._tokens = np.concatenate([family.tokens for family in families])
        self._ends = np.cumsum([len(family.right) for family in families])
        self._fold = _folds(ids)
        # Totals of each policy on all folds but one: [policy, fold].
        is_in_fold = self._fold[:, np.newaxis] == np.arange(FOLDS)
        self._right_elsewhere = self._right @ ~is_in_fold
        self._tokens_elsewhere = self._tokens @ ~is_in_fold

    @property
    def all(self) -> range:
        """Numbers of all policies."""
        return range(len(self._right))

    def of_family(self, place: int) -> range:
        """Return the numbers of the policies of a family."""
        end = int(self._ends[place])
        return range(end - len(self._families[place].right), end)

    def chosen(self, policies: range) -> NDArray[np.int64]:
        """Return, for each fold, the policy that is best on the other folds."""
        of = slice(policies.start, policies.stop)
        right, tokens = self._right_elsewhere[of], self._tokens_elsewhere[of]
        best: NDArray[np.int64] = np.lexsort((tokens, -right), axis=0)[0]
        return best + policies.start

    def best_in_hindsight(self, policies: range) -> int:
        """Return the policy that is best on all questions."""
        of = slice(policies.start, policies.stop)
        right, tokens = self._right[of].sum(axis=1), self._tokens[of].sum(axis=1)
        return int(np.lexsort((tokens, -right))[0]) + policies.start

    def held_out(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the right answers and tokens of each question under the policy of its fold.

        Args:
            chosen: Policy of each fold.
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
    """Return the fold of each question by a hash of its id, independent of question order."""
    hashes = [hashlib.sha256(f"{SEED} {id_}".encode()).digest() for id_ in ids]
    folds = np.empty(len(ids), dtype=np.int64)
    folds[sorted(range(len(ids)), key=hashes.__getitem__)] = np.arange(len(ids)) % FOLDS
    return folds
