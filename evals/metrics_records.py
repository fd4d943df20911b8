"""Records of computed metrics: exaid.metrics 2.3.0 (docs/how-to/evals.md, "Metrics").

Field names are those of docs/how-to/evals.md and of published files of exaid.metrics 2.2.0, which
have numbers where 2.3.0 has null for a value that is not defined. Shares are 0 to 1, latencies are
milliseconds, sizes are CTU.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from exaid_core.trace.records import CaseId, Count, Hash, Record, Timestamp
from exaid_core.trace.run_records import ConceptExtractorInfo, StoplistsProvenance, VariantId

METRICS_SCHEMA_NAME: Literal["exaid.metrics"] = "exaid.metrics"
METRICS_SCHEMA_VERSION: Literal["2.3.0"] = "2.3.0"

Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]


class ThresholdRates(Record):
    """Share of pairs of consecutive valid summaries whose Jaccard index is at least tau."""

    model_config = ConfigDict(serialize_by_alias=True)

    tau_085: Share | None = Field(alias="tau_0.85")
    """Share of pairs at tau = 0.85; null without a pair."""
    tau_090: Share | None = Field(alias="tau_0.90")
    """Share of pairs at tau = 0.90; null without a pair."""
    tau_095: Share | None = Field(alias="tau_0.95")
    """Share of pairs at tau = 0.95; null without a pair."""


class CoverageByBudget(Record):
    """Coverage of the longest prefix of summaries that fits a budget; null where M4 is."""

    ctu_250: Share | None
    """Coverage within 250 CTU of summary text."""
    ctu_500: Share | None
    """Coverage within 500 CTU of summary text."""
    ctu_1000: Share | None
    """Coverage within 1,000 CTU of summary text."""
    ctu_2000: Share | None
    """Coverage within 2,000 CTU of summary text."""


class Distribution(Record):
    """Summary statistics of a set of values; percentiles are interpolated linearly."""

    count: Count
    """Number of values."""
    mean: NotNegative
    """Mean of the values."""
    min: NotNegative
    """Smallest value."""
    p50: NotNegative
    """Median (50th percentile)."""
    p90: NotNegative
    """90th percentile of the values."""
    p95: NotNegative
    """95th percentile of the values."""
    p99: NotNegative
    """99th percentile of the values."""
    max: NotNegative
    """Largest value."""


class _Header(Record):
    schema_name: Literal["exaid.metrics"]
    """Name of the schema."""
    schema_version: Literal["2.3.0"]
    """Version of the exaid.metrics schema."""


class PerCaseMetrics(_Header):
    """The metrics of one case under one variant."""

    metrics_type: Literal["per_case"]
    """Discriminator between per-case and aggregate records."""
    case_id: CaseId
    """Id of the case."""
    variant_id: VariantId
    """Id of the variant."""
    m1_update_count: Count
    """Number of summary events, including failed ones."""
    m2_output_ctu: Count
    """Sum of `summary_ctu` over all summaries."""
    m3_redundancy_jaccard_mean: Share | None
    """Mean Jaccard index of the concepts of consecutive valid summaries; null without a pair that
    names a concept."""
    m3_redundancy_threshold_rates: ThresholdRates
    """Share of consecutive summaries whose Jaccard index reaches each threshold."""
    m4_trace_coverage: Share | None
    """Share of the trace's concepts that a summary names; null for a trace without concepts."""
    m4_trace_cui_count: Count
    """Number of concepts in the trace."""
    m4_summary_cui_count: Count
    """Number of concepts in all summaries."""
    m5_unsupported_global_rate: Share | None
    """Share of the summaries' concepts that the trace does not name; null if they name no
    concept."""
    m5_unsupported_per_summary_mean: Share | None
    """Mean over valid summaries with concepts of the share that the trace does not name; null
    without such a summary."""
    m6a_mean: Share | None
    """Mean share of a valid summary's concepts that its window does not name: lower is better."""
    m6b_mean: Share | None
    """M6a with the concepts of the latest summary as additional support; at most M6a."""
    m6_empty_count: Count
    """Number of valid summaries without a concept; each counts as 1.0 in m6a and m6b."""
    faithfulness_valid_event_count: Count
    """Number of valid summaries over which m6a and m6b are averaged."""
    excluded_from_faithfulness_count: Count
    """Number of failed summaries, which m6a and m6b exclude."""
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
    """Total latency of summaries, the content plane of EXAID."""
    content_plane_latency_pct: Share | None
    """Content-plane share of `total_plane_latency_ms`; null if the total is 0."""
    control_plane_latency_ms: NotNegative
    """Total latency of buffer decisions, the control plane, which decides when to summarize."""
    control_plane_latency_pct: Share | None
    """Control-plane share of `total_plane_latency_ms`; null if the total is 0."""
    total_plane_latency_ms: NotNegative
    """Total latency of summaries and buffer decisions."""
    m9_prompt_ctu_total: Count
    """CTU of all prompts, for decisions and summaries."""
    m9_completion_ctu_total: Count
    """CTU of all replies."""
    m9_total_llm_ctu: Count
    """CTU of all prompts and replies."""
    m9_buffer_decision_count: Count
    """Number of buffer decisions."""
    m9_buffer_decision_ctu: Count
    """Total CTU of the text judged by buffer decisions."""
    m10_schema_failure_count: Count
    """Number of summary events whose reply was not a valid summary."""
    m10_schema_failure_rate: Share | None
    """Share of summary events that failed the schema; null without events."""
    m10_compliance_rate: Share | None
    """1 - `m10_schema_failure_rate`."""
    compression_ratio: Annotated[float, Field(le=1)] | None
    """1 - CTU of the summaries / CTU of the trace; null for an empty trace."""
    grounding_a: Share | None
    """1 - m6a: higher is better."""
    grounding_b: Share | None
    """1 - m6b: higher is better."""
    expected_latency_ms: NotNegative | None
    """Mean time from a delta to the first summary that covers it; null if no delta is covered."""
    tail_loss: Share | None
    """Share of the trace's text, ignoring whitespace, that no summary covers, wherever it is; null
    for a trace without text."""
    uncovered_tail: Share | None
    """Share of the trace's characters after the last one that a summary covers; null for a trace
    without text."""
    suppression_rate: Share | None
    """Share of critical segments that summaries do not fully cover; null without such a segment.
    The alert of a segment may begin in the segment before."""
    flush_count: Count
    """Number of chunks that were flushed (`tokengate_flush` records)."""
    flush_reason_counts: dict[str, Count]
    """Number of chunks by flush reason; `unstated` if the log gives none (V3: by size)."""
    flush_accumulated_ctu_distribution: Distribution | None
    """CTU of the flushed chunks; null without chunks."""
    flush_interval_ms_distribution: Distribution | None
    """Time between consecutive flushes, in log order, excluding flushes logged late with a time
    before that of an earlier one. Null for fewer than two."""
    trace_ctu: Count
    """CTU of the trace, summed over its turns with content."""
    virtual_time_duration_ms: Count
    """Virtual time from the first to the last delta of the trace."""
    trace_ctu_per_s: NotNegative | None
    """`trace_ctu` per second of virtual time; null if the duration is 0."""
    summary_ctu_per_s: NotNegative | None
    """`m2_output_ctu` per second of virtual time; null if the duration is 0."""
    dataset_manifest_hash_valid: bool | None
    """Whether the run log's trace dataset hash matches the manifest; null without a manifest."""
    tokengate_config_hash_match: bool | None
    """Whether all run logs of the variant have the same TokenGate settings; null if unknown."""
    stub_trace_detected: bool
    """Whether canned replies stood in for a model when the trace was made."""
    outlier_flags: tuple[str, ...]
    """Names of the outlier fields that are true, without the `outlier_` prefix."""
    outlier_latency_spike: bool
    """Whether the slowest summary is beyond the upper Tukey fence of the variant's cases."""
    outlier_excessive_flushes: bool
    """Whether the number of chunks is beyond the upper Tukey fence of the variant's cases."""
    outlier_low_coverage: bool
    """Whether coverage is below the lower Tukey fence of the variant's cases."""


