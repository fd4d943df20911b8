"""Records of a run log: exaid.run 1.5.0, the work of EXAID on a case (docs/how-to/evals.md).

Where the format leaves a choice, this module decides:

- A live run has no frozen trace, data set of traces or terminology: `trace_file_hash`,
  `trace_dataset_hash` and `terminology_hash` are required but may be null, and
  `stoplists_provenance` may be empty.
- `prompt_ctu`, `completion_ctu` and `model_id` are required in `llm_usage`, because the cost
  metrics need them.
- Optional additions: `buffer_decision.covered`, `buffer_decision.trigger` and, in
  `summary_event`, `dissent_missing`, `clipped`, `full_texts`, `alerts`, `alert_missing`,
  `emptied_fields`, `remarks`, `part` and `covered`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StrictBool

from exaid_core.policy import TriggerPolicy
from exaid_core.token_gate.token_gate import FlushReason
from exaid_core.trace.records import CaseId, Count, Hash, MasRunId, Record, Text, Timestamp

RUN_SCHEMA_NAME: Literal["exaid.run"] = "exaid.run"
RUN_SCHEMA_VERSION: Literal["1.5.0"] = "1.5.0"

VariantId = Annotated[str, Field(pattern=r"^V[0-4]$")]
EvalRunId = Annotated[str, Field(pattern=r"^eval-[A-Za-z0-9-]+$")]
DecisionId = Annotated[str, Field(pattern=r"^case-[A-Za-z0-9-]+-V[0-4]-bd-[0-9]{3,}$")]
EventId = Annotated[str, Field(pattern=r"^case-[A-Za-z0-9-]+-V[0-4]-se-[0-9]{3,}$")]


def decision_id(case_id: str, variant_id: str, index: int) -> str:
    """Return the id of buffer decision `index`, counted from 0, such as `case-7-V0-bd-000`."""
    return f"{case_id}-{variant_id}-bd-{index:03d}"


def event_id(case_id: str, variant_id: str, index: int) -> str:
    """Return the id of summary event `index`, counted from 0, such as `case-7-V0-se-000`."""
    return f"{case_id}-{variant_id}-se-{index:03d}"


class TriggerType(StrEnum):
    """The component that requested a summary."""

    TURN_END = "turn_end"
    TOKENGATE_FLUSH = "tokengate_flush"
    BUFFER_AGENT = "buffer_agent"


class BufferAction(StrEnum):
    """The action of EXAID on the judged segments."""

    SUMMARIZE = "summarize"
    BUFFER = "buffer"
    DISCARD = "discard"


class SummaryFailure(StrEnum):
    """The kind of failure in an attempt at a summary."""

    LENGTH_LIMIT_VIOLATION = "length_limit_violation"
    SCHEMA_VALIDATION_ERROR = "schema_validation_error"
    UNEXPECTED_ERROR = "unexpected_error"


class ConceptExtractorInfo(Record):
    """Configuration of the extractor that finds concepts in text.

    The fields after `terminology_hash` belong to scispaCy and its UMLS linker, and are set if that
    extractor is used.
    """

    name: str
    """Name of the extractor; `none` in a live run."""
    version: str
    """Version of the extractor."""
    terminology_hash: Hash | None
    """Checksum of the extractor's terminology table; null without a table."""
    spacy_version: str | None = None
    """Version of spaCy."""
    scispacy_version: str | None = None
    """Version of scispaCy."""
    scispacy_model: str | None = None
    """Name of the scispaCy model, such as `en_core_sci_sm`."""
    linker_name: str | None = None
    """Name of the linker's knowledge base, such as `umls`."""
    linker_kb_version: str | None = None
    """Release of the knowledge base, such as `2023AB`."""
    linker_resolve_abbreviations: StrictBool | None = None
    """Whether abbreviations are linked as their long forms."""
    linker_max_entities_per_mention: Count | None = None
    """Maximum number of candidates that the linker returns for a mention."""
    linker_threshold: float | None = None
    """Minimum similarity of a candidate, 0 to 1."""
    cui_score_threshold: float | None = None
    """Minimum score for a concept to count, 0 to 1."""
    max_k: Count | None = None
    """Number of candidates that are considered for a mention."""
    min_entity_len: Count | None = None
    """Minimum length of a mention in characters."""
    concept_representation: str | None = None
    """Representation of a concept, such as `cui`."""
    cui_normalization: str | None = None
    """Normalization of CUIs, such as `uppercase`."""


class StoplistsProvenance(Record):
    """Provenance of stoplists for concepts that nearly every case has; empty without a stoplist."""

    stop_entities_hash: Hash | None = None
    """Checksum of the list of surface forms."""
    stop_cuis_hash: Hash | None = None
    """Checksum of the list of concepts."""
    stoplist_df_report_hash: Hash | None = None
    """Checksum of the document frequency report from which both lists were made."""
    stoplists_generated_at: Timestamp | None = None
    """Time when the stoplists were generated."""


