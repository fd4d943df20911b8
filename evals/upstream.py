"""Brings published run logs and manifests of earlier forms into the present one.

Each change has a name, and is counted under it; nothing is dropped without a word. A field that the
earlier form does not have is derived from others where they decide it, is null where the present
form allows that, and else has the value that its change names.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from evals.consistency import KINDS
from evals.manifest import ManifestMeta, Provenance, Summary, TraceEntry
from evals.run_logs import (
    EARLIER_SUFFIX,
    LISTS,
    UNKNOWN_HASH,
    is_single_record,
    parse_version,
)
from exaid_core.config import VARIANTS
from exaid_core.ctu import ctu
from exaid_core.policy import TriggerPolicy
from exaid_core.trace.files import DETERMINISM
from exaid_core.trace.run_records import (
    RUN_SCHEMA_NAME,
    RUN_SCHEMA_VERSION,
    BufferDecision,
    ConceptExtractorInfo,
    Determinism,
    FilterResults,
    LlmUsage,
    RunMeta,
    StoplistsProvenance,
    SummaryContent,
    SummaryEvent,
    SummaryFailure,
    TimestampDerivation,
    TokengateFlush,
    TriggerType,
    decision_id,
    event_id,
)
from exaid_core.trace.traces import Trace
from infra.clock import timestamp_of

Content = dict[str, Any]

_MODELS: Mapping[str, type[BaseModel]] = {
    "run_meta": RunMeta,
    "tokengate_flush": TokengateFlush,
    "buffer_decision": BufferDecision,
    "summary_event": SummaryEvent,
    "manifest_meta": ManifestMeta,
    "provenance": Provenance,
    "trace_entry": TraceEntry,
    "summary": Summary,
}
_INDICES = {
    "tokengate_flush": "flush_index",
    "buffer_decision": "decision_index",
    "summary_event": "event_index",
}
_POLICIES = {variant: policy for policy, variant in VARIANTS.items()}
_TRIGGERS = {"V1": TriggerType.TURN_END, "V2": TriggerType.TOKENGATE_FLUSH}
_CLINICAL = (
    "status_action",
    "key_findings",
    "differential_rationale",
    "uncertainty_confidence",
    "recommendation_next_step",
)
_REFERENCES = ("latest_summary_event_id", "summary_history_event_ids")


class Changes:
    """What was changed, by name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, what: str, count: int = 1) -> None:
        """Count a change."""
        self.counts[what] += count


