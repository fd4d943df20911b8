"""The events on the bus of a case."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """The kinds of events in a turn."""

    START = "start"
    DELTA = "delta"
    END = "end"


class TraceEvent(NamedTuple):
    """One event of a trace."""

    seq: int
    """Place among all events of the case."""
    t_ms: int
    """When, in ms since 1970 UTC."""
    turn_id: int
    """From 1."""
    agent_id: str
    """The agent whose turn it is."""
    kind: EventKind
    """Start, delta or end."""
    text: str
    """Of a delta; empty for the others."""
