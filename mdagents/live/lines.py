"""Lines of `live.jsonl`: one event each, in chronological order.

    {"n": 17, "at": 1763840000123, "item": ["12", 1], "kind": "routed", "what": {…}}

`n` numbers the lines of a run from 1 and is unique across its starts, so that a reader can resume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from mdagents.agents.events import (
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
from mdagents.records.pictures import PictureRecord
from mdagents.records.summaries import ItemKey
from mdagents_llm.files.json_text import compact_json, parse_json


@dataclass(frozen=True, slots=True)
class Pictured:
    """The pictures of a question that was just started; there is no line without pictures."""

    pictures: tuple[PictureRecord, ...]
    """Pictures in the order of the prompts."""


@dataclass(frozen=True, slots=True)
class Words:
    """Text that an agent said since the previous line about its turn."""

    agent: str
    """`agent_id` of the speaker."""
    turn: int
    """Number of the turn within the case, from 1, as in the trace."""
    text: str
    seqs: tuple[int, int]
    """First and last sequence number in the trace; other turns may have numbers in between."""


@dataclass(frozen=True, slots=True)
class Charged:
    """The token usage of a reply."""

    agent: str
    """`agent_id` of the caller; for EXAID, the role of the call."""
    phase: str
    """Phase of the call."""
    tokens: int
    """Input plus output tokens."""
    of_exaid: bool = False
    reasoning: str = ""
    """Hidden reasoning of the reply, if it is kept."""


Happening = (
    Started
    | Pictured
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
        "pictured": Pictured,
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
_ITEM = b'"item":'
_KIND_OF = {kind: name for name, kind in _KINDS.items()}


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])  # takes milliseconds each, so it is built when first needed


@cache
def _place() -> TypeAdapter[tuple[int, int, ItemKey | None]]:
    return TypeAdapter(tuple[int, int, ItemKey | None])


@dataclass(frozen=True, slots=True)
class FeedLine:
    """One line of the feed."""

    n: int
    """Line number, from 1."""
    at: int
    """Time of the event, in ms since 1970 UTC."""
    item: ItemKey | None
    """Question of the event; None for the whole run."""
    what: Happening

    def encoded(self) -> bytes:
        """Return the line as JSON bytes, without a line break."""
        kind = _KIND_OF[type(self.what)]
        line = {"n": self.n, "at": self.at, "item": self.item, "kind": kind, "what": self.what}
        return compact_json(line)


def item_of(line: bytes) -> ItemKey | None:
    """Return the question of an encoded line, without decoding it; None also for a damaged line."""
    start = line.find(_ITEM) + len(_ITEM)
    try:
        return _item(line[start : line.find(b',"kind":', start)])
    except MALFORMED:
        return None


@lru_cache(maxsize=1024)  # lines of the questions in progress alternate
def _item(raw: bytes) -> ItemKey | None:
    item = parse_json(raw)
    if item is None:
        return None
    id_, epoch = item
    return str(id_), int(epoch)


def decoded(line: bytes) -> FeedLine | None:
    """Return a decoded line; None for an unknown kind or a damaged line."""
    try:
        read = parse_json(line)
        what = _adapter(read["kind"]).validate_python(read["what"])
        n, at, item = _place().validate_python((read["n"], read["at"], read["item"]))
        return FeedLine(n, at, item, what)
    except MALFORMED:
        return None
