"""A piece of an agent's text on its way into a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from exaid_core.alerts.critical_alerts import find_alert
from exaid_core.channel import as_data
from exaid_core.ctu import CHARS_PER_CTU, ctu
from exaid_core.shorten import shorten
from exaid_core.token_gate.token_gate import Flush, FlushReason

_ENDS_A_TEXT = frozenset({FlushReason.TURN_END, FlushReason.END_OF_TRACE})
_LONGEST_ALERT = 160
"""Most characters of an alert and its negation."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of one agent's text; never changed, moved as a whole."""

    agent_id: str
    text: str
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


def block(segments: Iterable[Segment]) -> str:
    """Return the segments as data for a prompt; `(nothing)` without segments."""
    pairs = [(segment.agent_id, segment.text) for segment in segments]
    return as_data(pairs) if pairs else "(nothing)"


def size(segments: Iterable[Segment]) -> int:
    """Return the CTU of the texts."""
    return sum(ctu(segment.text) for segment in segments)


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


def newest(segments: list[Segment], budget: int) -> list[Segment]:
    """Return the last segments that together have at most `budget` CTU."""
    kept: list[Segment] = []
    for segment in reversed(segments):
        budget -= ctu(segment.text)
        if budget < 0:
            break
        kept.append(segment)
    return kept[::-1]


def clipped(segments: Iterable[Segment], budget: int) -> list[Segment]:
    """Return the segments without the middle of the longest, cut to about `budget` CTU."""
    segments = list(segments)
    room, limit = budget * CHARS_PER_CTU, 0
    for others, length in enumerate(sorted(len(segment.text) for segment in segments)):
        limit = room // (len(segments) - others)
        room -= min(length, limit)
    return [replace(segment, text=_without_middle(segment.text, limit)) for segment in segments]


def _without_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    _, _, end = text[-half:].partition(" ")
    return f"{shorten(text, max(half, 1))} {end}"


class AlertWatch:
    """Finds the flushes of a case that report a danger to life, even if the gate cut the words."""

    def __init__(self) -> None:
        self._ends: dict[str, str] = {}  # of the text that a turn has flushed so far, by agent

    def sees(self, flush: Flush) -> bool:
        """Return whether the flush, alone or with the text before it, holds a critical alert."""
        before = self._ends.pop(flush.agent_id, "")
        if flush.reason not in _ENDS_A_TEXT:
            self._ends[flush.agent_id] = (before + flush.text)[-_LONGEST_ALERT:]
        if find_alert(flush.text):
            return True
        return bool(before and find_alert(before + flush.text) and not find_alert(before))
