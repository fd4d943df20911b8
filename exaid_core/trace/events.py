"""The events on the bus of a case."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

LONGEST_CASE_ID = 200
"""Maximum length of the id of a case, in characters."""


class EventKind(StrEnum):
    """The kind of an event in a turn."""

    START = "start"
    DELTA = "delta"
    END = "end"


class TraceEvent(NamedTuple):
    """An event in a turn of a case."""

    seq: int
    """Sequence number among all events of the case."""
    t_ms: int
    """Time of the event, in ms since 1970 UTC."""
    turn_id: int
    """Number of the turn, from 1, unique in the case."""
    agent_id: str
    """Agent whose turn it is."""
    kind: EventKind
    """Kind of the event: start, delta or end."""
    text: str
    """Text of a delta; empty for other kinds."""
