"""Records of a trace file: exaid.trace 2.0.0 (docs/evals.md).

`content_hash_input` and the wording of `t0_definition` are those of published traces of the same
version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, model_validator

from mdagents_llm.files.text import well_formed

TRACE_SCHEMA_VERSION: Literal["2.0.0"] = "2.0.0"
LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that a date of four digits can name."""


def hash_of(content: bytes) -> str:
    """Return the hash of some bytes, in the form of `Hash`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def content_hash(deltas: Iterable[str]) -> str:
    """Return the hash of the UTF-8 text of `deltas`, concatenated.

    A delta that is not well formed counts in its written form: see `well_formed`.
    """
    return hash_of("".join(map(well_formed, deltas)).encode())


Text = Annotated[str, AfterValidator(well_formed)]
"""Text that can be written as UTF-8."""
Count = Annotated[int, Field(strict=True, ge=0)]
EpochMs = Annotated[int, Field(strict=True, ge=0, le=LAST_MS)]
"""Milliseconds since 1970-01-01 UTC."""
Hash = Annotated[str, Field(pattern=r"^sha256:[a-f0-9]{64}$")]
CaseId = Annotated[str, Field(pattern=r"^case-[A-Za-z0-9-]+$")]
MasRunId = Annotated[str, Field(pattern=r"^mas_[a-z0-9_]+$")]
Timestamp = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
        r"(Z|[+-][0-9]{2}:[0-9]{2})$",
        json_schema_extra={"format": "date-time"},
    ),
]
"""ISO 8601 with a time zone."""


class Boundary(StrEnum):
    """Which side of a turn."""

    START = "start"
    END = "end"


class Record(BaseModel):
    """Base of all records of trace files and run logs, and of the parts of records.

    A field that was not set is left out of the file; one that was set to None is written as null
    (see `exaid_core.trace.files.dump_line`).
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,  # JSON has no such numbers
        defer_build=True,  # a run needs most of them only once it is under way
    )


class Decoding(Record):
    """How the model sampled."""

    temperature: Annotated[float, Field(strict=True, ge=0)]
    """0 for greedy decoding."""
    top_p: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """Nucleus sampling; null for the provider's default."""
    max_tokens: Count | None = None
    """Limit on the tokens of one reply; null for no limit."""
    seed: Annotated[int, Field(strict=True)] | None = None
    """Random seed of the request; null without one."""


class TraceMeta(Record):
    """Origin and size of a trace. The first record of its file."""

    record_type: Literal["trace_meta"]
    """Tells the records of a file apart."""
    schema_version: Literal["2.0.0"]
    """Version of exaid.trace."""
    case_id: CaseId
    """The case whose turns these are."""
    mas_run_id: MasRunId
    """The run of the multi-agent system that made the trace."""
    mac_commit: str
    """Revision of the code of the multi-agent system."""
    exaid_commit: str | None = None
    """Revision of EXAID that recorded the trace."""
    model: str
    """Name of the model that the agents used."""
    decoding: Decoding | None = None
    """How that model sampled."""
    created_at: Timestamp
    """When the file was written."""
    t0_emitted_ms: EpochMs
    """The instant from which `t_rel_ms` counts, in ms since 1970 UTC."""
    t0_definition: str | None = None
    """What that instant is, in words."""
    stub_mode: StrictBool | None = None
    """Whether canned replies stood in for a model."""
    total_turns: Count | None = None
    """Turns in the file."""
    total_deltas: Count | None = None
    """`stream_delta` records in the file."""


class _TurnEvent(Record):
    case_id: CaseId
    """As in `trace_meta`."""
    seq: Count
    """Place among all events of the case, whichever turn they belong to."""
    turn_id: Annotated[int, Field(strict=True, ge=1)]
    """The agent turn, unique in the case."""
    agent_id: str
    """The agent whose turn it is."""
    t_rel_ms: Annotated[int, Field(strict=True, ge=-LAST_MS, le=LAST_MS)]
    """Milliseconds after `t0_emitted_ms`; negative for what came before the first delta."""


class StreamDelta(_TurnEvent):
    """A piece of text, as it came from the model."""

    record_type: Literal["stream_delta"]
    """Tells the records of a file apart."""
    delta_text: Text
    """The piece. The text of a turn is its pieces, concatenated."""
    t_emitted_ms: EpochMs
    """When it came, in ms since 1970 UTC."""


def _hash_at_the_end_only(schema: dict[str, Any]) -> None:
    schema["if"] = {"properties": {"boundary": {"const": Boundary.START.value}}}
    schema["then"] = {"properties": {"content_hash": {"type": "null"}}}


class TurnBoundary(_TurnEvent):
    """The start or the end of an agent's turn. Turns of several agents may overlap."""

    model_config = ConfigDict(json_schema_extra=_hash_at_the_end_only)

    record_type: Literal["turn_boundary"]
    """Tells the records of a file apart."""
    boundary: Boundary
    """Which side of the turn."""
    t_ms: EpochMs
    """When, in ms since 1970 UTC."""
    content_hash: Hash | None = None
    """At the end only: hash of the UTF-8 text of the turn's deltas in seq order."""
    content_hash_input: str | None = None
    """What `content_hash` is a hash of, in words."""

    @model_validator(mode="after")
    def _no_hash_at_the_start(self) -> Self:
        if self.boundary is Boundary.START and self.content_hash is not None:
            raise ValueError("the start of a turn has no content_hash")
        return self


TraceRecord: TypeAlias = Annotated[
    TraceMeta | StreamDelta | TurnBoundary, Field(discriminator="record_type")
]
"""Any record of a trace file."""
