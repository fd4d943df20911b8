"""Records of computed metrics: exaid.metrics 2.2.0 (docs/evals.md, "Metrics").

Field names are those of docs/evals.md and of published files of the same version. Shares are 0 to
1, latencies are milliseconds, sizes are CTU.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from exaid_core.trace.records import CaseId, Count, Hash, Record, Timestamp
from exaid_core.trace.run_records import ConceptExtractorInfo, StoplistsProvenance, VariantId

METRICS_SCHEMA_NAME: Literal["exaid.metrics"] = "exaid.metrics"
METRICS_SCHEMA_VERSION: Literal["2.2.0"] = "2.2.0"

Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]


class ThresholdRates(Record):
    """Share of pairs of consecutive summaries whose Jaccard index is at least tau."""

    model_config = ConfigDict(serialize_by_alias=True)

    tau_085: Share | None = Field(alias="tau_0.85")
    """tau = 0.85; null without a pair."""
    tau_090: Share | None = Field(alias="tau_0.90")
    """tau = 0.90; null without a pair."""
    tau_095: Share | None = Field(alias="tau_0.95")
    """tau = 0.95; null without a pair."""


class CoverageByBudget(Record):
    """Coverage of the longest prefix of summaries that fits a budget."""

    ctu_250: Share
    """Within 250 CTU."""
    ctu_500: Share
    """Within 500 CTU."""
    ctu_1000: Share
    """Within 1,000 CTU."""
    ctu_2000: Share
    """Within 2,000 CTU."""


class Distribution(Record):
    """How values are spread; percentiles are interpolated linearly between values."""

    count: Count
    """Values."""
    mean: NotNegative
    """Their mean."""
    min: NotNegative
    """The smallest."""
    p50: NotNegative
    """The median."""
    p90: NotNegative
    """90th percentile."""
    p95: NotNegative
    """95th percentile."""
    p99: NotNegative
    """99th percentile."""
    max: NotNegative
    """The largest."""


class _Header(Record):
    schema_name: Literal["exaid.metrics"]
    """Name of the schema."""
    schema_version: Literal["2.2.0"]
    """Version of exaid.metrics."""


class PerCaseMetrics(_Header):
    """The metrics of one case under one variant."""

    metrics_type: Literal["per_case"]
    """Tells the two kinds of records apart."""
    case_id: CaseId
    """The case."""
    variant_id: VariantId
    """The variant."""
    m1_update_count: Count
    """Summary events, failed ones included."""
    m2_output_ctu: Count
    """Sum of `summary_ctu`."""
    m3_redundancy_jaccard_mean: Share | None
    """Mean Jaccard index of the concepts of consecutive summaries; null for fewer than two."""
    m3_redundancy_threshold_rates: ThresholdRates
    """How often that index is high."""
    m4_trace_coverage: Share
    """Share of the trace's concepts that a summary names; 0 for a trace without concepts."""
    m4_trace_cui_count: Count
    """Concepts of the trace."""
    m4_summary_cui_count: Count
    """Concepts of all summaries."""
    m5_unsupported_global_rate: Share
    """Share of the summaries' concepts that the trace does not name; 0 if they name no concept."""
    m5_unsupported_per_summary_mean: Share | None
    """The same, mean over valid summaries with concepts; null without one."""
    m6a_mean: Share | None
    """Mean share of a valid summary's concepts that its window does not name: lower is better."""
    m6b_mean: Share | None
    """The same with the latest summary as further support."""
    m6_empty_count: Count
    """Valid summaries without a concept; each counts as 1.0 in m6a and m6b."""
    faithfulness_valid_event_count: Count
    """Summaries of which m6a and m6b are means."""
    excluded_from_faithfulness_count: Count
    """Failed summaries, which m6a and m6b leave out."""
    m7b_coverage_by_budget: CoverageByBudget
    """Coverage within a budget of summary text."""
    m8_summary_latency_ms_mean: NotNegative | None
    """Mean latency of a summary; null if unknown."""
    m8_buffer_decision_latency_ms_mean: NotNegative | None
    """Mean latency of a buffer decision; null if unknown."""
    m8_summary_latency_distribution_ms: Distribution | None
    """Latencies of summaries; null if unknown."""
    m8_buffer_decision_latency_distribution_ms: Distribution | None
    """Latencies of buffer decisions; null if unknown."""
    content_plane_latency_ms: NotNegative
    """What summaries took, all together: the part of EXAID that makes content."""
    content_plane_latency_pct: Share | None
    """The same as a share of `total_plane_latency_ms`; null if that is 0."""
    control_plane_latency_ms: NotNegative
    """What buffer decisions took, all together: the part that says when to summarise."""
    control_plane_latency_pct: Share | None
    """The same as a share of `total_plane_latency_ms`; null if that is 0."""
    total_plane_latency_ms: NotNegative
    """Both."""
    m9_prompt_ctu_total: Count
    """CTU of all prompts, decisions and summaries."""
    m9_completion_ctu_total: Count
    """CTU of all replies."""
    m9_total_llm_ctu: Count
    """CTU of all prompts and replies."""
    m9_buffer_decision_count: Count
    """Buffer decisions."""
    m9_buffer_decision_ctu: Count
    """CTU of the text under judgement, all decisions together."""
    m10_schema_failure_count: Count
    """Summary events whose reply was not a summary."""
    m10_schema_failure_rate: Share
    """The same as a share of all summary events; 0 without events."""
    m10_compliance_rate: Share
    """1 - that share."""
    compression_ratio: Annotated[float, Field(le=1)] | None
    """1 - CTU of the summaries / CTU of the trace; null for an empty trace."""
    grounding_a: Share | None
    """1 - m6a: higher is better."""
    grounding_b: Share | None
    """1 - m6b: higher is better."""
    expected_latency_ms: NotNegative | None
    """Mean time from a delta to the first summary that covers it; null if no delta is covered."""
    tail_loss: Share
    """Share of the trace's text, white space aside, that no summary covers, wherever it is."""
    uncovered_tail: Share
    """Share of the trace's characters after the last one that a summary covers."""
    suppression_rate: Share | None
    """Share of critical segments that no summary covers; null without such a segment."""
    flush_count: Count
    """Chunks that were let through (`tokengate_flush` records)."""
    flush_reason_counts: dict[str, Count]
    """Why, with how many chunks each; `unstated` where the log does not say (V3: by size)."""
    flush_accumulated_ctu_distribution: Distribution | None
    """Their CTU; null without chunks."""
    flush_interval_ms_distribution: Distribution | None
    """Time from one to the next, in the order of the log; one that is logged late, with a time
    before that of an earlier one, is left out. Null for fewer than two."""
    trace_ctu: Count
    """CTU of the trace: the sum of those of its turns with content."""
    virtual_time_duration_ms: Count
    """From the first to the last delta of the trace."""
    trace_ctu_per_s: NotNegative | None
    """`trace_ctu` per second of that time; null if it is 0."""
    summary_ctu_per_s: NotNegative | None
    """`m2_output_ctu` per second of that time; null if it is 0."""
    dataset_manifest_hash_valid: bool | None
    """Whether the run log names the set of traces of the manifest; null without a manifest."""
    tokengate_config_hash_match: bool | None
    """Whether all run logs of the variant name the same TokenGate settings; null if unknown."""
    stub_trace_detected: bool
    """Whether canned replies stood in for a model when the trace was made."""
    outlier_flags: tuple[str, ...]
    """Names of the outlier fields that are true, without `outlier_`."""
    outlier_latency_spike: bool
    """Slowest summary beyond Tukey's upper fence of the variant's cases."""
    outlier_excessive_flushes: bool
    """Number of chunks beyond that fence."""
    outlier_low_coverage: bool
    """Coverage below the lower fence."""


