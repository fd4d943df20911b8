"""Files of records: how they are written, byte for byte the same each time, and read back."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.records import (
    TRACE_SCHEMA_VERSION,
    Decoding,
    StreamDelta,
    TraceMeta,
    TraceRecord,
    TurnBoundary,
    content_hash,
    well_formed,
)
from exaid_core.trace.run_records import Determinism
from infra.errors import BenchError, StorageError
from infra.whole_file import whole_file

MAX_LINE_BYTES = 8 * 1024 * 1024
_GZIP_LEVEL = 6
_CHARS_OF_A_PROBLEM = 300

DETERMINISM = Determinism(gzip_mtime=0, json_sort_keys=True, json_separators=(",", ":"))
"""How `dump_line` and `write_gz` write, for `run_meta`."""

_encode = json.JSONEncoder(
    sort_keys=DETERMINISM.json_sort_keys,
    separators=DETERMINISM.json_separators,
    ensure_ascii=False,
    allow_nan=False,
).encode

_TRACE_RECORD: TypeAdapter[TraceRecord] = TypeAdapter(TraceRecord)

T = TypeVar("T")


class RecordError(BenchError):
    """A file of records that cannot be read as such.

    The message is one printable line: file, number of the line, what is wrong with it.

    Args:
        path: The file.
        line: Number of the line, from 1; the line that was expected next when the file ends early.
        what: What is wrong; anything in it that is taken from the file is made printable.
    """

    def __init__(self, path: Path, line: int, what: str) -> None:
        self.path = path
        self.line = line
        self.what = "".join(c if c.isprintable() else " " for c in what[:_CHARS_OF_A_PROBLEM])
        super().__init__(f"{path} line {line}: {self.what}")


def dump_line(record: Mapping[str, Any] | BaseModel) -> bytes:
    """A record as one line of JSON, line break included: keys sorted, no spaces, UTF-8.

    Fields of a model that nobody set are left out. Lone surrogates become U+FFFD.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json", exclude_unset=True)
    line = _encode(record) + "\n"
    try:
        return line.encode()
    except UnicodeEncodeError:
        return well_formed(line).encode()


