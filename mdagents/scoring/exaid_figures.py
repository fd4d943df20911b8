"""What EXAID made of questions: how much of them it summarised, and what its checks found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.records.summaries import is_counting
from mdagents.scoring.fields import count_of, entries_of, number_of, object_of


@dataclass(frozen=True, slots=True)
class Summarised:
    """What EXAID made of one question."""

    coverage: float | None
    """Share of the agents' text that is in a summary; None when the record does not state it."""
    summaries: int
    """Those that are not empty and were made from text."""
    alerts: int
    """Summaries of text with a critical alert, and texts with one that no summary covers."""
    missed_alerts: int
    """Those of `alerts` that no summary tells, or that theirs may not tell."""
    unsupported_terms: int
    """Numbers, doses and drugs of summaries that no agent named."""
    cut_fields: int
    clipped: int
    """Summaries of a part of a text that was too long."""


@dataclass(frozen=True, slots=True)
class ExaidFigures:
    """Sums over the questions that EXAID followed; see `Summarised`."""

    questions: int
    without_summary: int
    coverage: float | None
    """Mean over the questions."""
    summaries: int
    alerts: int
    missed_alerts: int
    unsupported_terms: int
    cut_fields: int
    clipped: int


def summarised(record: Mapping[str, Any]) -> Summarised | None:
    """Return what EXAID made of a question; None when it was off, or is not done with it."""
    exaid, watched = object_of(record, "exaid"), object_of(record, "watched")
    summaries = entries_of(exaid, "summaries")
    lost = number_of(watched.get("tail_loss"))
    uncovered = count_of(watched.get("missed_alerts")) or 0
    if not (summaries or exaid.get("decisions") or lost or uncovered):
        return None
    alerting = [summary for summary in summaries if summary.get("alerts")]
    return Summarised(
        coverage=None if lost is None else 1 - lost,
        summaries=sum(map(is_counting, summaries)),
        alerts=len(alerting) + uncovered,
        missed_alerts=sum(bool(summary.get("alert_missing")) for summary in alerting) + uncovered,
        unsupported_terms=_listed(summaries, "unsupported_terms"),
        cut_fields=_listed(summaries, "truncated_fields"),
        clipped=sum(bool(summary.get("clipped")) for summary in summaries),
    )


def exaid_figures(questions: Iterable[Summarised | None]) -> ExaidFigures | None:
    """Return the sums over questions; None when EXAID followed none of them."""
    made = [each for each in questions if each is not None]
    if not made:
        return None
    covered = [each.coverage for each in made if each.coverage is not None]
    return ExaidFigures(
        questions=len(made),
        without_summary=sum(not each.summaries for each in made),
        coverage=sum(covered) / len(made) if len(covered) == len(made) else None,
        summaries=sum(each.summaries for each in made),
        alerts=sum(each.alerts for each in made),
        missed_alerts=sum(each.missed_alerts for each in made),
        unsupported_terms=sum(each.unsupported_terms for each in made),
        cut_fields=sum(each.cut_fields for each in made),
        clipped=sum(each.clipped for each in made),
    )


def _listed(summaries: Sequence[Mapping[str, Any]], name: str) -> int:
    """Return how many entries a field of summaries lists in all."""
    lists = [summary.get(name) for summary in summaries]
    return sum(len(listed) for listed in lists if isinstance(listed, list))
