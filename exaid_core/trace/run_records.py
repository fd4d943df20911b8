"""Records of a run log: exaid.run 1.5.0, what EXAID did with a case (docs/evals.md).

Decided here, because the format leaves it open:

- A live run has no frozen trace, no data set of traces and no terminology: `trace_file_hash`,
  `trace_dataset_hash` and `terminology_hash` are required but may be null, and
  `stoplists_provenance` may be empty.
- `prompt_ctu`, `completion_ctu` and `model_id` are required in `llm_usage`, as the cost metrics
  need them.
- Additions, all optional: `buffer_decision.covered`, `buffer_decision.trigger` and, in
  `summary_event`, `dissent_missing`, `clipped`, `alerts`, `alert_missing`, `emptied_fields`,
  `remarks`, `part` and `covered`.
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
    """What asked for a summary."""

    TURN_END = "turn_end"
    TOKENGATE_FLUSH = "tokengate_flush"
    BUFFER_AGENT = "buffer_agent"


class BufferAction(StrEnum):
    """What EXAID does with the segments under judgement."""

    SUMMARIZE = "summarize"
    BUFFER = "buffer"
    DISCARD = "discard"


class SummaryFailure(StrEnum):
    """What failed in an attempt at a summary."""

    LENGTH_LIMIT_VIOLATION = "length_limit_violation"
    SCHEMA_VALIDATION_ERROR = "schema_validation_error"
    UNEXPECTED_ERROR = "unexpected_error"


class ConceptExtractorInfo(Record):
    """How concepts were found in text.

    The fields after `terminology_hash` are those of scispaCy and its UMLS linker, and are set when
    that extractor is used.
    """

    name: str
    """Name of the extractor; `none` in a live run."""
    version: str
    """Its version."""
    terminology_hash: Hash | None
    """Of its terminology table; null without a table."""
    spacy_version: str | None = None
    """Version of spaCy."""
    scispacy_version: str | None = None
    """Version of scispaCy."""
    scispacy_model: str | None = None
    """Its model, such as `en_core_sci_sm`."""
    linker_name: str | None = None
    """Its knowledge base, such as `umls`."""
    linker_kb_version: str | None = None
    """Release of that knowledge base, such as `2023AB`."""
    linker_resolve_abbreviations: StrictBool | None = None
    """Whether abbreviations are linked as their long forms."""
    linker_max_entities_per_mention: Count | None = None
    """Candidates that the linker returns for a mention."""
    linker_threshold: float | None = None
    """Least similarity of a candidate, 0 to 1."""
    cui_score_threshold: float | None = None
    """Least score of a concept that counts, 0 to 1."""
    max_k: Count | None = None
    """Candidates that are looked at for a mention."""
    min_entity_len: Count | None = None
    """Least length of a mention, in characters."""
    concept_representation: str | None = None
    """The representation of a concept, such as `cui`."""
    cui_normalization: str | None = None
    """How the CUI is written, such as `uppercase`."""


class StoplistsProvenance(Record):
    """Which concepts do not count because nearly every case has them. Empty without stoplists."""

    stop_entities_hash: Hash | None = None
    """Of the list of surface forms."""
    stop_cuis_hash: Hash | None = None
    """Of the list of concepts."""
    stoplist_df_report_hash: Hash | None = None
    """Of the report of document frequencies from which both were made."""
    stoplists_generated_at: Timestamp | None = None
    """When they were made."""


class TimestampDerivation(Record):
    """Where the timestamps of the log come from."""

    method: str
    """`trace_t_emitted_ms`."""
    fallback_method: str | None = None
    """For records without it, such as `run_start_time_plus_seq`."""
    derived_from_t_emitted: Count | None = None
    """Timestamps made by `method`."""
    derived_from_fallback: Count | None = None
    """Timestamps made by `fallback_method`."""
    missing_t_emitted_ms_count: Count | None = None
    """Deltas without a time."""


class Determinism(Record):
    """Settings by which equal records give equal bytes."""

    gzip_mtime: Count
    """Modification time in the gzip header."""
    json_sort_keys: StrictBool
    """Whether keys are sorted."""
    json_separators: tuple[str, str]
    """Between items, and between key and value."""


class RunMeta(Record):
    """Provenance and configuration. The first record of its file."""

    record_type: Literal["run_meta"]
    """Tells the records of a file apart."""
    schema_name: Literal["exaid.run"]
    """Name of the schema."""
    schema_version: Literal["1.5.0"]
    """Version of exaid.run."""
    created_at: Timestamp
    """When the run began; in a replay derived from the trace."""
    case_id: CaseId
    """The case that EXAID followed."""
    variant_id: VariantId
    """V0 to V4."""
    mas_run_id: MasRunId
    """The run of the multi-agent system that made the trace."""
    eval_run_id: EvalRunId
    """The run of EXAID."""
    history_k: Count
    """Summaries before the latest that a prompt holds."""
    trigger_policy: TriggerPolicy | None = None
    """What made EXAID summarise."""
    trace_file_hash: Hash | None
    """Of the trace file; null in a live run."""
    trace_dataset_hash: Hash | None
    """Of all traces, as in the manifest; null in a live run."""
    tokengate_config_hash: Hash
    """Of the TokenGate's settings; of the size of chunks where there is none (V3)."""
    concept_extractor: ConceptExtractorInfo
    """How concepts were found in text."""
    stoplists_provenance: StoplistsProvenance
    """Which concepts do not count; in this place only."""
    timestamp_derivation: TimestampDerivation
    """Where the timestamps come from."""
    determinism: Determinism
    """How the file is serialised."""