def write_gz(path: Path, lines: Iterable[bytes]) -> None:
    """Write `lines`, given with their line breaks, as a gzip file. Equal lines give equal bytes.

    The file, and its folder, are made if they are not there. A reader sees the file that was there
    before or the whole new one, never a part.

    Raises:
        StorageError: It cannot be written; a file that was there before is kept.
    """
    try:
        with (
            whole_file(path) as file,
            gzip.GzipFile(
                filename="",
                mode="wb",
                compresslevel=_GZIP_LEVEL,
                fileobj=file,
                mtime=DETERMINISM.gzip_mtime,
            ) as packed,
        ):
            packed.writelines(lines)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def read_records(
    path: Path, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of the line from 1, object) of each line; blank lines are passed over.

    Memory does not grow with the file, nor with its longest line.

    Args:
        path: `.gz` for a compressed file.
        max_line_bytes: Longest line that is read.

    Raises:
        RecordError: The file cannot be read, is cut short or damaged, or a line is not a JSON
            object in UTF-8. What comes before that line has been given by then.
    """
    number = 0
    try:
        packed = path.suffix == ".gz"
        if packed and path.stat().st_size == 0:
            raise EOFError  # which gzip takes for a file without lines
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            while line := file.readline(max_line_bytes + 1):
                number += 1
                if len(line) > max_line_bytes and not line.endswith(b"\n"):
                    raise RecordError(path, number, f"longer than {max_line_bytes} bytes")
                if line.strip():
                    yield number, _object(path, number, line)
    except EOFError as error:
        raise RecordError(path, number + 1, "the compressed file is cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordError(path, number + 1, f"the compressed file is damaged: {error}") from error
    except OSError as error:
        raise RecordError(path, number + 1, f"cannot be read: {error.strerror or error}") from error


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line.rstrip().decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise RecordError(path, number, f"not UTF-8 at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        raise RecordError(path, number, f"not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(path, number, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordError(path, number, "not a JSON object")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def validated(adapter: TypeAdapter[T], path: Path, number: int, content: Mapping[str, Any]) -> T:
    """A record that `read_records` gave, as what `adapter` makes of it.

    Raises:
        RecordError: It is not such a record; the first thing that is wrong with it.
    """
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        what = f"{place}: {problem['msg']}" if place else problem["msg"]
        raise RecordError(path, number, what) from error


class Delta(NamedTuple):
    """A piece of the text of a turn."""

    seq: int
    """Place among all events of the case."""
    t_ms: int
    """When it came, in ms since 1970 UTC."""
    text: str
    """The piece."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one agent said in one go."""

    turn_id: int
    """From 1."""
    agent_id: str
    """Who speaks."""
    start_ms: int
    """When it began, in ms since 1970 UTC."""
    end_ms: int
    """When it ended, or its last event came if the trace does not say, in ms since 1970 UTC."""
    deltas: tuple[Delta, ...]
    """In seq order."""

    @property
    def text(self) -> str:
        """All that was said: the deltas joined with nothing."""
        return "".join(delta.text for delta in self.deltas)


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace file that has been read and is consistent."""

    meta: TraceMeta
    """What it is of."""
    events: tuple[TraceEvent, ...]
    """All of them in seq order, for a replay."""
    turns: tuple[Turn, ...]
    """The same by turn, in the order in which they began."""


def read_trace(path: Path) -> Trace:
    """Read a trace file of any program that writes exaid.trace 2.0.0.

    Raises:
        RecordError: It cannot be read, is of another version, or contradicts itself: records of two
            cases, out of order, outside of a turn, with a time or a hash that is not theirs, or
            fewer than `trace_meta` counts.
    """
    records = read_records(path)
    first, content = next(records, (1, {}))
    if content.get("record_type") != "trace_meta":
        raise RecordError(path, first, "a trace begins with a trace_meta record")
    version = content.get("schema_version")
    if version != TRACE_SCHEMA_VERSION:
        raise RecordError(
            path, first, f"exaid.trace {version!r} cannot be read, only {TRACE_SCHEMA_VERSION}"
        )
    meta = validated(TypeAdapter(TraceMeta), path, first, content)
    assembly = _Assembly(meta)
    for number, content in records:
        record = validated(_TRACE_RECORD, path, number, content)
        try:
            assembly.add(record)
        except _ContradictionError as error:
            raise RecordError(path, number, str(error)) from error
    try:
        return assembly.trace()
    except _ContradictionError as error:
        raise RecordError(path, first, str(error)) from error


class _ContradictionError(Exception):
    pass


class _Assembly:
    """Puts the records of a trace together, as long as they agree."""

    def __init__(self, meta: TraceMeta) -> None:
        self._meta = meta
        self._events: list[TraceEvent] = []
        self._turns: dict[int, list[TraceEvent]] = {}

    def add(self, record: TraceRecord) -> None:
        if isinstance(record, TraceMeta):
            raise _ContradictionError("a second trace_meta record")
        event = _event(record)
        if record.case_id != self._meta.case_id:
            raise _ContradictionError(f"a record of {record.case_id} among {self._meta.case_id}")
        if self._events and event.seq <= self._events[-1].seq:
            raise _ContradictionError(f"seq {event.seq} after seq {self._events[-1].seq}")
        if record.t_rel_ms != event.t_ms - self._meta.t0_emitted_ms:
            raise _ContradictionError(
                f"t_rel_ms {record.t_rel_ms} is not its time less t0_emitted_ms"
            )
        self._events.append(event)
        self._add_to_turn(event)
        if isinstance(record, TurnBoundary) and record.content_hash is not None:
            turn = _turn(self._turns[event.turn_id])
            if record.content_hash != content_hash(delta.text for delta in turn.deltas):
                raise _ContradictionError(
                    f"content_hash is not that of the deltas of turn {turn.turn_id}"
                )

    def _add_to_turn(self, event: TraceEvent) -> None:
        number = event.turn_id
        if event.kind is EventKind.START:
            if number in self._turns:
                raise _ContradictionError(f"turn {number} starts twice")
            self._turns[number] = []
        elif number not in self._turns:
            raise _ContradictionError(f"turn {number} has not started")
        elif self._turns[number][-1].kind is EventKind.END:
            raise _ContradictionError(f"turn {number} has ended already")
        elif event.agent_id != (agent_id := self._turns[number][0].agent_id):
            raise _ContradictionError(f"{event.agent_id} speaks in turn {number} of {agent_id}")
        self._turns[number].append(event)

    def trace(self) -> Trace:
        turns = tuple(_turn(events) for events in self._turns.values())
        counted = {
            "total_turns": len(turns),
            "total_deltas": sum(len(turn.deltas) for turn in turns),
        }
        for name, there in counted.items():
            told = getattr(self._meta, name)
            if told not in (None, there):
                raise _ContradictionError(f"{name} is {told}, but the file holds {there}")
        return Trace(self._meta, tuple(self._events), turns)


def _turn(events: list[TraceEvent]) -> Turn:
    return Turn(
        turn_id=events[0].turn_id,
        agent_id=events[0].agent_id,
        start_ms=events[0].t_ms,
        end_ms=events[-1].t_ms,
        deltas=tuple(
            Delta(event.seq, event.t_ms, event.text)
            for event in events
            if event.kind is EventKind.DELTA
        ),
    )


def _event(record: StreamDelta | TurnBoundary) -> TraceEvent:
    if isinstance(record, StreamDelta):
        kind, t_ms, text = EventKind.DELTA, record.t_emitted_ms, record.delta_text
    else:
        kind, t_ms, text = EventKind(record.boundary.value), record.t_ms, ""
    return TraceEvent(record.seq, t_ms, record.turn_id, record.agent_id, kind, text)


class TraceWriter:
    """Collects the events of one case while it runs, and writes its trace file at the end.

    Events may come in any order; `seq` decides. A turn that failed is started and ended like any
    other, and its hash covers the deltas that came before it failed.

    Args:
        events: Those so far, for a writer that is made late.
    """

    def __init__(self, events: Iterable[TraceEvent] = ()) -> None:
        self._events = [_well_formed(event) for event in events]

    def turn_started(self, turn_id: int, agent_id: str, seq: int, t_ms: int) -> None:
        """A turn starts.

        Args:
            turn_id: From 1, unique in the case.
            agent_id: Who speaks.
            seq: Place among all events of the case.
            t_ms: When, in ms since 1970 UTC.
        """
        self._events.append(TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.START, ""))

    def delta(self, turn_id: int, agent_id: str, seq: int, text: str, t_ms: int) -> None:
        """A piece of text comes; the other arguments are those of `turn_started`."""
        self._events.append(
            TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.DELTA, well_formed(text))
        )

    def turn_ended(self, turn_id: int, agent_id: str, seq: int, t_ms: int) -> None:
        """A turn ends, or fails; the arguments are those of `turn_started`."""
        self._events.append(TraceEvent(seq, t_ms, turn_id, agent_id, EventKind.END, ""))

    def turns(self) -> list[tuple[str, str]]:
        """(agent, text) of each turn so far in which something was said."""
        texts: dict[tuple[int, str], list[str]] = {}
        for event in self._events:
            if event.kind is EventKind.DELTA:
                texts.setdefault((event.turn_id, event.agent_id), []).append(event.text)
        return [(agent_id, "".join(text)) for (_, agent_id), text in texts.items()]

    def write(
        self,
        path: Path,
        *,
        case_id: str,
        mas_run_id: str,
        mac_commit: str,
        model: str,
        created_at: str,
        exaid_commit: str | None = None,
        decoding: Decoding | None = None,
        stub_mode: bool | None = None,
    ) -> None:
        """Write the trace file. Arguments are fields of `TraceMeta`; None leaves a field out.

        Raises:
            StorageError: It cannot be written.
            pydantic.ValidationError: An argument does not have the form that `TraceMeta` asks for.
        """
        events = sorted(self._events)
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
        write_gz(path, _trace_lines(meta, events))


def _well_formed(event: TraceEvent) -> TraceEvent:
    if event.text.isascii():
        return event
    return event._replace(text=well_formed(event.text))


def _t0_definition(t0: TraceEvent | None) -> str | None:
    if t0 is None:
        return None
    if t0.kind is EventKind.DELTA:
        return "t_emitted_ms of first stream_delta record"
    return "t_ms of first turn_boundary record"


def _trace_lines(meta: TraceMeta, events: Iterable[TraceEvent]) -> Iterator[bytes]:
    """The records are built by hand: a model for each delta would take most of the time."""
    yield dump_line(meta)
    texts: dict[int, list[str]] = {}
    for event in events:
        record: dict[str, Any] = {
            "case_id": meta.case_id,
            "seq": event.seq,
            "turn_id": event.turn_id,
            "agent_id": event.agent_id,
            "t_rel_ms": event.t_ms - meta.t0_emitted_ms,
        }
        if event.kind is EventKind.DELTA:
            texts.setdefault(event.turn_id, []).append(event.text)
            record["record_type"] = "stream_delta"
            record["delta_text"] = event.text
            record["t_emitted_ms"] = event.t_ms
        else:
            record["record_type"] = "turn_boundary"
            record["boundary"] = event.kind
            record["t_ms"] = event.t_ms
        if event.kind is EventKind.END:
            record["content_hash"] = content_hash(texts.pop(event.turn_id, ()))
            record["content_hash_input"] = (
                "UTF-8 bytes of concatenated delta_text in seq order for this turn"
            )
        yield dump_line(record)
