"""The text of a trace as metrics see it.

Deltas of a turn are joined with nothing, turns with a newline. Turns that only steer the team are
no content: nothing but the label of an agent, TERMINATE, or nothing at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from exaid_core.ctu import ctu
from exaid_core.trace.traces import Trace, Turn

_STEERING = frozenset({"", "terminate"})


def content_turns(trace: Trace) -> tuple[Turn, ...]:
    """The turns of a trace in which something is said."""
    labels = _STEERING | {turn.agent_id.casefold() for turn in trace.turns}
    return tuple(turn for turn in trace.turns if turn.text.strip().casefold() not in labels)


@dataclass(frozen=True, slots=True)
class TraceText:
    """The content of a trace, by sequence number.

    Args:
        turns: See `content_turns`.
    """

    turns: tuple[Turn, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(turn.text for turn in self.turns)

    @property
    def ctu(self) -> int:
        """Its size, turn by turn."""
        return sum(ctu(turn.text) for turn in self.turns)

    def window(self, start_seq: int, end_seq: int) -> str:
        """What was said from one sequence number to another, both included, by whomever."""
        parts = (_between(turn, start_seq, end_seq) for turn in self.turns)
        return "\n".join(part for part in parts if part)

    def chunk(self, start_seq: int, end_seq: int) -> tuple[str, frozenset[int]]:
        """A chunk of one agent: what the one who speaks at `start_seq` said up to `end_seq`.

        Returns:
            The text, and the sequence numbers of its deltas.
        """
        speaker = next((t for t in self.turns if _between(t, start_seq, start_seq)), None)
        if speaker is None:
            return "", frozenset()
        own = [turn for turn in self.turns if turn.agent_id == speaker.agent_id]
        seqs = frozenset(
            delta.seq for turn in own for delta in turn.deltas if start_seq <= delta.seq <= end_seq
        )
        return "".join(_between(turn, start_seq, end_seq) for turn in own), seqs

    def chars_after(self, seq: int) -> int:
        """Characters of the deltas after a sequence number; -1 for all."""
        return sum(len(d.text) for turn in self.turns for d in turn.deltas if d.seq > seq)

    def seqs(self) -> Iterable[tuple[int, int]]:
        """(sequence number, time in ms) of each delta."""
        return ((delta.seq, delta.t_ms) for turn in self.turns for delta in turn.deltas)


def _between(turn: Turn, start_seq: int, end_seq: int) -> str:
    first = bisect_left(turn.deltas, start_seq, key=lambda delta: delta.seq)
    last = bisect_right(turn.deltas, end_seq, key=lambda delta: delta.seq)
    return "".join(delta.text for delta in turn.deltas[first:last])
