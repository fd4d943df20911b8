"""Read run logs: exaid.run 1.3 to 1.5 with one record per line, and 1.2 with a single record.

Files up to 1.2 are read as one JSON object with the fields of `run_meta` and a list for each kind
of record, under any of the names in `LISTS`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from exaid_core.trace.files import RecordError, read_records, validated
from exaid_core.trace.records import CaseId, Text, hash_of
from exaid_core.trace.run_records import BufferAction, VariantId
from mdagents_llm.clock import ms_of

LISTS = {
    "tokengate_flush": ("tokengate_flushes", "flushes"),
    "buffer_decision": ("buffer_decisions", "decisions"),
    "summary_event": ("summary_events", "summaries"),
}
INDEX_FIELDS = {
    "tokengate_flush": "flush_index",
    "buffer_decision": "decision_index",
    "summary_event": "event_index",
}
"""Record kind -> its field with the place among records of the kind, in the order of a run."""
EARLIER_SUFFIX = ".trace"
"""Suffix of case ids in published logs."""
UNKNOWN_HASH = hash_of(b"null")
"""Placeholder for a hash that the current format requires and earlier ones lacked."""
_SINGLE_RECORD_BEFORE = (1, 3)
_LAST = (1, 5)
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,9}")

_MOST = 2**53
"""Largest integer that any JSON reader keeps exactly; larger ones would distort a mean."""


def _readable_time(text: str) -> str:
    if text:
        ms_of(text)
    return text


def _nothing_for_null(value: object) -> object:
    return {} if value is None else value


_Number = Annotated[int, Field(ge=0, le=_MOST)]
_Ms = Annotated[float, Field(ge=0, le=_MOST)]
_Time = Annotated[str, AfterValidator(_readable_time)]


class _Lenient(BaseModel):
    """The fields of a record of any version that metrics need."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Usage(_Lenient):
    """Model usage of one step."""

    prompt_ctu: _Number = 0
    completion_ctu: _Number = 0


_Usage = Annotated[Usage, BeforeValidator(_nothing_for_null)]


class Meta(_Lenient):
    """The header of a run log."""

    schema_version: str
    case_id: CaseId
    variant_id: VariantId
    created_at: _Time = ""
    eval_run_id: str = ""
    trace_file_hash: str | None = None
    trace_dataset_hash: str | None = None
    tokengate_config_hash: str | None = None


class Chunk(_Lenient):
    """A chunk of text that the TokenGate flushed."""

    flush_index: _Number = 0
    timestamp: _Time = ""
    start_seq: _Number
    end_seq: _Number
    accumulated_ctu: _Number = 0
    trigger_reason: Text | None = None


class Decision(_Lenient):
    """A decision of the buffer agent on one chunk or more."""

    start_seq: _Number | None = None
    end_seq: _Number | None = None
    covered: tuple[_Number, ...] | None = None
    input_ctu: _Number = 0
    decision: str = BufferAction.BUFFER
    llm_usage: _Usage = Usage()
    latency_ms: _Ms | None = None


class Event(_Lenient):
    """A summary event, successful or failed."""

    event_id: str = ""
    start_seq: _Number
    end_seq: _Number
    source_seqs: tuple[_Number, ...] | None = None
    latest_summary_event_id: str | None = None
    schema_ok: bool = True
    summary_semantics_text: Text | None = None
    summary_ctu: _Number = 0
    llm_usage: _Usage = Usage()
    latency_ms: _Ms | None = None

    @property
    def text(self) -> str:
        """Summary text for clinicians; empty for a failed summary."""
        return (self.summary_semantics_text or "") if self.schema_ok else ""

    def covered(self, seqs: Sequence[int]) -> frozenset[int]:
        """Return the deltas that the summary covers.

        Args:
            seqs: Sequence numbers of all deltas, ascending.
        """
        if not self.schema_ok:
            return frozenset()
        if self.source_seqs is not None:
            return frozenset(self.source_seqs).intersection(seqs)
        return frozenset(seqs[bisect_left(seqs, self.start_seq) : bisect_right(seqs, self.end_seq)])


@dataclass(frozen=True, slots=True)
class RunLogFile:
    """The parsed content of a run log file."""

    path: Path
    meta: Meta
    chunks: tuple[Chunk, ...]
    decisions: tuple[Decision, ...]
    events: tuple[Event, ...]


_META = TypeAdapter(Meta)
_KINDS: Mapping[str, TypeAdapter[Any]] = {
    "tokengate_flush": TypeAdapter(Chunk),
    "buffer_decision": TypeAdapter(Decision),
    "summary_event": TypeAdapter(Event),
}
"""Type adapter by record kind, in the order of the fields of `RunLogFile`."""


def parse_version(text: object) -> tuple[int, ...]:
    """Parse a version such as `1.2.0` into (1, 2, 0); return () if it is not one."""
    told = str(text)
    return tuple(map(int, told.split("."))) if _VERSION.fullmatch(told) else ()


def is_single_record(content: Mapping[str, Any]) -> bool:
    """Return whether a record is a whole run log of exaid.run 1.2 or earlier."""
    version = parse_version(content.get("schema_version", ""))
    return (
        () < version < _SINGLE_RECORD_BEFORE
        and "record_type" not in content
        and content.get("schema_name", "exaid.run") == "exaid.run"
    )


def read_run_log(path: Path) -> RunLogFile:
    """Read a run log of any version.

    Raises:
        RecordError: The file cannot be read, is of an unknown version, or does not begin with a
            `run_meta` record.
    """
    records = read_records(path)
    number, first = next(records, (1, {}))
    if str(first.get("case_id")).endswith(EARLIER_SUFFIX):
        what = f"case_id: it ends in {EARLIER_SUFFIX}, as in published logs: import them first"
        raise RecordError(path, number, f"{what} (evals.cli.import_upstream)")
    if is_single_record(first):
        meta = validated(_META, path, number, first)
        return RunLogFile(path, meta, *map(tuple, _lists(path, number, first).values()))
    if first.get("record_type") != "run_meta":
        raise RecordError(path, number, "a run log begins with a run_meta record")
    told = first.get("schema_version", "")
    if not _SINGLE_RECORD_BEFORE <= parse_version(told)[:2] <= _LAST:
        raise RecordError(path, number, f"exaid.run {told!r} cannot be read, only 1.2 to 1.5")
    meta = validated(_META, path, number, first)
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for number, content in records:
        kind = content.get("record_type")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise RecordError(path, number, f"record_type: {kind!r} is none of a run log")
        found[kind].append(validated(_KINDS[kind], path, number, content))
    return RunLogFile(path, meta, *map(tuple, found.values()))


def _lists(path: Path, number: int, content: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the records of a single-record run log, by kind."""
    found = {}
    for kind, names in LISTS.items():
        name = next((name for name in names if name in content), names[0])
        items: object = content.get(name, [])
        if not isinstance(items, list):
            raise RecordError(path, number, f"{name}: not a list")
        try:
            found[kind] = [validated(_KINDS[kind], path, number, item) for item in items]
        except RecordError as error:
            raise RecordError(path, number, f"{name}: {error.what}") from error
    return found
