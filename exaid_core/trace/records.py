"""Records of a trace file: exaid.trace 2.0.0 (docs/how-to/evals.md).

`content_hash_input` and the wording of `t0_definition` match published traces of this version.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StrictBool,
    model_validator,
)
from pydantic_core import core_schema

from exaid_core.trace.events import LONGEST_CASE_ID
from mdagents_llm.text import well_formed

TRACE_SCHEMA_VERSION: Literal["2.0.0"] = "2.0.0"
_LONGEST_SAFE = 60  # characters of an id in the name of a file
LAST_MS = 253_402_300_799_999
"""Last ms of the year 9999, the last year with four digits, in ms since 1970 UTC."""


def hash_of(content: bytes) -> str:
    """Return the SHA-256 checksum of bytes in the form of `Hash`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def content_hash(deltas: Iterable[str]) -> str:
    """Return the checksum of the concatenated UTF-8 text of `deltas`.

    A malformed delta is hashed in its written form: see `well_formed`.
    """
    return hash_of("".join(map(well_formed, deltas)).encode())


class _WellFormed:
    """Replaces lone surrogates in a text, except in JSON, whose parser refuses them."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        text = handler(source)
        replaced = core_schema.no_info_after_validator_function(well_formed, text)
        return core_schema.json_or_python_schema(json_schema=text, python_schema=replaced)


Text = Annotated[str, _WellFormed()]
"""Text that can be encoded as UTF-8."""
Count = Annotated[int, Field(strict=True, ge=0)]
EpochMs = Annotated[int, Field(strict=True, ge=0, le=LAST_MS)]
"""Milliseconds since 1970-01-01 UTC."""
Hash = Annotated[str, Field(pattern=r"^sha256:[a-f0-9]{64}$")]
_CASE_ID = r"^case-[A-Za-z0-9-]+$"
CaseId = Annotated[str, Field(pattern=_CASE_ID)]
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


def logged_case_id(case_id: str) -> str:
    """Return the id under which a case is logged: `case-`, then letters, digits and hyphens.

    An id of another form is made safe for file names, and gets 6 characters of its hash, so that
    two ids that become equal remain distinct: `case_1` becomes `case-case-1-` and its hash.

    Raises:
        ValueError: The id is empty, longer than 200 characters or not printable.
    """
    if not case_id.strip() or len(case_id) > LONGEST_CASE_ID or not case_id.isprintable():
        raise ValueError(
            f"case_id is {case_id!r:.60} but must be 1 to {LONGEST_CASE_ID} printable characters"
        )
    if re.fullmatch(_CASE_ID, case_id):
        return case_id
    safe = re.sub("[^A-Za-z0-9]+", "-", case_id).strip("-")
    digest = hashlib.sha256(case_id.encode()).hexdigest()[:6]
    return "-".join(filter(None, ("case", safe[:_LONGEST_SAFE].strip("-"), digest)))


class Boundary(StrEnum):
    """A side of a turn: its start or its end."""

    START = "start"
    END = "end"


class Record(BaseModel):
    """Base class of all records of trace files and run logs, and of their parts.

    An unset field is left out of the file; a field set to None is written as null (see
    `exaid_core.trace.files.dump_line`).
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,  # JSON has no such numbers
        defer_build=True,  # a run needs most of them only while in progress
    )


class Decoding(Record):
    """Sampling parameters of the model."""

    temperature: Annotated[float, Field(strict=True, ge=0)]
    """Sampling temperature; 0 for greedy decoding."""
    top_p: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """Probability mass for nucleus sampling, 0 to 1; null for the provider's default."""
    max_tokens: Count | None = None
    """Maximum tokens of a reply; null for no limit."""
    seed: Annotated[int, Field(strict=True)] | None = None
    """Random seed of the request; null without a seed."""


class TraceMeta(Record):
    """Origin and size of a trace; the first record of its file."""

    record_type: Literal["trace_meta"]
    """Type of the record."""
    schema_version: Literal["2.0.0"]
    """Version of the exaid.trace format."""
    case_id: CaseId
    """Id of the case whose turns the trace holds."""
    mas_run_id: MasRunId
    """Id of the run of the multi-agent system that made the trace."""
    mac_commit: str
    """Code revision of the multi-agent system."""
    exaid_commit: str | None = None
    """Code revision of the EXAID that recorded the trace."""
    model: str
    """Name of the agents' model."""
    decoding: Decoding | None = None
    """Sampling parameters of the agents' model."""
    created_at: Timestamp
    """Time when the file was written."""
    t0_emitted_ms: EpochMs
    """Origin of `t_rel_ms`, in ms since 1970 UTC."""
    t0_definition: str | None = None
    """Definition of `t0_emitted_ms` in words."""
    stub_mode: StrictBool | None = None
    """Whether canned replies replaced a model."""
    total_turns: Count | None = None
    """Number of turns in the file."""
    total_deltas: Count | None = None
    """Number of `stream_delta` records in the file."""


class _TurnEvent(Record):
    case_id: CaseId
    """Id of the case, as in `trace_meta`."""
    seq: Count
    """Sequence number among all events of the case, across turns."""
    turn_id: Annotated[int, Field(strict=True, ge=1)]
    """Number of the agent turn, from 1, unique in the case."""
    agent_id: str
    """Agent whose turn it is."""
    t_rel_ms: Annotated[int, Field(strict=True, ge=-LAST_MS, le=LAST_MS)]
    """Time in ms relative to `t0_emitted_ms`; negative for events before the first delta."""


class StreamDelta(_TurnEvent):
    """A piece of text as streamed by the model."""

    record_type: Literal["stream_delta"]
    """Type of the record."""
    delta_text: Text
    """Text of the piece; concatenated, the pieces of a turn are its text."""
    t_emitted_ms: EpochMs
    """Arrival time of the piece, in ms since 1970 UTC."""


def _hash_at_the_end_only(schema: dict[str, Any]) -> None:
    schema["if"] = {"properties": {"boundary": {"const": Boundary.START.value}}}
    schema["then"] = {"properties": {"content_hash": {"type": "null"}}}


class TurnBoundary(_TurnEvent):
    """The start or end of an agent's turn; turns of several agents may overlap."""

    model_config = ConfigDict(json_schema_extra=_hash_at_the_end_only)

    record_type: Literal["turn_boundary"]
    """Type of the record."""
    boundary: Boundary
    """Side of the turn: its start or its end."""
    t_ms: EpochMs
    """Time of the start or end, in ms since 1970 UTC."""
    content_hash: Hash | None = None
    """Checksum of the UTF-8 text of the turn's deltas in seq order; null at the start."""
    content_hash_input: str | None = None
    """Description of the input of `content_hash`."""

    @model_validator(mode="after")
    def _no_hash_at_the_start(self) -> Self:
        if self.boundary is Boundary.START and self.content_hash is not None:
            raise ValueError("the start of a turn has no content_hash")
        return self


TraceRecord: TypeAlias = Annotated[
    TraceMeta | StreamDelta | TurnBoundary, Field(discriminator="record_type")
]
"""Any record of a trace file."""
