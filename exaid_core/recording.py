"""The steps of an earlier run of EXAID with a case, to be repeated.

A replay cannot go by a clock: which text was judged together depended on the speed of the models.
So it takes the steps from the run log and the words from the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from exaid_core.buffer_agent.buffer_agent import TriggerReason
from exaid_core.config import JUDGED
from exaid_core.segmenter import Chunk
from exaid_core.token_gate.token_gate import FlushReason
from exaid_core.trace.events import EventKind
from exaid_core.trace.files import read_as
from exaid_core.trace.run_records import (
    BufferAction,
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
    is_backed_off: bool = False
    """Whether no summary was begun, since the summarizer kept failing."""
    calls: int = 0
    """Summaries, and failed attempts, that followed at once; 0 also if EXAID was stopped before."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The steps of EXAID with one case."""

    trace: Trace
    chunks: tuple[Chunk, ...]
    steps: tuple[Step, ...]
    """In order."""
    last_calls: int
    """Summaries, and failed attempts, of the text that was left at the end."""


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
    summaries = _together([record for record in records if isinstance(record, SummaryEvent)])
    if meta.trigger_policy not in JUDGED:
        return Recording(trace, chunks, _steps_of(summaries, chunks), last_calls=0)
    left = iter(summaries)
    steps = tuple(_step(decision, left) for decision in decisions)
    return Recording(trace, chunks, steps, last_calls=len(next(left, ())))


def _together(summaries: Iterable[SummaryEvent]) -> list[list[SummaryEvent]]:
    """Return the summaries in groups that were due at once."""
    groups: list[list[SummaryEvent]] = []
    for summary in summaries:
        if summary.part:
            groups[-1].append(summary)
        else:
            groups.append([summary])
    return groups


def _step(decision: BufferDecision, summaries: Iterator[list[SummaryEvent]]) -> Step:
    """Return the step of a decision, which takes its summaries if it was to summarise."""
    is_due = decision.decision is BufferAction.SUMMARIZE
    reason = TriggerReason(decision.trigger or TriggerReason.NONE)
    return Step(
        tuple(decision.covered or ()),
        reason if decision.latency_ms is None else None,
        is_backed_off=reason is TriggerReason.BACKED_OFF,
        calls=len(next(summaries, ())) if is_due else 0,
    )


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


def _steps_of(
    summaries: Sequence[Sequence[SummaryEvent]], chunks: Sequence[Chunk]
) -> tuple[Step, ...]:
    """Return the steps of a log without decisions: each summary took all text since the last."""
    steps, used = [], set[int]()
    for group in summaries:
        seqs = {seq for summary in group for seq in summary.source_seqs or ()}
        due = group[0].covered
        new = tuple(
            index
            for index, chunk in enumerate(chunks)
            if index not in used and (seqs.issuperset(chunk.seqs) if due is None else index in due)
        )
        used.update(new)
        steps.append(Step(new, calls=len(group)))
    return tuple(steps)
