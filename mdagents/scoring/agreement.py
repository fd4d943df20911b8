"""Agreement between the experts of a panel and its relation to the decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import fleiss_kappa, pairwise_agreement
from mdagents.settings import Status


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on the answered questions that at least two experts (or teams) judged."""

    n: int
    first: float | None
    """Share of pairs of experts whose first opinions agree."""
    first_kappa: float | None
    """Fleiss' kappa of the first opinions."""
    last: float | None
    """Share of pairs of experts whose last opinions agree; equal to `first` without a debate."""
    last_kappa: float | None
    right_majority: int
    """Number of questions where more than half of the experts held the right option at first."""
    overturned: int
    """Number of `right_majority` questions where the decision was wrong."""
    wrong_majority: int
    rescued: int
    """Number of `wrong_majority` questions where the decision was right."""
    no_majority: int
    no_majority_right: int
    """Number of `no_majority` questions where the decision was right."""


def agreement(rows: Sequence[ScoredRow]) -> Agreement:
    """Compute the agreement on the questions of `rows`."""
    judged = [row for row in rows if row.status == Status.ANSWERED and len(row.first_opinions) >= 2]
    decided = Counter((majority_is_right(row), row.correct) for row in judged)
    first = [row.first_opinions for row in judged]
    last = [row.last_opinions for row in judged]
    return Agreement(
        n=len(judged),
        first=pairwise_agreement(first),
        first_kappa=fleiss_kappa(first),
        last=pairwise_agreement(last),
        last_kappa=fleiss_kappa(last),
        right_majority=decided[True, True] + decided[True, False],
        overturned=decided[True, False],
        wrong_majority=decided[False, True] + decided[False, False],
        rescued=decided[False, True],
        no_majority=decided[None, True] + decided[None, False],
        no_majority_right=decided[None, True],
    )


def majority_is_right(row: ScoredRow) -> bool | None:
    """Return whether the first majority holds a right option; None without a majority."""
    held = row.first_opinions
    letter = max(held, key=held.count)
    return letter in row.right_letters if held.count(letter) * 2 > len(held) else None


def by_first_agreement(rows: Sequence[ScoredRow]) -> dict[str, list[ScoredRow]]:
    """Return the judged questions by the first opinions: all agree, majority, split."""
    groups: dict[str, list[ScoredRow]] = {"all agree": [], "majority": [], "split": []}
    for row in rows:
        held = row.first_opinions
        if row.status != Status.ANSWERED or len(held) < 2:
            continue
        most = max(map(held.count, held))
        name = "all agree" if most == len(held) else "majority" if most * 2 > len(held) else "split"
        groups[name].append(row)
    return {name: of_group for name, of_group in groups.items() if of_group}