class SeqsOf:
    """The sequence numbers and times of a trace's deltas.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        deltas = sorted((d.seq, d.t_ms) for turn in trace.turns for d in turn.deltas)
        self.seqs = [seq for seq, _ in deltas]
        self._times = dict(deltas)

    def between(self, start: int, end: int) -> list[int]:
        """Return the deltas from `start` to `end`, both included."""
        return self.seqs[bisect_left(self.seqs, start) : bisect_right(self.seqs, end)]

    def time(self, end_seq: int) -> str | None:
        """Return the time of the last delta up to `end_seq`, ISO 8601; None without one."""
        at = bisect_right(self.seqs, end_seq)
        return timestamp_of(self._times[self.seqs[at - 1]]) if at else None


def bare_case_id(case_id: str) -> str:
    """Return a case id in the form that records have: `case-`, letters, digits and hyphens."""
    bare = case_id.removesuffix(EARLIER_SUFFIX)
    bare = re.sub("[^A-Za-z0-9-]+", "-", bare)
    return bare if re.fullmatch("case-[A-Za-z0-9-]+", bare) else f"case-{bare}"


def import_manifest(records: Iterable[Content], changes: Changes) -> list[Content]:
    """Return the records of a manifest in the present form.

    Args:
        records: As they are in the file.
        changes: Counts what was changed.
    """
    imported = []
    for record in records:
        record = dict(record)
        if record.get("record_type") == "manifest_meta":
            _set(record, "schema_version", "2.0.0", changes)
        if isinstance(record.get("case_id"), str):
            _set(record, "case_id", bare_case_id(record["case_id"]), changes)
        imported.append(_known(record, changes))
    return imported


def import_run_log(
    records: Sequence[Content], changes: Changes, trace_of: Callable[[str], SeqsOf | None]
) -> list[Content]:
    """Return the records of a run log in the present form, in their order.

    Args:
        records: As they are in the file: one for each line, or one in all.
        changes: Counts what was changed.
        trace_of: Gives the deltas of a case; None: its trace is not there.

    Raises:
        ValueError: A record is not one of a run log.
    """
    meta, by_kind = _apart(records, changes)
    case_id = str(meta.get("case_id", ""))
    bare = bare_case_id(case_id)
    variant = str(meta.get("variant_id", ""))[:2]
    trace = trace_of(bare)
    version = parse_version(meta.get("schema_version", ""))[:2]
    meta = _run_meta(meta, bare, variant, changes)
    imported = [meta]
    ids: dict[str, str] = {}
    for kind, index in _INDICES.items():
        for place, content in enumerate(_in_order(by_kind[kind], index, changes)):
            record = {"record_type": kind, **content}
            _set(record, "case_id", bare, changes)
            _set(record, "variant_id", variant, changes)
            _set(record, index, place, changes)
            _to_deltas(record, trace, by_kind["tokengate_flush"], variant, changes)
            _time(record, trace, meta, changes)
            if kind == "buffer_decision":
                _decision(record, place, changes)
            elif kind == "summary_event":
                _summary(record, place, ids, version, changes)
            imported.append(_known(record, changes))
    return imported


def _apart(
    records: Sequence[Content], changes: Changes
) -> tuple[Content, dict[str, list[Content]]]:
    """Return the meta record, and the others by their kind."""
    by_kind: dict[str, list[Content]] = {kind: [] for kind in _INDICES}
    first = dict(records[0])
    if is_single_record(first):
        changes.note("one record in all (exaid.run 1.2) made one a line")
        for kind, names in LISTS.items():
            for name in names:
                items = first.pop(name, [])
                if not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
                    raise ValueError(f"{name}: not a list of records")
                by_kind[kind] += items
        return {"record_type": "run_meta", **first}, by_kind
    kinds = []
    for record in records[1:]:
        told = record.get("record_type")
        if not isinstance(told, str) or told not in by_kind:
            raise ValueError(f"record_type: {told!r} is none of a run log")
        by_kind[told].append(record)
        kinds.append(told)
    if kinds != sorted(kinds, key=list(_INDICES).index):
        changes.note("records put in order by their kind")
    return first, by_kind


def _in_order(records: list[Content], index: str, changes: Changes) -> list[Content]:
    numbers = [record.get(index) for record in records]
    if not all(isinstance(number, int) for number in numbers):
        return records
    ordered = sorted(records, key=lambda record: int(record[index]))
    if ordered != records:
        changes.note(f"records put in order by {index}")
    return ordered


def _run_meta(meta: Content, case_id: str, variant: str, changes: Changes) -> Content:
    meta = dict(meta)
    _set(meta, "schema_name", RUN_SCHEMA_NAME, changes)
    _set(meta, "schema_version", RUN_SCHEMA_VERSION, changes)
    _set(meta, "case_id", case_id, changes)
    _set(meta, "variant_id", variant, changes)
    for name, pattern in (("mas_run_id", "mas_"), ("eval_run_id", "eval-")):
        allowed = "[^a-z0-9_]+" if name == "mas_run_id" else "[^A-Za-z0-9-]+"
        raw = str(meta.get(name) or "unknown")
        told = re.sub(allowed, pattern[-1], raw.lower() if name == "mas_run_id" else raw)
        _set(meta, name, told if told.startswith(pattern) else pattern + told, changes)
    if meta.get("trigger_policy") not in set(TriggerPolicy):
        _set(meta, "trigger_policy", _POLICIES.get(variant), changes)
    for name in ("trace_file_hash", "trace_dataset_hash"):
        _default(meta, name, None, changes)
    _default(meta, "tokengate_config_hash", UNKNOWN_HASH, changes)
    extractor = dict(meta.get("concept_extractor") or {})
    is_scispacy = "scispacy_model" in extractor
    for name, value in (
        ("name", "scispacy" if is_scispacy else "unknown"),
        ("version", extractor.get("scispacy_version", "unknown")),
        ("terminology_hash", None),
    ):
        _default(extractor, name, value, changes, "concept_extractor.")
    meta["concept_extractor"] = extractor
    _default(meta, "stoplists_provenance", {}, changes)
    _default(meta, "history_k", 3, changes)
    _default(meta, "timestamp_derivation", {"method": "trace_t_emitted_ms"}, changes)
    _default(meta, "determinism", DETERMINISM.model_dump(mode="json"), changes)
    return _known(meta, changes)


def _decision(record: Content, place: int, changes: Changes) -> None:
    expected = decision_id(record["case_id"], record["variant_id"], place)
    _set(record, "decision_id", expected, changes)
    if "input_ctu" not in record:
        usage = record.get("llm_usage") or {}
        _default(record, "input_ctu", usage.get("prompt_ctu", 0), changes)
    _usage(record, changes)


def _summary(
    record: Content, place: int, ids: dict[str, str], version: tuple[int, ...], changes: Changes
) -> None:
    expected = event_id(record["case_id"], record["variant_id"], place)
    told = record.get("event_id")
    _set(record, "event_id", expected, changes)
    if isinstance(told, str):
        ids[told] = expected
    for name in _REFERENCES:
        named = record.get(name)
        if isinstance(named, str) and named in ids:
            _set(record, name, ids[named], changes)
        elif isinstance(named, list):
            _set(record, name, [ids.get(str(id_), id_) for id_ in named], changes)
    _default(record, "summary_history_event_ids", [], changes)
    _default(
        record,
        "trigger_type",
        _TRIGGERS.get(record["variant_id"], TriggerType.BUFFER_AGENT),
        changes,
    )
    content = record.get("summary_content")
    if isinstance(content, dict) and not set(SummaryContent.model_fields) <= content.keys():
        _set(record, "summary_content", None, changes, "left out, as fields of it are not there")
    _default(record, "schema_ok", isinstance(content, dict) or version < (1, 3), changes)
    ok = record["schema_ok"] is True
    _default(record, "failure_mode", None if ok else _failure(record), changes)
    _default(record, "limits_ok", ok, changes)
    _default(record, "summarizer_input_hash", UNKNOWN_HASH, changes)
    if record.get("summary_semantics_text") is None:
        fields = content if isinstance(content, dict) else {}
        text = " ".join(str(fields[name]) for name in _CLINICAL if fields.get(name))
        _set(record, "summary_semantics_text", text, changes)
    _default(record, "summary_ctu", ctu(record["summary_semantics_text"]), changes)
    _usage(record, changes)


def _failure(record: Content) -> str:
    told = str(record.get("schema_error") or "")
    of_length = SummaryFailure.LENGTH_LIMIT_VIOLATION
    return of_length if of_length in told else SummaryFailure.SCHEMA_VALIDATION_ERROR


def _usage(record: Content, changes: Changes) -> None:
    usage = dict(record.get("llm_usage") or {})
    nothing: Content = {"prompt_ctu": 0, "completion_ctu": 0, "model_id": "unknown"}
    for name, value in nothing.items():
        _default(usage, name, value, changes, "llm_usage.")
    record["llm_usage"] = usage
    latency = record.get("latency_ms")
    if isinstance(latency, float) and latency >= 0:
        _set(record, "latency_ms", round(latency), changes, "rounded to whole ms")


def _to_deltas(
    record: Content,
    trace: SeqsOf | None,
    flushes: Sequence[Content],
    variant: str,
    changes: Changes,
) -> None:
    """Let the record begin and end with deltas, and end after it begins.

    V1 had the boundaries of its turns. What a timer let through was logged after later text of
    other agents, and what was due from there to there seemed to end before it began.
    """
    start, end = record.get("start_seq"), record.get("end_seq")
    if not (isinstance(start, int) and isinstance(end, int)):
        return
    if end < start:
        due = _due(flushes, start, end)
        if trace is None or not due:
            changes.note("start_seq, end_seq: the end is before the start, left as they are")
            return
        seqs = sorted({seq for first, last in due for seq in trace.between(first, last)})
        if record["record_type"] == "summary_event":
            _set(record, "source_seqs", seqs, changes, "out of order, now those of its flushes")
        how = "the end was before the start, now from the first of its flushes to the last"
        _set(record, "start_seq", seqs[0], changes, how)
        _set(record, "end_seq", seqs[-1], changes, how)
        return
    if trace is None:
        if variant == "V1":
            changes.note("start_seq, end_seq: left as they are, the trace is not there")
        return
    inside = trace.between(start, end)
    if not inside:
        changes.note("start_seq, end_seq: left as they are, the trace has no delta between them")
        return
    for name, seq in (("start_seq", inside[0]), ("end_seq", inside[-1])):
        how = "no delta (the boundary of a turn), now the delta next to it"
        _set(record, name, seq, changes, how)


def _due(flushes: Sequence[Content], start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the flushes, in their order, from the one at `start` to that at `end`."""
    spans = [(flush.get("start_seq"), flush.get("end_seq")) for flush in flushes]
    first = next((i for i, span in enumerate(spans) if span[0] == start), len(spans))
    last = next((i for i, span in enumerate(spans) if span[1] == end), -1)
    due = [(a, b) for a, b in spans[first : last + 1] if isinstance(a, int) and isinstance(b, int)]
    return [(a, b) for a, b in due if a <= b]


