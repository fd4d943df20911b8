"""Events of a trace, written down as agents speak."""

from __future__ import annotations

from exaid_core.trace.events import EventKind, TraceEvent


def starts(turn_id: int, agent_id: str, seq: int, t_ms: int) -> TraceEvent:
    """A turn starts; times are in ms since 1970 UTC."""
    return TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.START, "")


def says(turn_id: int, agent_id: str, seq: int, text: str, t_ms: int) -> TraceEvent:
    """A piece of text comes."""
    return TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.DELTA, text)


def ends(turn_id: int, agent_id: str, seq: int, t_ms: int) -> TraceEvent:
    """A turn ends, or fails."""
    return TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.END, "")