class Interval(Record):
    """A mean over cases and its 95% bootstrap interval.

    The mean is null where no case has a value, the interval where fewer than ten have one
    or all have the same.
    """

    mean: float | None
    """Mean over the cases that have a value."""
    n_excluded: Count
    """Number of cases without a value."""
    ci_low: float | None
    """2.5th percentile of the resampled means."""
    ci_high: float | None
    """97.5th percentile of the resampled means."""


class Redundancy(Record):
    """Redundancy of summaries (M3), pooled over the pairs of all cases."""

    jaccard_mean: Share | None
    """Mean Jaccard index of consecutive valid summaries."""
    pair_count: Count
    """Number of pairs of consecutive valid summaries, without pairs that name no concept."""
    threshold_rates: ThresholdRates
    """Share of pairs whose Jaccard index reaches each threshold."""


class Unsupported(Record):
    """M5, averaged over cases."""

    global_rate_mean: Share | None
    """Mean of the per-case global rates; null if no case has one."""
    n_excluded: Count
    """Number of cases without a global rate, since their summaries name no concept."""
    per_summary_mean: Share | None
    """Mean of the per-case means."""


class LatencyMeans(Record):
    """Mean latencies (M8), pooled over the events of all cases."""

    summary: NotNegative | None
    """Mean latency of summaries."""
    buffer_decision: NotNegative | None
    """Mean latency of buffer decisions."""


