"""EXAID's results per question: how much of it was summarized and what the checks found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.records.summaries import is_counting
from mdagents.scoring.fields import count_of, entries_of, number_of, object_of


@dataclass(frozen=True, slots=True)
class QuestionFigures:
    """EXAID's results for one question."""

    coverage: float | None
    """Share of the agents' text covered by a summary; None when the record does not state it."""
    summaries: int
    """Number of nonempty summaries that were made from text."""
    alerts: int
    """Number of summaries of text with a critical alert, plus texts with one that no summary
    covers."""
    missed_alerts: int
    """Number of `alerts` that no summary covers, or that their summary may not report."""
    unsupported_terms: int
    """Number of numbers, doses and drugs in summaries that no agent mentioned."""
    cut_fields: int
    clipped: int
    """Number of summaries made from part of a text because it was too long."""


@dataclass(frozen=True, slots=True)
class ExaidFigures:
    """Totals of `QuestionFigures` over questions that were not skipped."""

    questions: int
    without_summary: int
    coverage: float | None
    """Mean over the questions whose agents said something."""
    summaries: int
    alerts: int
    missed_alerts: int
    unsupported_terms: int
    cut_fields: int
    clipped: int


def question_figures(record: Mapping[str, Any]) -> QuestionFigures | None:
    """Return EXAID's results for a question; None when EXAID was off or has not finished."""
    if record.keys().isdisjoint(("exaid", "watched")):
        return None
    exaid, watched = object_of(record, "exaid"), object_of(record, "watched")
    summaries = entries_of(exaid, "summaries")
    lost = number_of(watched.get("tail_loss"))
    uncovered = count_of(watched.get("missed_alerts")) or 0
    if not (summaries or exaid.get("decisions") or lost or uncovered):
        return None
    alerting = [summary for summary in summaries if summary.get("alerts")]
    return QuestionFigures(
        coverage=None if lost is None else 1 - lost,
        summaries=sum(map(is_counting, summaries)),
        alerts=len(alerting) + uncovered,
        missed_alerts=sum(bool(summary.get("alert_missing")) for summary in alerting) + uncovered,
        unsupported_terms=_listed(summaries, "unsupported_terms"),
        cut_fields=_listed(summaries, "truncated_fields"),
        clipped=sum(bool(summary.get("clipped")) for summary in summaries),
    )


def exaid_figures(questions: Sequence[QuestionFigures | None]) -> ExaidFigures | None:
    """Return the totals over questions; None when EXAID followed none of them.

    Args:
        questions: Results of each question that was not skipped; None as of `question_figures`.
    """
    made = [each for each in questions if each is not None]
    if not made:
        return None
    covered = [each.coverage for each in made if each.coverage is not None]
    return ExaidFigures(
        questions=len(questions),
        without_summary=sum(not (each and each.summaries) for each in questions),
        coverage=sum(covered) / len(made) if len(covered) == len(made) else None,
        summaries=sum(each.summaries for each in made),
        alerts=sum(each.alerts for each in made),
        missed_alerts=sum(each.missed_alerts for each in made),
        unsupported_terms=sum(each.unsupported_terms for each in made),
        cut_fields=sum(each.cut_fields for each in made),
        clipped=sum(each.clipped for each in made),
    )


def _listed(summaries: Sequence[Mapping[str, Any]], name: str) -> int:
    """Return the total number of entries in a list field over all summaries."""
    lists = [summary.get(name) for summary in summaries]
    return sum(len(listed) for listed in lists if isinstance(listed, list))
