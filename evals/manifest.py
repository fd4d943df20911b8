"""The manifest of a set of frozen traces: exaid.manifest 2.0.0 (docs/how-to/evals.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StrictBool, TypeAdapter, ValidationError

from evals.files import file_hash, write_whole
from exaid_core.trace.files import dump_line, read_as
from exaid_core.trace.records import (
    CaseId,
    Count,
    Decoding,
    Hash,
    MasRunId,
    Record,
    Timestamp,
    hash_of,
)
from exaid_core.trace.traces import Trace, read_trace
from mdagents_llm.errors import ConfigError

MANIFEST_SCHEMA_VERSION: Literal["2.0.0"] = "2.0.0"
MANIFEST_FILE = "exaid.manifest.jsonl"


class ManifestMeta(Record):
    """The first record of a manifest, which identifies the set of traces."""

    record_type: Literal["manifest_meta"]
    """Discriminator between the kinds of records."""
    schema_version: Literal["2.0.0"]
    """Version of the exaid.manifest schema."""
    dataset_id: str
    """Name of the set of traces."""
    mas_run_id: MasRunId
    """Id of the run of the multi-agent system that made the traces."""
    created_at: Timestamp
    """Time at which the last of the traces was written."""
    stub_mode: StrictBool | None = None
    """Whether canned replies stood in for a model."""


class Provenance(Record):
    """Origin of the traces."""

    record_type: Literal["provenance"]
    """Discriminator between the kinds of records."""
    mac_fork_url: str
    """Source URL of the multi-agent system's code."""
    mac_commit: str
    """Revision of the multi-agent system's code."""
    exaid_commit: str
    """Revision of EXAID that recorded the traces."""
    model: str
    """Name of the model that the agents used."""
    decoding: Decoding
    """Sampling settings of that model."""
    case_list_hash: Hash
    """Hash of the list of cases."""
    case_list_hash_input: str | None = None
    """Description of the input of `case_list_hash`."""
    config_hash: Hash
    """Hash of the multi-agent system's settings."""
    trace_dataset_hash: Hash
    """Hash of all traces, as computed by `trace_dataset_hash`."""
    trace_dataset_hash_definition: str | None = None
    """Definition of `trace_dataset_hash` in words, as in published manifests."""


class TraceEntry(Record):
    """A record of one trace file."""

    record_type: Literal["trace_entry"]
    """Discriminator between the kinds of records."""
    case_id: CaseId
    """Id of the case."""
    file: str
    """Name of the file, relative to the folder of the traces."""
    sha256: Hash
    """SHA-256 of the file's bytes."""
    delta_count: Count
    """Number of `stream_delta` records in the trace."""
    turn_count: Count
    """Number of turns in the trace."""


class Summary(Record):
    """The totals of a manifest, its last record."""

    record_type: Literal["summary"]
    """Discriminator between the kinds of records."""
    total_cases: Count
    """Number of trace files."""
    total_deltas: Count
    """Number of `stream_delta` records in all traces."""
    total_turns: Count
    """Number of turns in all traces."""
    successful_cases: Count | None = None
    """Number of cases in which the multi-agent system succeeded."""
    failed_cases: Count | None = None
    """Number of cases in which the multi-agent system failed."""


ManifestRecord: TypeAlias = Annotated[
    ManifestMeta | Provenance | TraceEntry | Summary, Field(discriminator="record_type")
]
"""Any record of a manifest."""

_RECORD: TypeAdapter[ManifestRecord] = TypeAdapter(ManifestRecord)


