"""Convert published run logs and manifests of earlier versions to the current format.

Each change has a name and is counted under it; nothing is dropped silently. A field that the
earlier version lacks is derived from other fields where they determine it, is null where the
current format allows that, and otherwise gets the value that its change names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter

from evals.changes import Changes, Content
from evals.consistency import KINDS
from evals.delta_seqs import SeqsOf, to_deltas
from evals.run_logs import (
    EARLIER_SUFFIX,
    INDEX_FIELDS,
    LISTS,
    UNKNOWN_HASH,
    is_single_record,
    parse_version,
)
from exaid_core.config import VARIANTS
from exaid_core.ctu import ctu
from exaid_core.policy import TriggerPolicy
from exaid_core.trace.files import DETERMINISM, RecordError, validated
from exaid_core.trace.run_records import (
    RUN_SCHEMA_NAME,
    RUN_SCHEMA_VERSION,
    FilterResults,
    SummaryContent,
    SummaryFailure,
    TriggerType,
    decision_id,
    event_id,
)

Line = tuple[int, Content]
"""A record, preceded by its line number in the file."""

_POLICIES = {variant: policy for policy, variant in VARIANTS.items()}
_TRIGGERS = {"V1": TriggerType.TURN_END, "V2": TriggerType.TOKENGATE_FLUSH}
_CLINICAL = (
    "status_action",
    "key_findings",
    "differential_rationale",
    "uncertainty_confidence",
    "recommendation_next_step",
)
_REQUIRED_JUDGMENTS = tuple(
    name for name, field in FilterResults.model_fields.items() if field.is_required()
)
_NO_JUDGMENT = "the judge gave no judgement"
_REFERENCES = ("latest_summary_event_id", "summary_history_event_ids")


def bare_case_id(case_id: str) -> str:
    """Return a case id in the current format: `case-`, then letters, digits and hyphens."""
    bare = case_id.removesuffix(EARLIER_SUFFIX)
    bare = re.sub("[^A-Za-z0-9-]+", "-", bare)
    return bare if re.fullmatch("case-[A-Za-z0-9-]+", bare) else f"case-{bare}"


class _Published(BaseModel):
    """The fields that the import changes, with the types required in any version."""

    model_config = ConfigDict(strict=True)

    schema_version: str = ""
    case_id: str = ""
    variant_id: str = ""
    mas_run_id: str | None = None
    eval_run_id: str | None = None
    trigger_policy: str | None = None
    concept_extractor: dict[str, Any] | None = None
    start_seq: int | None = None
    end_seq: int | None = None
    llm_usage: dict[str, Any] | None = None
    latency_ms: FiniteFloat | None = None
    summary_semantics_text: str | None = None
    schema_ok: bool | None = None


_PUBLISHED = TypeAdapter(_Published)


def import_manifest(records: Iterable[Line], changes: Changes) -> list[Line]:
    """Return the records of a manifest in the current format.

    Args:
        records: Records as read from the file.
        changes: Counter of the changes made.
    """
    imported = []
    for number, content in records:
        record = dict(content)
        if record.get("record_type") == "manifest_meta":
            changes.set(record, "schema_version", "2.0.0")
        if isinstance(record.get("case_id"), str):
            changes.set(record, "case_id", bare_case_id(record["case_id"]))
        imported.append((number, changes.known(record)))
    return imported


def import_run_log(
    path: Path,
    records: Sequence[Line],
    changes: Changes,
    trace_of: Callable[[str], SeqsOf | None],
) -> list[Line]:
    """Return the records of a run log in the current format and order.

    Args:
        path: Path of the file, for error messages.
        records: Records as read from the file: one per line, or a single one.
        changes: Counter of the changes made.
        trace_of: Function that returns the deltas of a case, or None without its trace.

    Raises:
        RecordError: A record is not of a run log, or a field has the wrong type.
    """
    (first, meta), by_kind = _apart(path, records, changes)
    for number, content in ((first, meta), *(line for of in by_kind.values() for line in of)):
        validated(_PUBLISHED, path, number, content)
    bare = bare_case_id(meta.get("case_id", ""))
    variant = meta.get("variant_id", "")[:2]
    trace = trace_of(bare)
    version = parse_version(meta.get("schema_version", ""))[:2]
    meta = _run_meta(meta, bare, variant, changes)
    imported = [(first, meta)]
    flushes = [flush for _, flush in by_kind["tokengate_flush"]]
    ids: dict[str, str] = {}
    for kind, index in INDEX_FIELDS.items():
        for place, (number, content) in enumerate(_in_order(by_kind[kind], index, changes)):
            record = {"record_type": kind, **content}
            changes.set(record, "case_id", bare)
            changes.set(record, "variant_id", variant)
            changes.set(record, index, place)
            to_deltas(record, trace, flushes, changes)
            _time(record, trace, meta, changes)
            if kind == "buffer_decision":
                _decision(record, place, changes)
            elif kind == "summary_event":
                _summary(record, place, ids, version, changes)
            imported.append((number, changes.known(record)))
    return imported


def _apart(
    path: Path, records: Sequence[Line], changes: Changes
) -> tuple[Line, dict[str, list[Line]]]:
    """Return the meta record, and the other records by kind."""
    by_kind: dict[str, list[Line]] = {kind: [] for kind in INDEX_FIELDS}
    number, first = records[0]
    if is_single_record(first):
        changes.note("one record in all (exaid.run 1.2) made one a line")
        meta = {"record_type": "run_meta", **first}
        for kind, names in LISTS.items():
            for name in names:
                items = meta.pop(name, [])
                if not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
                    raise RecordError(path, number, f"{name}: not a list of records")
                by_kind[kind] += [(number, item) for item in items]
        return (number, meta), by_kind
    kinds = []
    for number_of, record in records[1:]:
        told = record.get("record_type")
        if not isinstance(told, str) or told not in by_kind:
            raise RecordError(path, number_of, f"record_type: {told!r} is none of a run log")
        by_kind[told].append((number_of, record))
        kinds.append(told)
    if kinds != sorted(kinds, key=list(INDEX_FIELDS).index):
        changes.note("records put in order by their kind")
    return (number, first), by_kind


def _in_order(lines: list[Line], index: str, changes: Changes) -> list[Line]:
    if not all(isinstance(record.get(index), int) for _, record in lines):
        return lines
    ordered = sorted(lines, key=lambda line: int(line[1][index]))
    if ordered != lines:
        changes.note(f"records put in order by {index}")
    return ordered


def _run_meta(meta: Content, case_id: str, variant: str, changes: Changes) -> Content:
    meta = dict(meta)
    changes.set(meta, "schema_name", RUN_SCHEMA_NAME)
    changes.set(meta, "schema_version", RUN_SCHEMA_VERSION)
    changes.set(meta, "case_id", case_id)
    changes.set(meta, "variant_id", variant)
    for name, pattern in (("mas_run_id", "mas_"), ("eval_run_id", "eval-")):
        allowed = "[^a-z0-9_]+" if name == "mas_run_id" else "[^A-Za-z0-9-]+"
        raw = str(meta.get(name) or "unknown")
        told = re.sub(allowed, pattern[-1], raw.lower() if name == "mas_run_id" else raw)
        changes.set(meta, name, told if told.startswith(pattern) else pattern + told)
    if meta.get("trigger_policy") not in set(TriggerPolicy):
        changes.set(meta, "trigger_policy", _POLICIES.get(variant))
    for name in ("trace_file_hash", "trace_dataset_hash"):
        changes.default(meta, name, None)
    changes.default(meta, "tokengate_config_hash", UNKNOWN_HASH)
    extractor = dict(meta.get("concept_extractor") or {})
    is_scispacy = "scispacy_model" in extractor
    for name, value in (
        ("name", "scispacy" if is_scispacy else "unknown"),
        ("version", extractor.get("scispacy_version", "unknown")),
        ("terminology_hash", None),
    ):
        changes.default(extractor, name, value, "concept_extractor.")
    meta["concept_extractor"] = extractor
    changes.default(meta, "stoplists_provenance", {})
    changes.default(meta, "history_k", 3)
    changes.default(meta, "timestamp_derivation", {"method": "trace_t_emitted_ms"})
    changes.default(meta, "determinism", DETERMINISM.model_dump(mode="json"))
    return changes.known(meta)


def _decision(record: Content, place: int, changes: Changes) -> None:
    expected = decision_id(record["case_id"], record["variant_id"], place)
    changes.set(record, "decision_id", expected)
    if "input_ctu" not in record:
        usage = record.get("llm_usage") or {}
        changes.default(record, "input_ctu", usage.get("prompt_ctu", 0))
    results = record.get("filter_results")
    if isinstance(results, dict) and any(results.get(name) is None for name in _REQUIRED_JUDGMENTS):
        changes.set(record, "filter_results", None, "left out, as the judge gave no judgement")
    was_called = isinstance(results, dict) or record.get("latency_ms") is not None
    if was_called and record.get("filter_results") is None and not record.get("failure_mode"):
        changes.set(record, "failure_mode", _NO_JUDGMENT, f"not there, now {_NO_JUDGMENT}")
    _usage(record, changes)


def _summary(
    record: Content, place: int, ids: dict[str, str], version: tuple[int, ...], changes: Changes
) -> None:
    expected = event_id(record["case_id"], record["variant_id"], place)
    told = record.get("event_id")
    changes.set(record, "event_id", expected)
    if isinstance(told, str):
        ids[told] = expected
    for name in _REFERENCES:
        named = record.get(name)
        if isinstance(named, str) and named in ids:
            changes.set(record, name, ids[named])
        elif isinstance(named, list):
            changes.set(record, name, [ids.get(str(id_), id_) for id_ in named])
    changes.default(record, "summary_history_event_ids", [])
    changes.default(
        record,
        "trigger_type",
        _TRIGGERS.get(record["variant_id"], TriggerType.BUFFER_AGENT),
    )
    content = record.get("summary_content")
    if isinstance(content, dict) and not set(SummaryContent.model_fields) <= content.keys():
        changes.set(record, "summary_content", None, "left out, as fields of it are not there")
    changes.default(record, "schema_ok", isinstance(content, dict) or version < (1, 3))
    ok = record["schema_ok"] is True
    changes.default(record, "failure_mode", None if ok else _failure(record))
    changes.default(record, "limits_ok", ok)
    changes.default(record, "summarizer_input_hash", UNKNOWN_HASH)
    if record.get("summary_semantics_text") is None:
        fields = content if isinstance(content, dict) else {}
        text = " ".join(str(fields[name]) for name in _CLINICAL if fields.get(name))
        changes.set(record, "summary_semantics_text", text)
    changes.default(record, "summary_ctu", ctu(record["summary_semantics_text"]))
    _usage(record, changes)


def _failure(record: Content) -> str:
    told = str(record.get("schema_error") or "")
    of_length = SummaryFailure.LENGTH_LIMIT_VIOLATION
    return of_length if of_length in told else SummaryFailure.SCHEMA_VALIDATION_ERROR


def _usage(record: Content, changes: Changes) -> None:
    usage = dict(record.get("llm_usage") or {})
    nothing: Content = {"prompt_ctu": 0, "completion_ctu": 0, "model_id": "unknown"}
    for name, value in nothing.items():
        changes.default(usage, name, value, "llm_usage.")
    record["llm_usage"] = usage
    latency = record.get("latency_ms")
    if isinstance(latency, float) and latency >= 0:
        changes.set(record, "latency_ms", round(latency), "rounded to whole ms")


def _time(record: Content, trace: SeqsOf | None, meta: Content, changes: Changes) -> None:
    if record.get("timestamp"):
        return
    end = record.get("end_seq")
    at = trace.time(end) if trace is not None and isinstance(end, int) else None
    how = "of its last delta" if at else "that of the log, as the trace is not there"
    changes.set(record, "timestamp", at or meta.get("created_at"), how)


def format_of(record: Mapping[str, Any]) -> str:
    """Return the format of a file's first record, such as `exaid.run`; empty if unknown."""
    lists = {name for names in LISTS.values() for name in names}
    if is_single_record(record) and record.keys() & lists:
        return "exaid.run"
    if record.get("schema_name") == "exaid.metrics":
        return "exaid.metrics"
    kind = record.get("record_type")
    return next((name for name, kinds in KINDS.items() if kind == kinds[0]), "")
