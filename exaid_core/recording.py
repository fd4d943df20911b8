"""The steps of an earlier run of EXAID with a case, to be repeated.

A replay cannot go by a clock: which text was judged together depended on the speed of the models.
So it takes the steps from the run log and the words from the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from exaid_core.buffer_agent.buffer_agent import TriggerReason
from exaid_core.config import JUDGED
from exaid_core.segmenter import Chunk
from exaid_core.token_gate.token_gate import FlushReason
from exaid_core.trace.events import EventKind
from exaid_core.trace.files import read_as
from exaid_core.trace.run_records import (
    BufferDecision,
    RunMeta,
    RunRecord,
    SummaryEvent,
    TokengateFlush,
)
from exaid_core.trace.traces import Trace, read_trace
from infra.clock import ms_of

_RUN_RECORD: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)


@dataclass(frozen=True, slots=True)
class Step:
    """A decision of EXAID about one or more chunks."""

    chunks: tuple[int, ...]
    """Their indices."""
    unasked: TriggerReason | None = None
    """Why they were summarised without asking the buffer agent, under a policy that has one."""
    is_cut: bool = False
    """Whether EXAID was stopped before the summary that was due."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The steps of EXAID with one case."""

    trace: Trace
    chunks: tuple[Chunk, ...]
    steps: tuple[Step, ...]
    """In order."""
    ends_with_summary: bool
    """Whether the text that was left at the end was summarised."""


def read_recording(trace_path: Path, log_path: Path) -> Recording:
    """Read the trace and the run log of a case.

    Raises:
        RecordError: A file cannot be read, or does not have its format.
    """
    trace = read_trace(trace_path)
    records = list(read_as(_RUN_RECORD, log_path))
    agents = {event.seq: event.agent_id for event in trace.events}
    chunks = tuple(
        _chunk(trace, record, agents[record.start_seq])
        for record in records
        if isinstance(record, TokengateFlush)
    )
    meta = next(record for record in records if isinstance(record, RunMeta))
    decisions = [record for record in records if isinstance(record, BufferDecision)]
    summaries = [record for record in records if isinstance(record, SummaryEvent)]
    if meta.trigger_policy not in JUDGED:
        return Recording(trace, chunks, _steps_of(summaries, chunks), ends_with_summary=False)
    due = sum(decision.decision == "summarize" for decision in decisions)
    begun = sum(not summary.part for summary in summaries)
    steps = [_step(decision) for decision in decisions]
    if steps and begun < due:
        steps[-1] = replace(steps[-1], is_cut=True)
    return Recording(trace, chunks, tuple(steps), begun > due)


def _step(decision: BufferDecision) -> Step:
    was_asked = decision.latency_ms is not None
    unasked = None if was_asked else TriggerReason(decision.trigger or TriggerReason.NONE)
    return Step(tuple(decision.covered or ()), unasked)


def _chunk(trace: Trace, record: TokengateFlush, agent_id: str) -> Chunk:
    deltas = [
        event
        for event in trace.events
        if event.kind is EventKind.DELTA
        and event.agent_id == agent_id
        and record.start_seq <= event.seq <= record.end_seq
    ]
    return Chunk(
        agent_id=agent_id,
        text="".join(event.text for event in deltas),
        seqs=tuple(event.seq for event in deltas),
        reason=record.trigger_reason or FlushReason.MAX_WORDS,
        last_ms=deltas[-1].t_ms,
        at_ms=ms_of(record.timestamp),
    )


def _steps_of(summaries: Sequence[SummaryEvent], chunks: Sequence[Chunk]) -> tuple[Step, ...]:
    """Return the steps of a log without decisions: each summary took all text since the last."""
    steps, used = [], set[int]()
    for summary in summaries:
        covered = set(summary.source_seqs or ())
        new = tuple(
            index
            for index, chunk in enumerate(chunks)
            if index not in used and covered.issuperset(chunk.seqs)
        )
        used.update(new)
        steps.append(Step(new))
    return tuple(steps)