class LlmUsage(Record):
    """The cost of a step, summed over its calls (a repair is one); 0 without a call."""

    prompt_ctu: Count
    """CTU of the prompts: `ceil(len(text) / 4)`."""
    completion_ctu: Count
    """CTU of the replies."""
    provider_prompt_tokens: Count | None = None
    """As the provider counted; null when it did not."""
    provider_completion_tokens: Count | None = None
    """As the provider counted; null when it did not."""
    model_id: str
    """Model that replied, or the one that was asked."""


class FilterResults(Record):
    """The judgements of a buffer decision."""

    completeness_passed: StrictBool
    """Whether the segments are a finished thought."""
    value_passed: StrictBool
    """Whether they matter to a clinician."""
    novelty_passed: StrictBool | None = None
    """Whether they add to the summaries so far; null when it is not judged (V4)."""


class _CaseRecord(Record):
    case_id: CaseId
    """As in `run_meta`."""
    variant_id: VariantId
    """As in `run_meta`."""
    timestamp: Timestamp
    """When, by the trace's time: see `timestamp_of`."""


class TokengateFlush(_CaseRecord):
    """A chunk of one agent's text that the TokenGate let through."""

    record_type: Literal["tokengate_flush"]
    """Tells the records of a file apart."""
    flush_index: Count
    """Counted from 0."""
    start_seq: Count
    """First event of the trace whose text it holds."""
    end_seq: Count
    """Last event of the trace whose text it holds."""
    accumulated_ctu: Count
    """CTU of the chunk."""
    trigger_reason: FlushReason | None = None
    """Why it was let through."""
    text_hash: Hash | None = None
    """Hash of its UTF-8 text."""


class BufferDecision(_CaseRecord):
    """What the BufferAgent decided."""

    record_type: Literal["buffer_decision"]
    """Tells the records of a file apart."""
    decision_index: Count
    """Counted from 0."""
    decision_id: DecisionId
    """See `decision_id`."""
    start_seq: Count | None = None
    """First event of the trace under judgement."""
    end_seq: Count | None = None
    """Last event of the trace under judgement."""
    covered: tuple[Count, ...] | None = None
    """`flush_index` of the flushes that were judged together: an addition to exaid.run 1.5.0.

    In a live run flushes that arrive during a decision are judged together in the next one.
    """
    input_ctu: Count
    """CTU of the text under judgement."""
    decision: BufferAction
    """What became of it."""
    trigger: str | None = None
    """What made a summary due, as `TriggerReason` names it: an addition to exaid.run 1.5.0."""
    filter_results: FilterResults | None = None
    """The judgements; absent when the model failed."""
    llm_usage: LlmUsage
    """What the decision cost."""
    latency_ms: Count | None = None
    """How long it took."""
    failure_mode: str | None = None
    """Why the model gave no judgement; null when it did."""
    trigger_mismatch: StrictBool | None = None
    """Whether the model's own trigger differs from the one computed from its judgements."""