class Interval(Record):
    """A mean over cases and its 95 % bootstrap interval; null where no case has a value."""

    mean: float | None
    """The mean."""
    ci_low: float | None
    """2.5th percentile of the resampled means."""
    ci_high: float | None
    """97.5th percentile of the resampled means."""


class Redundancy(Record):
    """M3, pooled over the pairs of all cases."""

    jaccard_mean: Share | None
    """Mean Jaccard index."""
    threshold_rates: ThresholdRates
    """How often it is high."""


class Unsupported(Record):
    """M5."""

    global_rate_mean: Share
    """Mean of the cases' global rates."""
    per_summary_mean: Share | None
    """Mean of the cases' means."""


class LatencyMeans(Record):
    """M8, pooled over the events of all cases."""

    summary: NotNegative | None
    """Of summaries."""
    buffer_decision: NotNegative | None
    """Of buffer decisions."""


class LatencyDistributions(Record):
    """M8, pooled over the events of all cases."""

    summary: Distribution | None
    """Of summaries."""
    buffer_decision: Distribution | None
    """Of buffer decisions."""


class FlushMeans(Record):
    """Chunks that were let through."""

    count_mean: NotNegative
    """Mean over cases."""
    reason_counts: dict[str, Count]
    """Why, with how many chunks each, all cases together."""