class LatencyDistributions(Record):
    """Latency distributions (M8), pooled over the events of all cases."""

    summary: Distribution | None
    """Latencies of summaries."""
    buffer_decision: Distribution | None
    """Latencies of buffer decisions."""


class FlushMeans(Record):
    """Flushed chunks over all cases."""

    count_mean: NotNegative
    """Mean number of flushed chunks per case."""
    reason_counts: dict[str, Count]
    """Total number of chunks by flush reason."""


class PlaneMeans(Record):
    """Latency of EXAID by plane, averaged over cases."""

    content_plane_latency_ms: NotNegative
    """Mean latency of summaries per case."""
    control_plane_latency_ms: NotNegative
    """Mean latency of buffer decisions per case."""
    control_plane_latency_pct: Share | None
    """Mean share of latency spent on buffer decisions, over cases with a known latency."""


class ThroughputMeans(Record):
    """Text volume and throughput, averaged over cases."""

    trace_ctu: NotNegative
    """Mean CTU of a trace."""
    trace_ctu_per_s: NotNegative | None
    """Mean trace CTU per second, over cases whose duration is not 0."""
    summary_ctu_per_s: NotNegative | None
    """Mean summary CTU per second, over cases whose duration is not 0."""


class UsageMeans(Record):
    """Model usage in CTU (M9), averaged over cases."""

    prompt: NotNegative
    """Mean CTU of prompts."""
    completion: NotNegative
    """Mean CTU of replies."""
    total: NotNegative
    """Mean CTU of prompts and replies."""
    buffer_decision_count: NotNegative
    """Mean number of buffer decisions."""
    buffer_decision_ctu: NotNegative
    """Mean CTU of the text judged by buffer decisions."""


class Compliance(Record):
    """Schema compliance (M10), pooled over the events of all cases."""

    schema_failure_rate_mean: Share | None
    """Number of failed summary events divided by all summary events; null without events."""
    compliance_rate_mean: Share | None
    """1 - `schema_failure_rate_mean`."""
    schema_failure_count: Count
    """Number of failed summary events."""
    summary_event_count: Count
    """Number of summary events."""