class SummaryContent(Record):
    """The six fields of a summary, as shown."""

    status_action: Text
    """What is going on."""
    key_findings: Text
    """Findings that matter now."""
    differential_rationale: Text
    """Diagnoses that are considered, and why."""
    uncertainty_confidence: Text
    """How sure the agents are."""
    recommendation_next_step: Text
    """What they recommend."""
    agent_contributions: Text
    """Which agent contributed what; not part of `summary_semantics_text`."""


class SummaryEvent(_CaseRecord):
    """A summary, or the attempt at one."""

    record_type: Literal["summary_event"]
    """Tells the records of a file apart."""
    event_index: Count
    """Counted from 0."""
    event_id: EventId
    """See `event_id`."""
    start_seq: Count
    """First event of the trace that is summarised."""
    end_seq: Count
    """Last event of the trace that is summarised."""
    source_seqs: tuple[Count, ...] | None = None
    """Exactly the events of the trace whose text is summarised."""
    trigger_type: TriggerType
    """What triggered it."""
    summary_history_event_ids: tuple[EventId, ...]
    """Earlier summaries in the prompt, oldest first, without the latest."""
    latest_summary_event_id: EventId | None = None
    """The latest summary in the prompt; null for the first summary."""
    summarizer_input_hash: Hash
    """Hash of the UTF-8 text of the prompt."""
    limits_ok: StrictBool
    """Whether every field came within its limit of characters."""
    failure_mode: SummaryFailure | None
    """What failed; null if nothing did."""
    schema_ok: StrictBool
    """Whether the reply was a summary."""
    schema_error: Text | None = None
    """Why the reply was not a summary."""
    summary_semantics_text: Text
    """The five fields for clinicians, without `agent_contributions`."""
    summary_ctu: Count
    """CTU of the summary."""
    summary_content: SummaryContent | None = None
    """Its fields."""
    truncated_fields: tuple[str, ...] | None = None
    """Names of the fields that were cut to their limit."""
    unsupported_terms: tuple[Text, ...] | None = None
    """Numbers, drugs and doses of the summary that are not in its support."""
    dissent_missing: StrictBool | None = None
    """Whether agents disagree and the summary hides it: an addition to exaid.run 1.5.0."""
    clipped: StrictBool | None = None
    """Whether it is of a part of a text: see `AgentSummary`. An addition, as the next four."""
    alerts: tuple[Text, ...] | None = None
    """Critical alerts in the text, in its own words; null without."""
    alert_missing: StrictBool | None = None
    """Whether the summary does not mention one of them."""
    part: Count | None = None
    """Which call about the text that was due at once it was, from 0; null for the first."""
    covered: tuple[Count, ...] | None = None
    """`flush_index` of all flushes that were due at once, where that is more than it has."""
    emptied_fields: tuple[str, ...] | None = None
    """Names of the fields that reported nothing and hold the placeholder; null without."""
    remarks: tuple[Text, ...] | None = None
    """What validators of the caller found; null without."""
    new_buffer_text_hash: Hash | None = None
    """Hash of the UTF-8 text that is summarised."""
    llm_usage: LlmUsage
    """What the summary cost."""
    latency_ms: Count | None = None
    """How long it took."""


RunRecord: TypeAlias = Annotated[
    RunMeta | TokengateFlush | BufferDecision | SummaryEvent,
    Field(discriminator="record_type"),
]
"""Any record of a run log."""
