"""Reads and writes traces: the text of a case's agents, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.files import (
    RecordError,
    dump_line,
    parse_line,
    read_lines,
    records_of,
    validated,
    write_gz,
)
from exaid_core.trace.records import (
    TRACE_SCHEMA_VERSION,
    Decoding,
    StreamDelta,
    TraceMeta,
    TraceRecord,
    TurnBoundary,
    content_hash,
)
from exaid_core.trace.rules import TraceRules
from mdagents_llm.files.json_text import compact_json
from mdagents_llm.text import well_formed

_HASHED = "UTF-8 bytes of concatenated delta_text in seq order for this turn"

_TRACE_META = TypeAdapter(TraceMeta)
_TRACE_RECORD: TypeAdapter[TraceRecord] = TypeAdapter(TraceRecord)
_TRACE_RECORDS: TypeAdapter[list[TraceRecord]] = TypeAdapter(list[TraceRecord])


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one agent."""

    turn_id: int
    """Number of the turn, from 1, unique in the case."""
    agent_id: str
    """Agent whose turn it is."""
    start_ms: int
    """Start of the turn, in ms since 1970 UTC."""
    end_ms: int
    """Time of the last event of the turn, usually its end, in ms since 1970 UTC."""
    deltas: tuple[TraceEvent, ...]
    """Deltas of the turn in seq order."""

    @property
    def text(self) -> str:
        """Text of the turn: its concatenated deltas."""
        return "".join(delta.text for delta in self.deltas)


@dataclass(frozen=True, slots=True)
class Trace:
    """The content of a consistent trace file."""

    meta: TraceMeta
    """First record of the file."""
    events: tuple[TraceEvent, ...]
    """All events for a replay, in seq order, except that no turn ends before its last delta."""
    turns: tuple[Turn, ...]
    """Turns made of the events, in the order of their starts."""
    late: tuple[int, ...] = ()
    """Sequence numbers of the deltas that arrived just after the end of their turn."""


def read_trace(path: Path, packed: bytes | None = None) -> Trace:
    """Read a trace file from any program that writes exaid.trace 2.0.0.

    A delta that arrives just after the end of its turn belongs to it: see `TraceRules`.

    Args:
        path: Path of the file.
        packed: Content of the file, which then need not exist; None reads the file.

    Raises:
        RecordError: The file cannot be read, has another version, or is inconsistent: records of
            two cases, out of order, outside of a turn, with a wrong time or checksum, or a number
            of them that differs from `trace_meta`.
    """
    lines = read_lines(path, content=packed)
    first, line = next(lines, (1, b"{}"))
    content = parse_line(path, first, line)
    if content.get("record_type") != "trace_meta":
        raise RecordError(path, first, "a trace begins with a trace_meta record")
    version = content.get("schema_version")
    if version != TRACE_SCHEMA_VERSION:
        raise RecordError(
            path, first, f"exaid.trace {version!r} cannot be read, only {TRACE_SCHEMA_VERSION}"
        )
    meta = validated(_TRACE_META, path, first, content)
    rules = TraceRules(meta.case_id, meta.t0_emitted_ms)
    events: list[TraceEvent] = []
    for number, record in records_of(_TRACE_RECORDS, _TRACE_RECORD, path, lines):
        told = None
        if isinstance(record, StreamDelta):
            event = _delta(record)
            if rules.is_next_delta(event, record.case_id, record.t_rel_ms):
                events.append(event)
                continue
        elif isinstance(record, TurnBoundary):
            event, told = _boundary(record), record.content_hash
        else:
            raise RecordError(path, number, "a second trace_meta record")
        for problem in rules.check(event, record.case_id, record.t_rel_ms, told, number):
            raise RecordError(path, number, str(problem))
        events.append(event)
    for problem in rules.wrong_hashes():
        raise RecordError(path, problem.line, str(problem))
    for problem in rules.totals(meta.total_turns, meta.total_deltas):
        raise RecordError(path, first, str(problem))
    if rules.late:
        events = list(_ends_last(events, frozenset(rules.late)))
    by_turn: dict[int, list[TraceEvent]] = {}
    for event in events:
        by_turn.setdefault(event.turn_id, []).append(event)
    return Trace(meta, tuple(events), tuple(map(_turn, by_turn.values())), tuple(rules.late))


def _ends_last(events: list[TraceEvent], late: frozenset[int]) -> Iterator[TraceEvent]:
    """Yield the events, moving the end of a turn with late deltas behind the last of them."""
    last = {event.turn_id: event.seq for event in events if event.seq in late}
    ends: dict[int, TraceEvent] = {}
    for event in events:
        if event.kind is EventKind.END and event.turn_id in last:
            ends[event.turn_id] = event
            continue
        yield event
        if event.seq == last.get(event.turn_id):
            end = ends[event.turn_id]
            yield end._replace(t_ms=max(end.t_ms, event.t_ms))