class TimestampDerivation(Record):
    """Source of the timestamps in the log."""

    method: str
    """Main method of derivation: `trace_t_emitted_ms`."""
    fallback_method: str | None = None
    """Method for records without `t_emitted_ms`, such as `run_start_time_plus_seq`."""
    derived_from_t_emitted: Count | None = None
    """Number of timestamps made by `method`."""
    derived_from_fallback: Count | None = None
    """Number of timestamps made by `fallback_method`."""
    missing_t_emitted_ms_count: Count | None = None
    """Number of deltas without a time."""


class Determinism(Record):
    """Settings that make equal records give equal bytes."""

    gzip_mtime: Count
    """Modification time in the gzip header."""
    json_sort_keys: StrictBool
    """Whether JSON keys are sorted."""
    json_separators: tuple[str, str]
    """Separators between items, and between key and value."""


class RunMeta(Record):
    """Provenance and configuration of a run log; the first record of its file."""

    record_type: Literal["run_meta"]
    """Type of the record."""
    schema_name: Literal["exaid.run"]
    """Name of the schema."""
    schema_version: Literal["1.5.0"]
    """Version of the exaid.run format."""
    created_at: Timestamp
    """Start of the run; in a replay, derived from the trace."""
    case_id: CaseId
    """Id of the case that EXAID followed."""
    variant_id: VariantId
    """Variant of EXAID, V0 to V4."""
    mas_run_id: MasRunId
    """Id of the run of the multi-agent system that made the trace."""
    eval_run_id: EvalRunId
    """Id of the EXAID run."""
    history_k: Count
    """Number of summaries in a prompt besides the latest."""
    trigger_policy: TriggerPolicy | None = None
    """Policy that triggered summaries."""
    trace_file_hash: Hash | None
    """Checksum of the trace file; null in a live run."""
    trace_dataset_hash: Hash | None
    """Checksum of all traces, as in the manifest; null in a live run."""
    tokengate_config_hash: Hash
    """Checksum of the TokenGate's settings, or of the chunk size without a TokenGate (V3)."""
    concept_extractor: ConceptExtractorInfo
    """Configuration of the extractor that finds concepts in text."""
    stoplists_provenance: StoplistsProvenance
    """Provenance of the stoplists, recorded only here."""
    timestamp_derivation: TimestampDerivation
    """How the timestamps of the log were derived."""
    determinism: Determinism
    """Settings of the file's serialization."""


class LlmUsage(Record):
    """The cost of a step, summed over its calls, repairs included; 0 without a call."""

    prompt_ctu: Count
    """CTU of the prompts: `ceil(len(text) / 4)`."""
    completion_ctu: Count
    """CTU of the replies."""
    provider_prompt_tokens: Count | None = None
    """Prompt tokens as counted by the provider; null if it did not count them."""
    provider_completion_tokens: Count | None = None
    """Completion tokens as counted by the provider; null if it did not count them."""
    model_id: str
    """Name of the model that replied, or of the requested one."""


class FilterResults(Record):
    """The judgments of a buffer decision."""

    completeness_passed: StrictBool
    """Whether the segments form a complete thought."""
    value_passed: StrictBool
    """Whether the segments matter to a clinician."""
    novelty_passed: StrictBool | None = None
    """Whether the segments add to the summaries so far; null if novelty is not judged (V4)."""


class _CaseRecord(Record):
    case_id: CaseId
    """Id of the case, as in `run_meta`."""
    variant_id: VariantId
    """Variant of EXAID, as in `run_meta`."""
    timestamp: Timestamp
    """Time of the record on the trace's clock: see `timestamp_of`."""


class TokengateFlush(_CaseRecord):
    """A chunk of one agent's text that the TokenGate released."""

    record_type: Literal["tokengate_flush"]
    """Type of the record."""
    flush_index: Count
    """Index of the flush, from 0."""
    start_seq: Count
    """Sequence number of the first event whose text the chunk holds."""
    end_seq: Count
    """Sequence number of the last event whose text the chunk holds."""
    accumulated_ctu: Count
    """CTU of the chunk."""
    trigger_reason: FlushReason | None = None
    """Reason for the flush; null for a chunk of fixed size (V3)."""
    text_hash: Hash | None = None
    """Checksum of the chunk's UTF-8 text."""


