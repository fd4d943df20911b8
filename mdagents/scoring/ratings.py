"""Figures of clinicians' ratings: means with intervals, and agreement between raters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from mdagents.records.ratings import ASKED, Rating
from mdagents.scoring.formatting import Table, number

_KINDS = {"answer": "answers", "summary": "summaries"}


@dataclass(frozen=True, slots=True)
class RatingFigures:
    """Figures of one question to the raters, about answers or about summaries."""

    kind: str
    """`answer` or `summary`."""
    question: str
    """Field of the rating, such as `faithful`."""
    ratings: int
    raters: int
    items: int
    mean: float
    """Mean of all ratings, 1 to 5."""
    low: float | None
    """Lower end of the 95% interval, from the bootstrap over items; None below 10 items or where
    all have the same mean."""
    high: float | None
    alpha: float | None
    """Krippendorff's alpha of ordinal data; None if no item has two ratings, or all are equal."""


def rating_figures(ratings: Sequence[Rating]) -> list[RatingFigures]:
    """Return the figures of each question about answers and about summaries."""
    if not ratings:
        return []
    from mdagents_llm.bootstrap import (  # loads numpy: only when needed
        FEWEST_GROUPS,
        clustered_bootstrap,
    )

    found = []
    for kind in _KINDS:
        of_kind = [one for one in ratings if one.item.partition("-")[0] == kind]
        for name in ASKED if of_kind else ():
            by_item: dict[tuple[str, str], list[int]] = {}
            for one in of_kind:
                by_item.setdefault((one.case_id, one.item), []).append(getattr(one, name))
            units = list(by_item.values())
            low, high = None, None
            means = {sum(unit) / len(unit) for unit in units}
            if len(units) >= FEWEST_GROUPS and len(means) > 1:
                interval = clustered_bootstrap([sum(u) for u in units], [len(u) for u in units])
                low, high = interval or (None, None)
            found.append(
                RatingFigures(
                    kind=kind,
                    question=name,
                    ratings=len(of_kind),
                    raters=len({one.rater for one in of_kind}),
                    items=len(units),
                    mean=sum(map(sum, units)) / len(of_kind),
                    low=low,
                    high=high,
                    alpha=ordinal_alpha(units),
                )
            )
    return found


def ordinal_alpha(units: Iterable[Sequence[int]]) -> float | None:
    """Return Krippendorff's alpha of ordinal data; None without two values, or without variation.

    Args:
        units: Values that raters gave to each item; missing ones are left out.

    Source: Krippendorff, K. (2011), Computing Krippendorff's alpha-reliability,
    https://repository.upenn.edu/asc_papers/43, section D.
    """
    pairs = Counter[tuple[int, int]]()
    weights: dict[tuple[int, int], float] = {}
    for unit in units:
        for pair in permutations(unit, 2):
            pairs[pair] += 1
            weights[pair] = weights.get(pair, 0.0) + 1 / (len(unit) - 1)
    sizes: dict[int, float] = {}
    for (value, _), weight in weights.items():
        sizes[value] = sizes.get(value, 0.0) + weight
    values, total = sorted(sizes), sum(sizes.values())

    def distance(a: int, b: int) -> float:
        low, high = min(a, b), max(a, b)
        between = sum(sizes[value] for value in values if low <= value <= high)
        return float((between - (sizes[low] + sizes[high]) / 2) ** 2)

    expected = sum(sizes[a] * sizes[b] * distance(a, b) for a in values for b in values)
    if not expected:
        return None
    observed = sum(weight * distance(a, b) for (a, b), weight in weights.items())
    return 1 - (total - 1) * observed / expected


def ratings_tables(figures: Sequence[RatingFigures]) -> list[Table]:
    """Return a table of the figures, for answers and for summaries; empty without ratings."""
    tables = []
    for kind, many in _KINDS.items():
        rows = [
            [
                ASKED[one.question],
                f"{one.mean:.2f}"
                + (f" ({one.low:.2f} – {one.high:.2f})" if one.low is not None else ""),
                number(one.alpha, "z.2f"),
            ]
            for one in figures
            if one.kind == kind
        ]
        if rows:
            of = next(one for one in figures if one.kind == kind)
            title = (
                f"Ratings of {many} by clinicians, 1 to 5: {of.ratings} of {of.items} {many} "
                f"by {of.raters}"
            )
            headings = ["", "mean (95% interval)", "Krippendorff's alpha"]
            tables.append(Table(headings, rows, title=title))
    return tables
