"""Segments: the pieces of agents' text that are buffered and summarized."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from exaid_core.channel import as_data
from exaid_core.checks.alerts import find_alerts
from exaid_core.checks.shortening import split_text
from exaid_core.ctu import CHARS_PER_CTU, ctu


@dataclass(frozen=True, slots=True)
class Said:
    """A text with the agent that said it."""

    agent_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Segment(Said):
    """An immutable piece of one agent's text, processed as a whole."""

    seqs: tuple[int, ...]
    """Sequence numbers of the deltas, ascending."""
    at_ms: int
    """Arrival time of the last delta, in ms since 1970 UTC."""
    flush_index: int
    """Index of the segment's flush in the run log."""
    alerts: tuple[str, ...] = ()
    """Dangers to life that the segment reports, verbatim: see `find_alerts`."""
    is_part: bool = False
    """Whether the rest of the text is in another segment, which has the sequence numbers."""

    @property
    def is_alert(self) -> bool:
        """Whether the segment reports a danger to life."""
        return bool(self.alerts)

    @property
    def tagged(self) -> str:
        """Text of the segment as `| agent | text`."""
        return f"| {self.agent_id} | {self.text}"


def block(pieces: Iterable[Said]) -> str:
    """Return the pieces as data for a prompt, or `(nothing)` without pieces."""
    pairs = [(piece.agent_id, piece.text) for piece in pieces]
    return as_data(pairs) if pairs else "(nothing)"


def size(pieces: Iterable[Said]) -> int:
    """Return the total CTU of the texts."""
    return sum(ctu(piece.text) for piece in pieces)


def windows(segments: Iterable[Segment], budget: int) -> Iterator[list[Segment]]:
    """Yield the segments in order, in groups of at most `budget` CTU or of one larger segment."""
    group: list[Segment] = []
    for segment in segments:
        if group and size(group) + ctu(segment.text) > budget:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def alerts_in(segments: Iterable[Segment]) -> tuple[str, ...]:
    """Return the alerts that the segments report, without duplicates."""
    return tuple(dict.fromkeys(alert for segment in segments for alert in segment.alerts))


def in_parts(segment: Segment, budget: int) -> list[Segment]:
    """Split a segment into segments of at most `budget` CTU each.

    Only the last part has the sequence numbers, since they are covered only when all of the text
    is. An alert belongs to the part that reports it, or to the last part if its words are split.
    """
    *first, last = split_text(segment.text, budget * CHARS_PER_CTU)
    left, parts = segment.alerts, []
    for text in first:
        alerts = tuple(alert for alert in find_alerts(text) if alert in left)
        left = tuple(alert for alert in left if alert not in alerts)
        parts.append(replace(segment, text=text, seqs=(), alerts=alerts, is_part=True))
    return [*parts, replace(segment, text=last, alerts=left)]