def _time(record: Content, trace: SeqsOf | None, meta: Content, changes: Changes) -> None:
    if record.get("timestamp"):
        return
    end = record.get("end_seq")
    at = trace.time(end) if trace is not None and isinstance(end, int) else None
    how = "of its last delta" if at else "that of the log, as the trace is not there"
    _set(record, "timestamp", at or meta.get("created_at"), changes, how)


def _known(record: Content, changes: Changes) -> Content:
    """Return the record without the fields that the present form does not have."""
    kind = str(record.get("record_type"))
    return _of_model(record, _MODELS[kind], "", changes) if kind in _MODELS else record


_PARTS: Mapping[str, type[BaseModel]] = {
    "concept_extractor": ConceptExtractorInfo,
    "stoplists_provenance": StoplistsProvenance,
    "timestamp_derivation": TimestampDerivation,
    "determinism": Determinism,
    "llm_usage": LlmUsage,
    "filter_results": FilterResults,
    "summary_content": SummaryContent,
}


def _of_model(record: Content, model: type[BaseModel], place: str, changes: Changes) -> Content:
    kept: Content = {}
    for name, value in record.items():
        field = model.model_fields.get(name)
        if field is None:
            changes.note(f"{place}{name}: left out, the present form does not have it")
        elif name in _PARTS and isinstance(value, dict):
            kept[name] = _of_model(value, _PARTS[name], f"{place}{name}.", changes)
        elif value is None and type(None) not in get_args(field.annotation) and not _needed(field):
            changes.note(f"{place}{name}: null, left out")
        else:
            kept[name] = value
    return kept


