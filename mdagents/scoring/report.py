"""Figures of a run: accuracy with its uncertainty, reasons for missing answers, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from mdagents.records.ratings import read_ratings
from mdagents.scoring.agreement import Agreement, agreement
from mdagents.scoring.breakdown import Breakdown, make_breakdown
from mdagents.scoring.exaid_figures import ExaidFigures, exaid_figures
from mdagents.scoring.group import Group, Proportion, make_group, right_by_question, scored
from mdagents.scoring.ratings import RatingFigures, rating_figures
from mdagents.scoring.repeats import Repeats, repeats, routing_stability
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import (
    Calibration,
    calibration,
    minimum_detectable_difference,
)
from mdagents.settings import Difficulty, Status

T = TypeVar("T")

ALL = "all"
"""Name of the row over all questions."""

NOT_ROUTED = "not routed"
"""Name used for a missing level."""

_SMALLEST_PERMUTATION = 5
_RARER = "rarer"


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run: the content of `summary.json`. Levels are followed by `all`."""

    input: str
    read_as: dict[str, int]
    """Program that wrote the records -> number of records; `mdagents` is this program."""
    notices: list[str]
    overall: Group
    by_difficulty: dict[str, Group]
    status_counts: dict[str, int]
    accuracy_by_gold_letter: dict[str, Group]
    """Presented letter of the right option -> figures; reveals a position bias."""
    accuracy_by_permutation: dict[str, Proportion]
    """Source letters in presented order, such as `CADB` -> figures, most frequent first; orders of
    fewer than five questions are combined as `rarer`. Empty when unknown."""
    predicted_letters: dict[str, int]
    routing: dict[str, int]
    """Level -> number of answers, including skipped questions."""
    routed_by: dict[str, int]
    """`router`, `fallback` or `forced` -> number of answers; empty when unknown."""
    routing_stability: float | None
    """Share of questions that were routed to the same level in all epochs; None for one epoch."""
    repeats: Repeats | None
    """Figures over the epochs; None when every question was answered once."""
    calibration: dict[str, Calibration]
    """Level -> calibration of the stated confidence."""
    agreement: dict[str, Agreement]
    """Level -> agreement between experts."""
    minimum_detectable_difference: dict[str, float | None]
    """Level -> minimum difference in accuracy that a comparison on these questions detects with 80%
    power, against an independent system of about the same accuracy."""
    summaries: dict[str, ExaidFigures]
    """Level -> EXAID's figures; levels that EXAID did not follow are missing."""
    disagreements: int
    """Number of records whose stored letter differs from the one parsed here."""
    breakdowns: list[Breakdown]
    """Accuracy by the properties that `--group-by` names."""
    ratings: list[RatingFigures]
    """Figures of clinicians' ratings of answers and summaries; empty without ratings."""

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON types."""
        return asdict(self)


def make_report(output: RunOutput, group_by: Sequence[str] = ()) -> Report:
    """Compute the figures of a run.

    Args:
        output: The run.
        group_by: Properties of its questions for the error analysis; see `make_breakdown`.

    Raises:
        ConfigError: No question has such a property.
    """
    rows = output.rows
    counted = scored(rows)
    known = [level for level in Difficulty if any(row.difficulty == level for row in rows)]
    foreign = sorted({row.difficulty for row in rows} - set(Difficulty) - {""})
    by_level: dict[str, Sequence[ScoredRow]] = {
        str(level): [row for row in rows if row.difficulty == level] for level in (*known, *foreign)
    }
    groups = {level: make_group(of_level) for level, of_level in by_level.items()}
    overall = make_group(rows)
    by_level[ALL] = rows
    return Report(
        input=output.name,
        read_as=dict(output.read_as),
        notices=output.notices,
        overall=overall,
        by_difficulty=groups,
        status_counts=dict(Counter(row.status for row in rows).most_common()),
        accuracy_by_gold_letter=dict(
            sorted(_grouped(counted, lambda row: row.label, make_group).items())
        ),
        accuracy_by_permutation=_by_permutation(counted),
        predicted_letters=dict(
            sorted(Counter(row.response for row in counted if row.status == "answered").items())
        ),
        routing=dict(Counter(row.difficulty or NOT_ROUTED for row in rows).most_common()),
        routed_by=dict(Counter(row.routed_by for row in rows if row.routed_by).most_common()),
        routing_stability=routing_stability(rows),
        repeats=repeats(counted),
        calibration={level: _calibration(of_level) for level, of_level in by_level.items()},
        agreement={level: agreement(of_level) for level, of_level in by_level.items()},
        minimum_detectable_difference={
            level: _detectable(scored(of_level)) for level, of_level in by_level.items()
        },
        summaries={
            level: figures
            for level, of_level in by_level.items()
            if (figures := exaid_figures([row.summarised for row in scored(of_level)])) is not None
        },
        disagreements=sum(row.disagrees for row in rows),
        breakdowns=[make_breakdown(rows, by) for by in dict.fromkeys(group_by)],
        ratings=rating_figures(read_ratings(output.folder)),
    )


def _grouped(
    rows: Iterable[ScoredRow],
    key: Callable[[ScoredRow], str],
    figures: Callable[[Sequence[ScoredRow]], T],
) -> dict[str, T]:
    groups: dict[str, list[ScoredRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: figures(of_group) for name, of_group in groups.items()}


def _by_permutation(rows: Sequence[ScoredRow]) -> dict[str, Proportion]:
    sizes = Counter(row.order for row in rows if row.order)
    frequent = [order for order, n in sizes.most_common() if n >= _SMALLEST_PERMUTATION]
    figures = _grouped(
        (row for row in rows if row.order),
        lambda row: row.order if sizes[row.order] >= _SMALLEST_PERMUTATION else _RARER,
        Proportion.of,
    )
    return {order: figures[order] for order in (*frequent, _RARER) if order in figures}


def _calibration(rows: Sequence[ScoredRow]) -> Calibration:
    confidences: list[float] = []
    right: list[bool] = []
    for row in rows:
        if row.status == Status.ANSWERED and row.confidence is not None:
            confidences.append(row.confidence)
            right.append(row.correct)
    return calibration(confidences, right)


def _detectable(rows: Sequence[ScoredRow]) -> float | None:
    questions = Counter(zip(*right_by_question(rows), strict=True))
    if not questions:
        return None
    shares = [(right / answers, count) for (right, answers), count in questions.items()]
    n = questions.total()
    mean = sum(share * count for share, count in shares) / n
    variance = sum((share - mean) ** 2 * count for share, count in shares) / n
    # Expected share of discordant questions between two independent systems of this accuracy.
    return minimum_detectable_difference(n, discordance=2 * variance)
