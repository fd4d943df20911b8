"""The lines of `live.jsonl`: one happening each, in the order in which they happened.

    {"n": 17, "at": 1763840000123, "item": ["12", 1], "kind": "routed", "what": {…}}

`n` counts the lines of a run from 1 and never twice the same, also over several starts, so that a
reader knows where it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from mdagents.agents.feed import (
    DebateMessage,
    Ended,
    Recruited,
    Routed,
    Rung,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.display.display import Snapshot
from mdagents.records.jsonl import MALFORMED
from mdagents.records.summaries import ItemKey


@dataclass(frozen=True, slots=True)
class Words:
    """What an agent said since the line before about its turn."""

    agent: str
    """`agent_id`"""
    turn: int
    """Within the case, from 1, as in its trace."""
    text: str
    seqs: tuple[int, int]
    """First and last sequence number in the trace; those of other turns may lie between."""


@dataclass(frozen=True, slots=True)
class Charged:
    """A model has replied, and what that took."""

    agent: str
    """`agent_id`; of EXAID, the role of its call."""
    phase: str
    """Of the call."""
    tokens: int
    """Input plus output."""
    of_exaid: bool = False
    reasoning: str = ""
    """Hidden reasoning of the reply, where it is kept."""


Happening = (
    Started
    | Routed
    | Recruited
    | Rung
    | TurnBegan
    | Words
    | TurnEnded
    | Charged
    | DebateMessage
    | Summarised
    | Ended
    | Snapshot
)

_KINDS: Mapping[str, type] = MappingProxyType(
    {
        "started": Started,
        "routed": Routed,
        "recruited": Recruited,
        "rung": Rung,
        "turn_began": TurnBegan,
        "words": Words,
        "turn_ended": TurnEnded,
        "charged": Charged,
        "message": DebateMessage,
        "summarised": Summarised,
        "ended": Ended,
        "snapshot": Snapshot,
    }
)
_KIND_OF = {kind: name for name, kind in _KINDS.items()}


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])  # milliseconds each, that no first request should wait for


@cache
def _place() -> TypeAdapter[tuple[int, int, ItemKey | None]]:
    return TypeAdapter(tuple[int, int, ItemKey | None])


@dataclass(frozen=True, slots=True)
class FeedLine:
    """One line of the feed."""

    n: int
    """Its number."""
    at: int
    """When, in ms since 1970 UTC."""
    item: ItemKey | None
    """The question that it is about; None for the whole run."""
    what: Happening

    def encoded(self) -> bytes:
        """Return the line as it is written, with its line break."""
        kind = _KIND_OF[type(self.what)]
        line: dict[str, object] = {"n": self.n, "at": self.at, "item": self.item, "kind": kind}
        line["what"] = _adapter(kind).dump_python(self.what, mode="json")
        return json.dumps(line).encode() + b"\n"  # ASCII: half a character cannot be written else


def decoded(line: bytes) -> FeedLine | None:
    """Return what a line says; None for a kind of another version, or a damaged line."""
    try:
        read = json.loads(line)
        what = _adapter(read["kind"]).validate_python(read["what"])
        n, at, item = _place().validate_python((read["n"], read["at"], read["item"]))
        return FeedLine(n, at, item, what)
    except MALFORMED:
        return None
