"""The manifest of a set of frozen traces: exaid.manifest 2.0.0 (docs/evals.md)."""

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
    """Which set of traces this is. The first record of its file."""

    record_type: Literal["manifest_meta"]
    """Tells the records of a file apart."""
    schema_version: Literal["2.0.0"]
    """Version of exaid.manifest."""
    dataset_id: str
    """Name of the set."""
    mas_run_id: MasRunId
    """The run of the multi-agent system that made the traces."""
    created_at: Timestamp
    """When the last of the traces was written."""
    stub_mode: StrictBool | None = None
    """Whether canned replies stood in for a model."""


class Provenance(Record):
    """Where the traces come from."""

    record_type: Literal["provenance"]
    """Tells the records of a file apart."""
    mac_fork_url: str
    """Where the code of the multi-agent system came from."""
    mac_commit: str
    """Its revision."""
    exaid_commit: str
    """Revision of EXAID that recorded the traces."""
    model: str
    """Name of the model that the agents used."""
    decoding: Decoding
    """How that model sampled."""
    case_list_hash: Hash
    """Of the list of cases."""
    case_list_hash_input: str | None = None
    """What that is a hash of, in words."""
    config_hash: Hash
    """Of the settings of the multi-agent system."""
    trace_dataset_hash: Hash
    """Of all traces: see `trace_dataset_hash`."""
    trace_dataset_hash_definition: str | None = None
    """The same in words, as published manifests have it."""


class TraceEntry(Record):
    """One trace file."""

    record_type: Literal["trace_entry"]
    """Tells the records of a file apart."""
    case_id: CaseId
    """Its case."""
    file: str
    """Its name, relative to the folder of the traces."""
    sha256: Hash
    """Of its bytes."""
    delta_count: Count
    """`stream_delta` records in it."""
    turn_count: Count
    """Turns in it."""


class Summary(Record):
    """Totals. The last record of its file."""

    record_type: Literal["summary"]
    """Tells the records of a file apart."""
    total_cases: Count
    """Trace files."""
    total_deltas: Count
    """`stream_delta` records in all."""
    total_turns: Count
    """Turns in all."""
    successful_cases: Count | None = None
    """Cases whose run of the multi-agent system ended well."""
    failed_cases: Count | None = None
    """The others."""


ManifestRecord: TypeAlias = Annotated[
    ManifestMeta | Provenance | TraceEntry | Summary, Field(discriminator="record_type")
]
"""Any record of a manifest."""

_RECORD: TypeAdapter[ManifestRecord] = TypeAdapter(ManifestRecord)


def json_hash(content: object) -> str:
    """Return `sha256:` and the hash of compact JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hash_of(text.encode())


def case_list_hash(case_ids: Sequence[str]) -> str:
    """Return the hash of the sorted case ids."""
    return json_hash(sorted(case_ids))


def trace_dataset_hash(mas_run_id: str, cases_hash: str, traces: Sequence[tuple[str, str]]) -> str:
    """Return the hash of a set of traces.

    Args:
        mas_run_id: The run that made them.
        cases_hash: See `case_list_hash`.
        traces: (case id, hash of the file's bytes) of each.
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
        files: All of one run.
        dataset_id: Name of the set; empty: a name made from that of the run.
        mac_fork_url: Where the code of the multi-agent system came from.
        config_hash: Of its settings; empty: the hash of the settings in the traces.
        decoding: For traces that do not say how the model sampled.

    Raises:
        RecordError: A trace is damaged.
        ConfigError: The traces are of several runs, or several are of one case.
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
        ConfigError: The text is not JSON, or does not hold decoding settings.
    """
    try:
        return Decoding.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(f"decoding {text!r}: {error.errors()[0]['msg']}") from error