def _turn(events: list[TraceEvent]) -> Turn:
    return Turn(
        turn_id=events[0].turn_id,
        agent_id=events[0].agent_id,
        start_ms=events[0].t_ms,
        end_ms=events[-1].t_ms,
        deltas=tuple(event for event in events if event.kind is EventKind.DELTA),
    )


def _delta(record: StreamDelta) -> TraceEvent:
    return TraceEvent(
        record.seq,
        record.t_emitted_ms,
        record.turn_id,
        record.agent_id,
        EventKind.DELTA,
        record.delta_text,
    )


def _boundary(record: TurnBoundary) -> TraceEvent:
    kind = EventKind(record.boundary.value)
    return TraceEvent(record.seq, record.t_ms, record.turn_id, record.agent_id, kind, "")


def write_trace(path: Path, events: Iterable[TraceEvent], **meta: Any) -> None:
    """Write a trace file from events and the keyword arguments of `trace_lines`.

    Raises:
        StorageError: The file cannot be written.
    """
    write_gz(path, trace_lines(events, **meta))


def trace_lines(
    events: Iterable[TraceEvent],
    *,
    case_id: str,
    mas_run_id: str,
    mac_commit: str,
    model: str,
    created_at: str,
    exaid_commit: str | None = None,
    decoding: Decoding | None = None,
    stub_mode: bool | None = None,
) -> Iterator[bytes]:
    """Return the lines of a trace file, line breaks included.

    Args:
        events: Events of one case, in any order; they are sorted by `seq`. A failed turn starts and
            ends like any other, and its checksum covers the deltas before the failure.
        case_id: Id of the case.
        mas_run_id: Id of the run of the multi-agent system.
        mac_commit: Code revision of the multi-agent system.
        model: Name of the agents' model.
        created_at: Time when the file is written, in ISO 8601 with a time zone.
        exaid_commit: Code revision of EXAID; None leaves the field out.
        decoding: Sampling parameters of the agents' model; None leaves the field out.
        stub_mode: Whether canned replies replaced a model; None leaves the field out.

    Raises:
        pydantic.ValidationError: An argument is not valid in `TraceMeta`.
    """
    events = sorted(map(_well_formed, events))
    t0 = next((event for event in events if event.kind is EventKind.DELTA), None)
    if t0 is None and events:
        t0 = events[0]
    fields = {
        "record_type": "trace_meta",
        "schema_version": TRACE_SCHEMA_VERSION,
        "case_id": case_id,
        "mas_run_id": mas_run_id,
        "mac_commit": mac_commit,
        "exaid_commit": exaid_commit,
        "model": model,
        "decoding": decoding,
        "created_at": created_at,
        "t0_emitted_ms": t0.t_ms if t0 else 0,
        "t0_definition": _t0_definition(t0),
        "stub_mode": stub_mode,
        "total_turns": len({event.turn_id for event in events}),
        "total_deltas": sum(event.kind is EventKind.DELTA for event in events),
    }
    meta = TraceMeta.model_validate({k: v for k, v in fields.items() if v is not None})
    return _trace_lines(meta, events)


def said_in(events: Iterable[TraceEvent]) -> list[tuple[str, str]]:
    """Return the agent and text of each turn that has text, as a trace file would store it."""
    texts: dict[tuple[int, str], list[str]] = {}
    for event in map(_well_formed, events):
        if event.kind is EventKind.DELTA:
            texts.setdefault((event.turn_id, event.agent_id), []).append(event.text)
    return [(agent_id, "".join(text)) for (_, agent_id), text in texts.items()]


def _well_formed(event: TraceEvent) -> TraceEvent:
    if event.text.isascii() and event.agent_id.isascii():
        return event
    return event._replace(text=well_formed(event.text), agent_id=well_formed(event.agent_id))


def _t0_definition(t0: TraceEvent | None) -> str | None:
    if t0 is None:
        return None
    if t0.kind is EventKind.DELTA:
        return "t_emitted_ms of first stream_delta record"
    return "t_ms of first turn_boundary record"


def _trace_lines(meta: TraceMeta, events: Iterable[TraceEvent]) -> Iterator[bytes]:
    """Yield the lines as `dump_line` would, without the time that it takes for each delta."""
    yield dump_line(meta)
    texts: dict[int, list[str]] = {}
    for event in events:
        if event.kind is EventKind.DELTA:
            texts.setdefault(event.turn_id, []).append(event.text)
            record = {
                "agent_id": event.agent_id,
                "case_id": meta.case_id,
                "delta_text": event.text,
                "record_type": "stream_delta",
                "seq": event.seq,
                "t_emitted_ms": event.t_ms,
            }
        else:
            record = {"agent_id": event.agent_id, "boundary": event.kind, "case_id": meta.case_id}
            if event.kind is EventKind.END:
                record["content_hash"] = content_hash(texts.pop(event.turn_id, ()))
                record["content_hash_input"] = _HASHED
            record |= {"record_type": "turn_boundary", "seq": event.seq, "t_ms": event.t_ms}
        record |= {"t_rel_ms": event.t_ms - meta.t0_emitted_ms, "turn_id": event.turn_id}
        yield compact_json(record) + b"\n"
