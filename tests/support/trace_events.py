"""Events of a trace, in short form."""

from __future__ import annotations

from exaid_core.trace.events import EventKind, TraceEvent


def starts(turn_id: int, agent_id: str, seq: int, t_ms: int) -> TraceEvent:
    """Return the start of a turn; times are in ms since 1970 UTC."""
    return TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.START, "")


def says(turn_id: int, agent_id: str, seq: int, text: str, t_ms: int) -> TraceEvent:
    """Return a piece of text."""
    return TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.DELTA, text)


def ends(turn_id: int, agent_id: str, seq: int, t_ms: int) -> TraceEvent:
    """Return the end of a turn, or its failure."""
    return TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.END, "")
