"""The text of a trace that metrics measure.

Deltas of a turn are concatenated and turns are joined with newlines. Turns that only steer the team
(the label of an agent, TERMINATE, or nothing) are not content.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exaid_core.ctu import ctu
from exaid_core.trace.events import TraceEvent
from exaid_core.trace.traces import Trace, Turn

_STEERING = frozenset({"", "terminate"})


def content_turns(trace: Trace) -> tuple[Turn, ...]:
    """Return the turns of a trace that have content."""
    labels = _STEERING | {turn.agent_id.casefold() for turn in trace.turns}
    return tuple(turn for turn in trace.turns if turn.text.strip().casefold() not in labels)


def content_events(trace: Trace) -> Iterator[TraceEvent]:
    """Return the events of the turns that have content, in order."""
    with_content = {turn.turn_id for turn in content_turns(trace)}
    return (event for event in trace.events if event.turn_id in with_content)


@dataclass(frozen=True, slots=True)
class TraceText:
    """The content of a trace, addressable by sequence number."""

    turns: tuple[Turn, ...]
    """Turns with content, from `content_turns`."""
    duration_ms: int = 0
    """Time in ms from the first to the last delta of the trace, content or not."""
    is_stub: bool = False
    """Whether canned replies stood in for a model."""

    @classmethod
    def of(cls, trace: Trace) -> TraceText:
        """Return the content of a trace."""
        times = [delta.t_ms for turn in trace.turns for delta in turn.deltas]
        return cls(
            content_turns(trace),
            max(times, default=0) - min(times, default=0),
            bool(trace.meta.stub_mode),
        )

    @property
    def text(self) -> str:
        """Text of all turns, joined with newlines."""
        return "\n".join(turn.text for turn in self.turns)

    @property
    def ctu(self) -> int:
        """Total CTU of the turns."""
        return sum(ctu(turn.text) for turn in self.turns)

    def window(self, start_seq: int, end_seq: int) -> str:
        """Return the text of all agents between two sequence numbers, inclusive."""
        parts = (_between(turn, start_seq, end_seq) for turn in self.turns)
        return "\n".join(part for part in parts if part)

    def chunk(self, start_seq: int, end_seq: int) -> tuple[str, frozenset[int]]:
        """Return a chunk of the agent that speaks at `start_seq`, up to `end_seq`.

        Returns:
            The text and the sequence numbers of its deltas.
        """
        speaker = next((t for t in self.turns if _between(t, start_seq, start_seq)), None)
        if speaker is None:
            return "", frozenset()
        own = [turn for turn in self.turns if turn.agent_id == speaker.agent_id]
        seqs = frozenset(
            delta.seq for turn in own for delta in turn.deltas if start_seq <= delta.seq <= end_seq
        )
        return "".join(_between(turn, start_seq, end_seq) for turn in own), seqs

    def before(self, seq: int) -> str:
        """Return the text that precedes a delta in its turn; empty if no turn has the delta."""
        turn = next((t for t in self.turns if _between(t, seq, seq)), None)
        return _between(turn, -1, seq - 1) if turn else ""

    def chars_after(self, seq: int) -> int:
        """Return the number of characters in deltas after a sequence number; -1 counts all."""
        return sum(len(d.text) for turn in self.turns for d in turn.deltas if d.seq > seq)

    def seqs(self) -> Iterable[tuple[int, int]]:
        """Return (sequence number, time in ms) of each delta."""
        return ((delta.seq, delta.t_ms) for turn in self.turns for delta in turn.deltas)


def _between(turn: Turn, start_seq: int, end_seq: int) -> str:
    first = bisect_left(turn.deltas, start_seq, key=lambda delta: delta.seq)
    last = bisect_right(turn.deltas, end_seq, key=lambda delta: delta.seq)
    return "".join(delta.text for delta in turn.deltas[first:last])
