"""Summaries of a run log, of any program that writes exaid.run 1.3 to 1.5, with their times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, field_validator

from exaid_core.schema.agent_summary import AgentSummary, SummaryDraft, seq_ranges
from exaid_core.trace.files import RecordError, read_records, validated
from exaid_core.trace.records import Count, Text, Timestamp
from exaid_core.trace.traces import Trace
from mdagents_llm.clock import ms_of

_EARLIER_SUFFIX = ".trace"  # of case ids in published logs
_MOST_MS = 3_600_000  # an hour: a longer latency is not one of a model


class _Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class LogMeta(_Lenient):
    """First record of a run log."""

    record_type: Literal["run_meta"]
    """Type of the record."""
    case_id: Text
    """Id of the case, as in its trace."""
    variant_id: Text
    """Variant of EXAID, such as `V0`."""


class _Event(_Lenient):
    timestamp: Timestamp
    start_seq: Count
    end_seq: Count
    source_seqs: tuple[Count, ...] | None = None
    latency_ms: Count | None = None
    schema_ok: bool = True
    summary_content: SummaryDraft | None = None
    unsupported_terms: tuple[Text, ...] | None = None
    dissent_missing: bool | None = None
    alerts: tuple[Text, ...] | None = None
    alert_missing: bool | None = None
    remarks: tuple[Text, ...] | None = None

    @field_validator("timestamp")
    @classmethod
    def _is_a_time(cls, value: str) -> str:
        ms_of(value)
        return value


_META, _EVENT = TypeAdapter(LogMeta), TypeAdapter(_Event)
_CHECKED = ("unsupported_terms", "dissent_missing", "alerts", "alert_missing", "remarks")


def read_log_meta(path: Path) -> LogMeta:
    """Return the first record of a run log, its case id as in the trace.

    Raises:
        RecordError: The file cannot be read or is not a run log.
    """
    for number, content in read_records(path):
        meta = validated(_META, path, number, content)
        return meta.model_copy(update={"case_id": meta.case_id.removesuffix(_EARLIER_SUFFIX)})
    raise RecordError(path, 1, "a run log begins with a run_meta record")


def read_summaries(trace: Trace, path: Path) -> list[tuple[int, AgentSummary]]:
    """Return (time in ms since 1970 UTC, summary) of each summary of a run log, in order.

    Args:
        trace: Trace of the same case; it says who spoke.
        path: The run log.

    Raises:
        RecordError: The file cannot be read, or a summary is invalid.
    """
    deltas = sorted(delta for turn in trace.turns for delta in turn.deltas)
    seqs = [delta.seq for delta in deltas]
    found = []
    for number, content in read_records(path):
        if content.get("record_type") != "summary_event":
            continue
        event = validated(_EVENT, path, number, content)
        if not event.schema_ok or event.summary_content is None:
            continue  # a failed attempt
        covered = deltas[bisect_left(seqs, event.start_seq) : bisect_right(seqs, event.end_seq)]
        if event.source_seqs is not None:
            exact = frozenset(event.source_seqs)
            covered = [delta for delta in covered if delta.seq in exact]
        # Published logs have times of another clock; the words have those of the trace.
        said = max((delta.t_ms for delta in covered), default=ms_of(event.timestamp))
        at = said + min(event.latency_ms or 0, _MOST_MS)
        checked: dict[str, Any] = {
            name: value for name in _CHECKED if (value := getattr(event, name)) is not None
        }
        summary = AgentSummary.from_draft(event.summary_content).model_copy(
            update={
                "agents": tuple(dict.fromkeys(delta.agent_id for delta in covered)),
                "source_seqs": seq_ranges(delta.seq for delta in covered),
                **checked,
            }
        )
        found.append((at, summary))
    return sorted(found, key=lambda entry: entry[0])
