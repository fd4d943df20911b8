"""Conversion of published records to the current format, with every change counted by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from evals.manifest import ManifestMeta, Provenance, Summary, TraceEntry
from evals.run_logs import EARLIER_SUFFIX, UNKNOWN_HASH
from exaid_core.trace.run_records import (
    BufferDecision,
    ConceptExtractorInfo,
    Determinism,
    FilterResults,
    LlmUsage,
    RunMeta,
    StoplistsProvenance,
    SummaryContent,
    SummaryEvent,
    TimestampDerivation,
    TokengateFlush,
)

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
_PARTS: Mapping[str, type[BaseModel]] = {
    "concept_extractor": ConceptExtractorInfo,
    "stoplists_provenance": StoplistsProvenance,
    "timestamp_derivation": TimestampDerivation,
    "determinism": Determinism,
    "llm_usage": LlmUsage,
    "filter_results": FilterResults,
    "summary_content": SummaryContent,
}


class Changes:
    """Changes fields of records and counts each kind of change."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Number of changes, by name."""

    def note(self, what: str) -> None:
        """Count a change made by the caller."""
        self.counts[what] += 1

    def default(self, record: Content, name: str, value: Any, place: str = "") -> None:
        """Set a field if the record does not have it.

        Args:
            record: Record or part of a record.
            name: Name of the field.
            value: Default value.
            place: Path of the part within its record, with a trailing dot.
        """
        if name not in record:
            record[name] = value
            self.note(f"{place}{name}: not there, now {_shown(value)}")

    def set(self, record: Content, name: str, value: Any, how: str = "") -> None:
        """Set a field, overwriting any value.

        Args:
            record: Record to change.
            name: Name of the field.
            value: New value.
            how: Name of the change; if empty, a name derived from the old value.
        """
        if name not in record or record[name] != value:
            self.note(f"{name}: {how or _named(record, name, value)}")
            record[name] = value

    def known(self, record: Content) -> Content:
        """Return the record without fields that the current format does not have."""
        model = _MODELS.get(str(record.get("record_type")))
        return record if model is None else self._of_model(record, model, "")

    def _of_model(self, record: Content, model: type[BaseModel], place: str) -> Content:
        kept: Content = {}
        for name, value in record.items():
            field = model.model_fields.get(name)
            if field is None:
                self.note(f"{place}{name}: left out, the present form does not have it")
            elif name in _PARTS and isinstance(value, dict):
                kept[name] = self._of_model(value, _PARTS[name], f"{place}{name}.")
            elif value is None and not field.is_required() and not _takes_null(field.annotation):
                self.note(f"{place}{name}: null, left out")
            else:
                kept[name] = value
        return kept


def _takes_null(annotation: Any) -> bool:
    return type(None) in get_args(annotation)


def _named(record: Content, name: str, value: Any) -> str:
    if name not in record:
        return "not there, now derived"
    told = record[name]
    if isinstance(told, list) or (isinstance(told, str) and EARLIER_SUFFIX in told):
        return f"{EARLIER_SUFFIX} after the case id left off"
    return f"{told}, now {value}" if name == "schema_version" else "written in the present form"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if value == UNKNOWN_HASH:
        return "the hash of `null`"
    if isinstance(value, str | int):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return "what this package writes" if value else "empty"