class PlaneMeans(Record):
    """What EXAID's time goes into, means over cases."""

    content_plane_latency_ms: NotNegative
    """Summaries."""
    control_plane_latency_ms: NotNegative
    """Buffer decisions."""
    control_plane_latency_pct: Share | None
    """Mean share of buffer decisions, over cases with a known latency."""


class ThroughputMeans(Record):
    """Means over cases."""

    trace_ctu: NotNegative
    """CTU of a trace."""
    trace_ctu_per_s: NotNegative | None
    """Per second, over cases that take time."""
    summary_ctu_per_s: NotNegative | None
    """Per second, over cases that take time."""


class UsageMeans(Record):
    """M9, means over cases."""

    prompt: NotNegative
    """CTU of prompts."""
    completion: NotNegative
    """CTU of replies."""
    total: NotNegative
    """Both."""
    buffer_decision_count: NotNegative
    """Buffer decisions."""
    buffer_decision_ctu: NotNegative
    """CTU under judgement."""


class Compliance(Record):
    """M10, pooled over the events of all cases."""

    schema_failure_rate_mean: Share
    """Failed summary events / summary events."""
    compliance_rate_mean: Share
    """1 - that share."""
    schema_failure_count: Count
    """Failed summary events."""
    summary_event_count: Count
    """Summary events."""


class VariantMetrics(Record):
    """The metrics of one variant over all cases."""

    n_cases: Count
    """Cases."""
    m1_update_count_mean: NotNegative
    """M1, mean."""
    m2_output_ctu_mean: NotNegative
    """M2, mean."""
    m3_redundancy: Redundancy
    """M3."""
    m4_trace_coverage: Interval
    """M4."""
    m5_unsupported: Unsupported
    """M5."""
    m6a: Interval
    """M6a."""
    m6b: Interval
    """M6b."""
    m6_empty_count: Count
    """Valid summaries without a concept."""
    m7b_coverage_by_budget_mean: CoverageByBudget
    """M7b, mean."""
    m8_latency_ms_mean: LatencyMeans
    """M8."""
    m8_latency_distribution_ms: LatencyDistributions
    """M8."""
    m9_usage_ctu_mean: UsageMeans
    """M9."""
    m10_compliance: Compliance
    """M10."""
    faithfulness_valid_event_count: Count
    """Summaries of which M6 is a mean."""
    excluded_from_faithfulness_count: Count
    """Failed summaries, which M6 leaves out."""
    schema_failures: Count
    """The same as `m10_compliance.schema_failure_count`, at its place in published files."""
    compression_ratio: Interval
    """Mean over cases."""
    grounding_a: Interval
    """Mean over cases."""
    grounding_b: Interval
    """Mean over cases."""
    expected_latency_ms: Interval
    """Mean over cases."""
    tail_loss: Interval
    """Mean over cases."""
    uncovered_tail: Interval
    """Mean over cases."""
    flushes: FlushMeans
    """Chunks that were let through."""
    plane_latency_mean: PlaneMeans
    """What EXAID's time goes into."""
    throughput_mean: ThroughputMeans
    """Text per second."""
    suppression_rate: Interval
    """Mean over cases that have a critical segment."""


class PairedDifference(Record):
    """How one variant differs from another in the same cases."""

    variant: VariantId
    """The variant."""
    baseline: VariantId
    """The variant it is compared with."""
    metric: str
    """Field of the per-case record."""
    n_cases: Count
    """Cases in which both have a value."""
    difference: Interval
    """Variant minus baseline."""


class AggregateMetrics(_Header):
    """The metrics of all variants, and how they differ."""

    metrics_type: Literal["aggregate"]
    """Tells the two kinds of records apart."""
    computed_at: Timestamp
    """When the newest of the run logs was made, by its own `created_at`: not the wall clock, so
    that equal run logs give equal bytes."""
    bootstrap_samples: Count
    """Resamples of each interval."""
    seed: int
    """Random seed of the resampling."""
    trace_dataset_hash: Hash | None
    """Of the traces; null if the run logs do not agree on it."""
    concept_extractor: ConceptExtractorInfo
    """How concepts were found."""
    stoplists_provenance: StoplistsProvenance
    """Which concepts do not count."""
    variants: dict[VariantId, VariantMetrics]
    """By variant."""
    paired_differences: tuple[PairedDifference, ...]
    """Each variant against each one before it."""


MetricsRecord: TypeAlias = Annotated[
    PerCaseMetrics | AggregateMetrics, Field(discriminator="metrics_type")
]
"""Any record of metrics."""