class BufferDecision(_CaseRecord):
    """A decision of the BufferAgent."""

    record_type: Literal["buffer_decision"]
    """Type of the record."""
    decision_index: Count
    """Index of the decision, from 0."""
    decision_id: DecisionId
    """Id of the decision, such as `case-7-V0-bd-000`."""
    start_seq: Count | None = None
    """Sequence number of the first event that was judged."""
    end_seq: Count | None = None
    """Sequence number of the last event that was judged."""
    covered: tuple[Count, ...] | None = None
    """Values of `flush_index` of the flushes judged together; an addition to exaid.run 1.5.0.

    In a live run, flushes that arrive during a decision are judged together in the next one.
    """
    input_ctu: Count
    """CTU of the judged text."""
    decision: BufferAction
    """Action on the judged text."""
    trigger: str | None = None
    """Value of the `TriggerReason` for a due summary; an addition to exaid.run 1.5.0."""
    filter_results: FilterResults | None = None
    """Judgments of the model; absent if it failed or was not called."""
    llm_usage: LlmUsage
    """Cost of the decision."""
    latency_ms: Count | None = None
    """Duration of the model calls in ms; null without a call."""
    failure_mode: str | None = None
    """Reason for a missing judgment; null if the model did not fail."""
    trigger_mismatch: StrictBool | None = None
    """Whether the model's own trigger differs from the one computed from its judgments."""


class SummaryContent(Record):
    """The six fields of a summary as displayed."""

    status_action: Text
    """Current status of the case and actions taken."""
    key_findings: Text
    """Findings that matter at this point."""
    differential_rationale: Text
    """Diagnoses under consideration, and the reasons for them."""
    uncertainty_confidence: Text
    """Confidence of the agents."""
    recommendation_next_step: Text
    """Next step that the agents recommend."""
    agent_contributions: Text
    """Contributions by agent; not part of `summary_semantics_text`."""


class SummaryEvent(_CaseRecord):
    """A summary, or a failed attempt at one."""

    record_type: Literal["summary_event"]
    """Type of the record."""
    event_index: Count
    """Index of the summary event, from 0."""
    event_id: EventId
    """Id of the summary event, such as `case-7-V0-se-000`."""
    start_seq: Count
    """Sequence number of the first event that is summarized."""
    end_seq: Count
    """Sequence number of the last event that is summarized."""
    source_seqs: tuple[Count, ...] | None = None
    """Sequence numbers of exactly the events whose text is summarized."""
    trigger_type: TriggerType
    """Component that requested the summary."""
    summary_history_event_ids: tuple[EventId, ...]
    """Ids of the earlier summaries in the prompt, oldest first, without the latest."""
    latest_summary_event_id: EventId | None = None
    """Id of the latest summary in the prompt; null for the first summary."""
    summarizer_input_hash: Hash
    """Checksum of the UTF-8 text of the prompt."""
    limits_ok: StrictBool
    """Whether every field is within its character limit without a cut."""
    failure_mode: SummaryFailure | None
    """Kind of the failure; null without one."""
    schema_ok: StrictBool
    """Whether the reply is a valid summary."""
    schema_error: Text | None = None
    """Reason why the reply is not a valid summary; null if it is."""
    summary_semantics_text: Text
    """Text of the five clinician-facing fields, without `agent_contributions`."""
    summary_ctu: Count
    """CTU of `summary_semantics_text`."""
    summary_content: SummaryContent | None = None
    """Fields of the summary; absent after a failure."""
    truncated_fields: tuple[str, ...] | None = None
    """Names of the fields that were cut to their limit."""
    full_texts: dict[str, Text] | None = None
    """Uncut texts of these fields, by name; null if none was cut; an addition to the format."""
    unsupported_terms: tuple[Text, ...] | None = None
    """Numbers, drugs and doses in the summary that its support does not contain."""
    dissent_missing: StrictBool | None = None
    """Whether agents disagree and the summary omits it; an addition to exaid.run 1.5.0."""
    clipped: StrictBool | None = None
    """Whether the summary covers only a part of a long text; an addition to exaid.run 1.5.0."""
    alerts: tuple[Text, ...] | None = None
    """Critical alerts in the text, verbatim; null without alerts; an addition to the format."""
    alert_missing: StrictBool | None = None
    """Whether the summary omits one of the alerts; an addition to the format."""
    part: Count | None = None
    """Index of the call for the due text, from 0; null for the first; an addition to the format."""
    covered: tuple[Count, ...] | None = None
    """Values of `flush_index` of all due flushes, if the summary does not cover them all; an
    addition to the format."""
    emptied_fields: tuple[str, ...] | None = None
    """Names of the fields that reported nothing and hold the placeholder; null without such fields;
    an addition to the format."""
    remarks: tuple[Text, ...] | None = None
    """Findings of the caller's checks; null without findings; an addition to the format."""
    new_buffer_text_hash: Hash | None = None
    """Checksum of the UTF-8 text that is summarized."""
    llm_usage: LlmUsage
    """Cost of the summary."""
    latency_ms: Count | None = None
    """Duration of the model calls in ms; null without a call."""


RunRecord: TypeAlias = Annotated[
    RunMeta | TokengateFlush | BufferDecision | SummaryEvent,
    Field(discriminator="record_type"),
]
"""Any record of a run log."""
