"""A piece of an agent's text on its way into a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from exaid_core.channel import as_data
from exaid_core.ctu import CHARS_PER_CTU, ctu
from exaid_core.shorten import shorten


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent said."""

    agent_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Segment(Said):
    """A piece of one agent's text; never changed, moved as a whole."""

    seqs: tuple[int, ...]
    """Sequence numbers of its deltas, ascending."""
    at_ms: int
    """When its last delta came, in ms since 1970 UTC."""
    flush_index: int
    """Its number in the run log."""
    is_alert: bool = False
    """Whether it reports a danger to life: see `find_alert`."""

    @property
    def tagged(self) -> str:
        """The segment as `| agent | text`."""
        return f"| {self.agent_id} | {self.text}"


def block(pieces: Iterable[Said]) -> str:
    """Return the pieces as data for a prompt; `(nothing)` without pieces."""
    pairs = [(piece.agent_id, piece.text) for piece in pieces]
    return as_data(pairs) if pairs else "(nothing)"


def size(pieces: Iterable[Said]) -> int:
    """Return the CTU of the texts."""
    return sum(ctu(piece.text) for piece in pieces)


def windows(segments: Iterable[Segment], budget: int) -> Iterator[list[Segment]]:
    """Yield the segments in order, in groups of at most `budget` CTU, or of one that is larger."""
    group: list[Segment] = []
    for segment in segments:
        if group and size(group) + ctu(segment.text) > budget:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def clipped(pieces: Sequence[Said], budget: int) -> list[Said]:
    """Return the pieces without the middle of the longest, cut to about `budget` CTU."""
    room, limit = budget * CHARS_PER_CTU, 0
    for others, length in enumerate(sorted(len(piece.text) for piece in pieces)):
        limit = room // (len(pieces) - others)
        room -= min(length, limit)
    return [replace(piece, text=_without_middle(piece.text, limit)) for piece in pieces]


def _without_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    _, _, end = text[-half:].partition(" ")
    return f"{shorten(text, max(half, 1))} {end}"
