"""Ranks of runs of the same questions, as ranges that rest on paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

from mdagents.scoring.group import scored
from mdagents.scoring.pairs import shows_difference
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import SIGNIFICANT, holm, mcnemar_exact
from mdagents_llm.proportions import difference_interval


@dataclass(frozen=True, slots=True)
class Scores:
    """Right answers of a run, in an order that runs of the same questions share."""

    items: bytes
    """Digest of the questions and of the number of answers to each."""
    right: tuple[int, ...]
    """Number of right answers to each question."""
    answers: tuple[int, ...]
    """Number of answers to each question."""


def scores_of(rows: Iterable[ScoredRow]) -> Scores:
    """Return the right answers of a run; skipped questions do not count."""
    found: dict[tuple[int, str], list[int]] = {}
    for row in scored(list(rows)):
        counts = found.setdefault(row.compared_by, [0, 0])
        counts[0] += row.correct
        counts[1] += 1
    order = sorted(found)
    answers = tuple(found[content][1] for content in order)
    digest = blake2b(repr((order, answers)).encode(), digest_size=16).digest()
    return Scores(digest, tuple(found[content][0] for content in order), answers)


def rank_ranges(runs: Sequence[Scores]) -> list[tuple[int, int]]:
    """Return the best and the worst rank of each run that the tests do not exclude.

    A run ranks behind those that are significantly better: McNemar's test, Holm-adjusted over all
    pairs, and the interval of the difference, as in a comparison.

    Args:
        runs: Runs of the same questions (equal `items`).
    """
    pairs = list(combinations(range(len(runs)), 2))
    p_values = holm([_p(runs[one], runs[other]) for one, other in pairs])
    better, worse = [0] * len(runs), [0] * len(runs)
    for (one, other), p in zip(pairs, p_values, strict=True):
        if p >= SIGNIFICANT:
            continue
        gains = _gains(runs[one], runs[other])
        net = sum(gain > 0 for gain in gains) - sum(gain < 0 for gain in gains)
        ends = difference_interval(gains, runs[one].answers)
        if not shows_difference(ends, p, net=net, questions=len(gains)):
            continue
        up, down = (other, one) if sum(runs[other].right) > sum(runs[one].right) else (one, other)
        better[down] += 1
        worse[up] += 1
    return [(1 + better[n], len(runs) - worse[n]) for n in range(len(runs))]


def _p(first: Scores, second: Scores) -> float:
    gains = _gains(first, second)
    return mcnemar_exact(
        worse=sum(gain < 0 for gain in gains), better=sum(gain > 0 for gain in gains)
    )


def _gains(first: Scores, second: Scores) -> list[int]:
    """Return the second run's right answers to each question, minus the first's."""
    return [after - before for before, after in zip(first.right, second.right, strict=True)]