class VariantMetrics(Record):
    """The metrics of one variant over all cases."""

    n_cases: Count
    """Number of cases."""
    m1_update_count_mean: NotNegative
    """Mean number of summary events per case (M1)."""
    m2_output_ctu_mean: NotNegative
    """Mean CTU of summary text per case (M2)."""
    m3_redundancy: Redundancy
    """Redundancy of consecutive summaries (M3)."""
    m4_trace_coverage: Interval
    """Coverage of the trace's concepts (M4)."""
    m5_unsupported: Unsupported
    """Share of unsupported concepts (M5)."""
    m6a: Interval
    """Share of concepts not supported by the summary's window (M6a)."""
    m6b: Interval
    """Share of concepts not supported by the window or the latest summary (M6b)."""
    m6_empty_count: Count
    """Number of valid summaries without a concept."""
    m7b_coverage_by_budget_mean: CoverageByBudget
    """Mean coverage within each budget (M7b)."""
    m8_latency_ms_mean: LatencyMeans
    """Mean latencies (M8)."""
    m8_latency_distribution_ms: LatencyDistributions
    """Latency distributions (M8)."""
    m9_usage_ctu_mean: UsageMeans
    """Mean model usage in CTU (M9)."""
    m10_compliance: Compliance
    """Schema compliance of summaries (M10)."""
    faithfulness_valid_event_count: Count
    """Number of valid summaries over which M6 is averaged."""
    excluded_from_faithfulness_count: Count
    """Number of failed summaries, which M6 excludes."""
    schema_failures: Count
    """Copy of `m10_compliance.schema_failure_count`, where published files have it."""
    compression_ratio: Interval
    """Mean compression ratio over cases."""
    grounding_a: Interval
    """Mean of `grounding_a` over cases."""
    grounding_b: Interval
    """Mean of `grounding_b` over cases."""
    expected_latency_ms: Interval
    """Mean expected latency over cases."""
    tail_loss: Interval
    """Mean tail loss over cases."""
    uncovered_tail: Interval
    """Mean uncovered tail over cases."""
    flushes: FlushMeans
    """Flushed chunks."""
    plane_latency_mean: PlaneMeans
    """Mean latency by plane."""
    throughput_mean: ThroughputMeans
    """Mean text volume and throughput."""
    suppression_rate: Interval
    """Mean suppression rate over cases that have a critical segment."""


class PairedDifference(Record):
    """Difference between two variants on the same cases."""

    variant: VariantId
    """Id of the variant."""
    baseline: VariantId
    """Id of the variant it is compared with."""
    metric: str
    """Name of the compared field of the per-case record."""
    n_cases: Count
    """Number of cases in which both variants have a value."""
    difference: Interval
    """Mean of variant minus baseline, with its interval. Excludes cases of both variants in which
    one has no value."""


class AggregateMetrics(_Header):
    """The metrics of all variants and the differences between them."""

    metrics_type: Literal["aggregate"]
    """Discriminator between per-case and aggregate records."""
    computed_at: Timestamp
    """`created_at` of the newest run log rather than the wall clock, so that equal run logs give
    equal bytes."""
    bootstrap_samples: Count
    """Number of bootstrap resamples per interval."""
    seed: int
    """Random seed of the resampling."""
    trace_dataset_hash: Hash | None
    """Hash of the trace set; null if the run logs disagree on it."""
    concept_extractor: ConceptExtractorInfo
    """Identity of the concept extractor."""
    stoplists_provenance: StoplistsProvenance
    """Provenance of the stoplists, whose concepts are ignored."""
    variants: dict[VariantId, VariantMetrics]
    """Metrics by variant id."""
    paired_differences: tuple[PairedDifference, ...]
    """Differences between each variant and every variant before it."""


MetricsRecord: TypeAlias = Annotated[
    PerCaseMetrics | AggregateMetrics, Field(discriminator="metrics_type")
]
"""Any record of metrics."""