def json_hash(content: object) -> str:
    """Return `sha256:` followed by the hash of compact JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hash_of(text.encode())


def case_list_hash(case_ids: Sequence[str]) -> str:
    """Return the hash of the sorted case ids."""
    return json_hash(sorted(case_ids))


def trace_dataset_hash(mas_run_id: str, cases_hash: str, traces: Sequence[tuple[str, str]]) -> str:
    """Return the hash of a set of traces.

    Args:
        mas_run_id: Id of the run that made the traces.
        cases_hash: Hash of the list of cases, from `case_list_hash`.
        traces: (case id, hash of the file's bytes) for each trace.
    """
    return json_hash(
        {
            "mas_run_id": mas_run_id,
            "case_list_hash": cases_hash,
            "traces": sorted(map(list, traces)),
        }
    )


def make_manifest(
    files: Sequence[Path],
    *,
    dataset_id: str = "",
    mac_fork_url: str = "unknown",
    config_hash: str = "",
    decoding: Decoding | None = None,
) -> list[ManifestRecord]:
    """Return the manifest of trace files; equal files give equal manifests.

    Args:
        files: Trace files, all from one run.
        dataset_id: Name of the set; if empty, a name derived from the run id.
        mac_fork_url: Source URL of the multi-agent system's code.
        config_hash: Hash of the system's settings; if empty, the hash of the settings in the
            traces.
        decoding: Sampling settings for traces that do not record them.

    Raises:
        RecordError: A trace is damaged.
        ConfigError: The traces come from several runs, or two are of the same case.
    """
    traces = [read_trace(path) for path in files]
    first = traces[0].meta
    for path, trace in zip(files, traces, strict=True):
        if (trace.meta.mas_run_id, trace.meta.model) != (first.mas_run_id, first.model):
            raise ConfigError(f"{path} is of another run than {files[0]}")
    case_ids = [trace.meta.case_id for trace in traces]
    if len(set(case_ids)) < len(case_ids):
        raise ConfigError("two of the traces are of the same case")
    hashes = [file_hash(path) for path in files]
    decoding = first.decoding or decoding or Decoding(temperature=0.0)
    cases_hash = case_list_hash(case_ids)
    settings = {
        "model": first.model,
        "mac_commit": first.mac_commit,
        "decoding": decoding.model_dump(),
    }
    entries = [
        TraceEntry(
            record_type="trace_entry",
            case_id=trace.meta.case_id,
            file=path.name,
            sha256=hash_,
            delta_count=sum(len(turn.deltas) for turn in trace.turns),
            turn_count=len(trace.turns),
        )
        for path, trace, hash_ in zip(files, traces, hashes, strict=True)
    ]
    return [
        ManifestMeta(
            record_type="manifest_meta",
            schema_version=MANIFEST_SCHEMA_VERSION,
            dataset_id=dataset_id or f"exaid_traces_{first.mas_run_id.removeprefix('mas_')}",
            mas_run_id=first.mas_run_id,
            created_at=max(trace.meta.created_at for trace in traces),
            stub_mode=any(trace.meta.stub_mode for trace in traces),
        ),
        Provenance(
            record_type="provenance",
            mac_fork_url=mac_fork_url,
            mac_commit=first.mac_commit,
            exaid_commit=first.exaid_commit or "unknown",
            model=first.model,
            decoding=decoding,
            case_list_hash=cases_hash,
            case_list_hash_input="compact JSON array of the sorted case ids",
            config_hash=config_hash or json_hash(settings),
            trace_dataset_hash=trace_dataset_hash(
                first.mas_run_id, cases_hash, list(zip(case_ids, hashes, strict=True))
            ),
        ),
        *sorted(entries, key=lambda entry: entry.case_id),
        _summary(traces),
    ]


def _summary(traces: Sequence[Trace]) -> Summary:
    return Summary(
        record_type="summary",
        total_cases=len(traces),
        total_deltas=sum(len(turn.deltas) for trace in traces for turn in trace.turns),
        total_turns=sum(len(trace.turns) for trace in traces),
    )


def write_manifest(path: Path, records: Sequence[ManifestRecord]) -> None:
    """Write a manifest.

    Raises:
        StorageError: The file cannot be written.
    """
    write_whole(path, b"".join(map(dump_line, records)))


def read_manifest(path: Path) -> list[ManifestRecord]:
    """Read a manifest.

    Raises:
        RecordError: The file is not a manifest.
    """
    return list(read_as(_RECORD, path))


def provenance(records: Sequence[ManifestRecord]) -> Provenance:
    """Return the provenance record of a manifest.

    Raises:
        ConfigError: The manifest has no provenance record.
    """
    for record in records:
        if isinstance(record, Provenance):
            return record
    raise ConfigError("the manifest has no provenance record")


def read_decoding(text: str) -> Decoding:
    """Parse decoding settings in JSON, such as `{"temperature": 0}`.

    Raises:
        ConfigError: The text is not JSON or not valid decoding settings.
    """
    try:
        return Decoding.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(f"decoding {text!r}: {error.errors()[0]['msg']}") from error
