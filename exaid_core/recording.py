"""The steps of an earlier run of EXAID on a case, to replay or to resume it.

Neither can be driven by a clock, because the speed of the models decided which text was judged
together. So the steps are read from the run log and the text from the trace.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from pydantic import TypeAdapter

from exaid_core.buffer_agent.buffer_agent import TriggerReason
from exaid_core.config import JUDGED
from exaid_core.run_log import text_hash
from exaid_core.segmenter import Chunk
from exaid_core.token_gate.token_gate import FlushReason
from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.files import RecordError, read_as
from exaid_core.trace.run_records import (
    BufferAction,
    BufferDecision,
    LlmUsage,
    RunMeta,
    RunRecord,
    SummaryEvent,
    TokengateFlush,
)
from exaid_core.trace.traces import Trace, read_trace
from mdagents_llm.clock import ms_of

_RUN_RECORD: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
_seq_of = attrgetter("seq")


@dataclass(frozen=True, slots=True)
class Step:
    """A decision of EXAID about one or more chunks."""

    chunks: tuple[int, ...]
    """Indices of the chunks, in the order of the log."""
    unasked: TriggerReason | None = None
    """Why the buffer agent was not called; None if it was, or under a policy without one."""
    is_backed_off: bool = False
    """Whether a due summary was skipped because the summarizer kept failing."""
    calls: int = 0
    """Number of summaries and failed attempts that followed; 0 if EXAID was stopped before them."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded steps of EXAID on one case."""

    trace: Trace
    chunks: tuple[Chunk, ...]
    steps: tuple[Step, ...]
    """Steps in the order in which they were taken."""
    last_calls: int
    """Number of summaries and failed attempts for the text that was left at the end."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an interrupted EXAID on a case whose text is complete."""

    chunks: tuple[Chunk, ...] = ()
    """Chunks that the gate had released, in order."""
    decisions: tuple[BufferDecision, ...] = ()
    """Decisions on the chunks; each due summary had at least been attempted."""
    summaries: tuple[SummaryEvent, ...] = ()
    """Summaries and paid-for failed attempts."""


def read_recording(trace_path: Path, log_path: Path) -> Recording:
    """Read the trace and the run log of a case.

    Raises:
        RecordError: A file cannot be read or has the wrong format.
    """
    trace = read_trace(trace_path)
    meta, flushes, decisions, events = _read_log(log_path)
    chunks, summaries = _chunks(trace, flushes), _together(events)
    if meta.trigger_policy not in JUDGED:
        return Recording(trace, chunks, _steps_of(summaries, chunks), last_calls=0)
    left = iter(summaries)
    steps = tuple(_step(decision, left) for decision in decisions)
    return Recording(trace, chunks, steps, last_calls=len(next(left, ())))


def read_progress(trace: Trace, log_path: Path, packed: bytes | None = None) -> Progress:
    """Read the progress of an interrupted EXAID on a case.

    Args:
        trace: Trace with all text of the case.
        log_path: Run log of the interrupted EXAID.
        packed: Content of the log file, which then need not exist; None reads the file.

    Raises:
        RecordError: The log cannot be read, has the wrong format, or belongs to another text.
    """
    meta, flushes, decisions, summaries = _read_log(log_path, packed)
    chunks = _chunks(trace, flushes)
    if [text_hash(chunk.text) for chunk in chunks] != [flush.text_hash for flush in flushes]:
        raise RecordError(log_path, 1, "the log is not of the text of the trace")
    while summaries and not (summaries[-1].schema_ok or _was_paid(summaries[-1].llm_usage)):
        summaries.pop()
    if meta.trigger_policy in JUDGED:
        due = sum(decision.decision is BufferAction.SUMMARIZE for decision in decisions)
        for _ in range(due - len(_together(summaries))):  # EXAID ended before their summaries
            while decisions.pop().decision is not BufferAction.SUMMARIZE:
                pass
    return Progress(chunks, tuple(decisions), tuple(summaries))


def _was_paid(usage: LlmUsage) -> bool:
    return bool(usage.provider_prompt_tokens or usage.provider_completion_tokens)


def _read_log(
    path: Path, packed: bytes | None = None
) -> tuple[RunMeta, list[TokengateFlush], list[BufferDecision], list[SummaryEvent]]:
    """Return the records of a run log, by type.

    Raises:
        RecordError: The file cannot be read or has the wrong format.
    """
    records = list(read_as(_RUN_RECORD, path, packed))
    if not (records and isinstance(records[0], RunMeta)):
        raise RecordError(path, 1, "a run log begins with a run_meta record")
    return (
        records[0],
        [record for record in records if isinstance(record, TokengateFlush)],
        [record for record in records if isinstance(record, BufferDecision)],
        [record for record in records if isinstance(record, SummaryEvent)],
    )


def _chunks(trace: Trace, flushes: Iterable[TokengateFlush]) -> tuple[Chunk, ...]:
    """Return the chunks of a log's flushes, with their text from the trace."""
    agents: dict[int, str] = {}
    deltas: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in trace.events:
        agents[event.seq] = event.agent_id
        if event.kind is EventKind.DELTA:
            deltas[event.agent_id].append(event)
    owners = [(flush, agents.get(flush.start_seq, "")) for flush in flushes]
    return tuple(_chunk(flush, agent_id, deltas[agent_id]) for flush, agent_id in owners)


def _together(summaries: Iterable[SummaryEvent]) -> list[list[SummaryEvent]]:
    """Return the summaries grouped by the decision that made them due."""
    groups: list[list[SummaryEvent]] = []
    for summary in summaries:
        if summary.part and groups:
            groups[-1].append(summary)
        else:
            groups.append([summary])
    return groups


def _step(decision: BufferDecision, summaries: Iterator[list[SummaryEvent]]) -> Step:
    """Return the step of a decision, consuming its summaries if one was due."""
    is_due = decision.decision is BufferAction.SUMMARIZE
    reason = TriggerReason(decision.trigger or TriggerReason.NONE)
    return Step(
        tuple(decision.covered or ()),
        reason if decision.latency_ms is None else None,
        is_backed_off=reason is TriggerReason.BACKED_OFF,
        calls=len(next(summaries, ())) if is_due else 0,
    )


def _chunk(record: TokengateFlush, agent_id: str, deltas: Sequence[TraceEvent]) -> Chunk:
    """Return the chunk of a flush.

    Args:
        record: Record of the flush.
        agent_id: Agent that wrote the text.
        deltas: All deltas of the agent, in order.
    """
    first = bisect_left(deltas, record.start_seq, key=_seq_of)
    own = deltas[first : bisect_right(deltas, record.end_seq, key=_seq_of)]
    at_ms = ms_of(record.timestamp)
    return Chunk(
        agent_id=agent_id,
        text="".join(event.text for event in own),
        seqs=tuple(event.seq for event in own),
        reason=record.trigger_reason or FlushReason.MAX_WORDS,
        last_ms=own[-1].t_ms if own else at_ms,
        at_ms=at_ms,
    )


def _steps_of(
    summaries: Sequence[Sequence[SummaryEvent]], chunks: Sequence[Chunk]
) -> tuple[Step, ...]:
    """Return the steps of a log without decisions: each summary covers all text since the last."""
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
