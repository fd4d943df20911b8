"""What a record itself holds of the discussion, for a question without a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdagents.export.events import Span, info
from mdagents.export.records import Record
from mdagents.scoring.fields import count_of, entries_of, object_of

_Object = Mapping[str, Any]


def said_in_record(record: Record, ms: int) -> list[Span]:
    """Return a span for each round of a debate and each team, in it one for each speaker.

    Args:
        record: Of a question.
        ms: Time of all spans, in ms since 1970 UTC, as the record has no times.
    """
    rounds: dict[int, list[Span]] = {}
    for speaker, field in (("sender", "interactions"), ("agent", "opinions")):
        for stated in entries_of(record, field):
            number = count_of(stated.get("round")) or 0
            rounds.setdefault(number, []).append(_said(stated.get(speaker), ms, stated))
    spans = [Span(f"round {n}", "round", ms, ms, said) for n, said in sorted(rounds.items())]
    for report in entries_of(record, "teams"):
        members = report.get("members")
        lead = members[0] if isinstance(members, list) and members else "lead"
        conclusion = {k: v for k, v in report.items() if k not in ("investigations", "members")}
        found = [_said(f.get("agent"), ms, f) for f in entries_of(report, "investigations")]
        name = str(report.get("name", "team"))
        spans.append(Span(name, "team", ms, ms, [*found, _said(lead, ms, conclusion)]))
    return spans


def summaries_in_record(record: Record) -> Sequence[_Object]:
    """Return EXAID's summaries."""
    return entries_of(object_of(record, "exaid"), "summaries")


def _said(agent: object, ms: int, what: _Object) -> Span:
    return Span(str(agent), "agent", ms, ms, [info(ms, str(agent), what)])
