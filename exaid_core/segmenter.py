"""Cuts the text of a case's agents into segments, as the policy requires."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from exaid_core.checks.alerts import CONTEXT, alerts_of_chunk
from exaid_core.config import ExaidConfig
from exaid_core.ctu import letters
from exaid_core.policy import TriggerPolicy
from exaid_core.run_log import RunLog
from exaid_core.segments import Segment
from exaid_core.token_gate.chunks import ChunkGate
from exaid_core.token_gate.token_gate import Flush, FlushReason, GateCore
from exaid_core.trace.events import EventKind, TraceEvent

_ENDS_A_TEXT = frozenset({FlushReason.TURN_END, FlushReason.END_OF_TRACE})


@dataclass(frozen=True, slots=True)
class Chunk:
    """A released piece of an agent's text; it becomes a segment unless it is blank."""

    agent_id: str
    text: str
    seqs: tuple[int, ...]
    """Sequence numbers of the deltas, ascending."""
    reason: FlushReason
    last_ms: int
    """Arrival time of the last delta, in ms since 1970 UTC."""
    at_ms: int
    """Time of the release, in ms since 1970 UTC."""


class Segmenter:
    """Turns the text of a case into segments.

    Times are in ms since 1970 UTC. Methods that process text or let time pass return the segments
    that this completes.

    Args:
        config: Policy and chunk sizes.
        log: Run log for the segments.
    """

    def __init__(self, config: ExaidConfig, log: RunLog) -> None:
        self._log = log
        self._gate = _gate(config)
        self._seqs: defaultdict[str, list[int]] = defaultdict(list)  # held by the gate, by agent
        self._ends: dict[str, str] = {}  # of the released text of a turn in progress, by agent
        self.chunks: Counter[str] = Counter()
        """Number of chunks so far, by agent."""
        self.letters = 0
        """Number of characters in the segments so far that are not white space."""
        self.alerts = 0
        """Number of segments with a critical alert so far."""

    def event(self, event: TraceEvent) -> list[Segment]:
        """Process an event of a trace and return the segments that it completes."""
        match event.kind:
            case EventKind.DELTA:
                return self.token(event.agent_id, event.text, event.seq, event.t_ms)
            case EventKind.END:
                return self.flush(event.agent_id, event.t_ms, FlushReason.TURN_END)
            case EventKind.START:
                return []

    def token(self, agent_id: str, text: str, seq: int, t_ms: int) -> list[Segment]:
        """Process a piece of streamed text."""
        flushes = self._gate.add(agent_id, text, seq=seq, now=t_ms / 1000)
        if text:
            self._seqs[agent_id].append(seq)
        return self._let_through(flushes, t_ms)

    def whole(self, agent_id: str, text: str, seq: int, t_ms: int) -> list[Segment]:
        """Process a text as one chunk, after flushing the agent's streamed text."""
        earlier = self.flush(agent_id, t_ms, FlushReason.TURN_END)
        return earlier + self.chunk(Chunk(agent_id, text, (seq,), FlushReason.TURN_END, t_ms, t_ms))

    def flush(
        self, agent_id: str, t_ms: int, reason: FlushReason = FlushReason.END_OF_TRACE
    ) -> list[Segment]:
        """Release the text that the gate holds for an agent."""
        flush = self._gate.flush(agent_id, reason)
        return self._let_through([flush] if flush else [], t_ms)

    def rest(self, t_ms: int) -> list[Segment]:
        """Release the text that the gate holds for all agents."""
        return [
            segment for agent_id in self._gate.agents() for segment in self.flush(agent_id, t_ms)
        ]

    def deadline(self) -> float | None:
        """Return the expiry of the gate's next timer in s since 1970 UTC; None without a timer."""
        return self._gate.deadline()

    def expired(self, t_ms: int) -> list[Segment]:
        """Release the text whose timers have expired by now."""
        return self._let_through(self._gate.check(t_ms / 1000), t_ms)

    def advance(self, t_ms: int) -> list[Segment]:
        """Let virtual time pass: like `expired`, but each timer fires at its own time."""
        expired = self._gate.advance(t_ms / 1000)
        return [s for flush, at in expired for s in self._let_through([flush], round(1000 * at))]

    def chunk(self, chunk: Chunk) -> list[Segment]:
        """Process a chunk that was released elsewhere."""
        alerts = self._alerts(chunk)
        self.chunks[chunk.agent_id] += 1
        if not chunk.text.strip():
            return []
        self.letters += letters(chunk.text)
        self.alerts += bool(alerts)
        index = self._log.flushed(chunk.text, chunk.seqs, chunk.reason, chunk.at_ms)
        return [Segment(chunk.agent_id, chunk.text, chunk.seqs, chunk.last_ms, index, alerts)]

    def _let_through(self, flushes: Iterable[Flush], t_ms: int) -> list[Segment]:
        segments = []
        for flush in flushes:
            seqs = self._seqs[flush.agent_id]
            own = tuple(seq for seq in seqs if seq <= flush.end_seq)
            del seqs[: len(own)]
            last_ms = round(1000 * flush.last_at)
            segments += self.chunk(
                Chunk(flush.agent_id, flush.text, own, flush.reason, last_ms, t_ms)
            )
        return segments

    def _alerts(self, chunk: Chunk) -> tuple[str, ...]:
        """Return the critical alerts of a chunk, including those split between chunks."""
        before = self._ends.pop(chunk.agent_id, "")
        if chunk.reason not in _ENDS_A_TEXT:
            self._ends[chunk.agent_id] = (before + chunk.text)[-CONTEXT:]
        return alerts_of_chunk(before, chunk.text)


def _gate(config: ExaidConfig) -> GateCore:
    match config.policy:
        case TriggerPolicy.TURN_END:
            return ChunkGate()
        case TriggerPolicy.NO_TOKENGATE:
            return ChunkGate(config.chunk_ctu)
        case _:
            return GateCore(config.gate)