def _needed(field: Any) -> bool:
    return bool(field.is_required())


def _default(record: Content, name: str, value: Any, changes: Changes, place: str = "") -> None:
    if name not in record:
        record[name] = value
        changes.note(f"{place}{name}: not there, now {_shown(value)}")


def _set(record: Content, name: str, value: Any, changes: Changes, how: str = "") -> None:
    if name in record and record[name] == value:
        return
    told = record.get(name)
    if not how:
        if name not in record:
            how = "not there, now derived"
        elif isinstance(told, list) or (isinstance(told, str) and EARLIER_SUFFIX in told):
            how = f"{EARLIER_SUFFIX} after the case id left off"
        elif name == "schema_version":
            how = f"{told}, now {value}"
        else:
            how = "written in the present form"
    record[name] = value
    changes.note(f"{name}: {how}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if value == UNKNOWN_HASH:
        return "the hash of `null`"
    if isinstance(value, str | int):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return "what this package writes" if value else "empty"


def format_of(record: Mapping[str, Any]) -> str:
    """Return the format that a first record belongs to: `exaid.run` …; empty if unknown."""
    lists = {name for names in LISTS.values() for name in names}
    if is_single_record(record) and record.keys() & lists:
        return "exaid.run"
    if record.get("schema_name") == "exaid.metrics":
        return "exaid.metrics"
    kind = record.get("record_type")
    return next((name for name, kinds in KINDS.items() if kind == kinds[0]), "")
