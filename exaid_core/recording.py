"""The steps of an earlier run of EXAID with a case, to be repeated or to be resumed.

Neither can go by a clock: which text was judged together depended on the speed of the models. So
the steps come from the run log and the words from the trace.
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far EXAID had come with a case whose text is complete."""

    chunks: tuple[Chunk, ...] = ()
    """The text that the gate had let through, in order."""
    decisions: tuple[BufferDecision, ...] = ()
    """Decisions on it, each followed by its summary if one was due."""
    summaries: tuple[SummaryEvent, ...] = ()
    """Summaries, and failed attempts that were paid for."""


def read_recording(trace_path: Path, log_path: Path) -> Recording:
    """Read the trace and the run log of a case.

    Raises:
        RecordError: A file cannot be read, or does not have its format.
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
    """Read how far EXAID had come with a case.

    Args:
        trace: All text of the case.
        log_path: The run log that an unfinished EXAID has left.
        packed: Content of that file, which need not be there then.

    Raises:
        RecordError: The log cannot be read, does not have its format, or is of another text.
    """
    meta, flushes, decisions, summaries = _read_log(log_path, packed)
    chunks = _chunks(trace, flushes)
    if [text_hash(chunk.text) for chunk in chunks] != [flush.text_hash for flush in flushes]:
        raise RecordError(log_path, 1, "the log is not of the text of the trace")
    while summaries and not (summaries[-1].schema_ok or _was_paid(summaries[-1].llm_usage)):
        summaries.pop()
    if meta.trigger_policy in JUDGED:
        due = sum(decision.decision is BufferAction.SUMMARIZE for decision in decisions)
        for _ in range(due - len(_together(summaries))):  # EXAID ended before it wrote for them
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
        RecordError: The file cannot be read, or does not have its format.
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
    """Return the text of the flushes of a log, from the trace."""
    agents: dict[int, str] = {}
    deltas: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in trace.events:
        agents[event.seq] = event.agent_id
        if event.kind is EventKind.DELTA:
            deltas[event.agent_id].append(event)
    owners = [(flush, agents.get(flush.start_seq, "")) for flush in flushes]
    return tuple(_chunk(flush, agent_id, deltas[agent_id]) for flush, agent_id in owners)


def _together(summaries: Iterable[SummaryEvent]) -> list[list[SummaryEvent]]:
    """Return the summaries in groups that were due at once."""
    groups: list[list[SummaryEvent]] = []
    for summary in summaries:
        if summary.part and groups:
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


def _chunk(record: TokengateFlush, agent_id: str, deltas: Sequence[TraceEvent]) -> Chunk:
    """Return the text of a flush.

    Args:
        record: The flush.
        agent_id: Whose text it is.
        deltas: All text of that agent, in order.
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
