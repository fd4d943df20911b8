"""Metrics over cases: means, bootstrap intervals, paired differences, outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from evals.metrics import (
    BUDGETS,
    CaseMeasures,
    distribution,
    known,
    mean,
    one_minus,
    threshold_rates,
)
from evals.metrics_records import (
    METRICS_SCHEMA_NAME,
    METRICS_SCHEMA_VERSION,
    AggregateMetrics,
    Compliance,
    CoverageByBudget,
    FlushMeans,
    Interval,
    LatencyDistributions,
    LatencyMeans,
    PairedDifference,
    PerCaseMetrics,
    PlaneMeans,
    Redundancy,
    ThroughputMeans,
    Unsupported,
    UsageMeans,
    VariantMetrics,
)
from exaid_core.trace.run_records import ConceptExtractorInfo, StoplistsProvenance
from mdagents_llm.bootstrap import FEWEST_GROUPS, RESAMPLES, SEED, clustered_bootstrap

COMPARED = (
    "m1_update_count",
    "m2_output_ctu",
    "m3_redundancy_jaccard_mean",
    "m4_trace_coverage",
    "m5_unsupported_global_rate",
    "m6a_mean",
    "m6b_mean",
    "m9_total_llm_ctu",
    "m10_compliance_rate",
    "compression_ratio",
    "expected_latency_ms",
    "tail_loss",
    "uncovered_tail",
    "suppression_rate",
)
"""Fields of the per-case record on which variants are compared case by case."""

_CASES_FOR_FENCES = 4  # with fewer cases, quartiles are meaningless
_TUKEY = 1.5


def bootstrap(values: Sequence[float | None], samples: int = RESAMPLES) -> Interval:
    """Return the mean of the values that are not None and its 95% percentile interval.

    With fewer than ten values (`FEWEST_GROUPS`), or if all are equal, there is no interval.

    Each call resamples with the same random seed, so that equal values give equal intervals.
    """
    kept = known(values)
    low, high = None, None
    if len(kept) >= FEWEST_GROUPS and len({*kept}) > 1:
        ends = clustered_bootstrap(kept, [1] * len(kept), resamples=samples)
        low, high = ends or (None, None)
    excluded = len(values) - len(kept)
    return Interval(mean=mean(kept), n_excluded=excluded, ci_low=low, ci_high=high)


def flag_outliers(cases: Sequence[CaseMeasures]) -> list[PerCaseMetrics]:
    """Return the records of one variant's cases, flagging those beyond Tukey's fences.

    A field that fewer than four cases have flags nothing.
    """
    slowest = [max(case.summary_latencies, default=None) for case in cases]
    chunks = [case.record.flush_count for case in cases]
    coverage = [case.record.m4_trace_coverage for case in cases]
    flags = {
        "latency_spike": _beyond(slowest, above=True),
        "excessive_flushes": _beyond(chunks, above=True),
        "low_coverage": _beyond(coverage, above=False),
    }
    records = []
    for index, case in enumerate(cases):
        raised = tuple(name for name, values in flags.items() if values[index])
        own = {f"outlier_{name}": name in raised for name in flags}
        records.append(case.record.model_copy(update={**own, "outlier_flags": raised}))
    return records


def _beyond(values: Sequence[float | None], *, above: bool) -> list[bool]:
    """Return which values lie above the upper Tukey fence, or below the lower one."""
    kept = known(values)
    if len(kept) < _CASES_FOR_FENCES:
        return [False] * len(values)
    first, third = np.percentile(kept, [25, 75])
    reach = _TUKEY * (third - first)
    low, high = first - reach, third + reach
    return [v is not None and bool(v > high if above else v < low) for v in values]


def aggregate(
    by_variant: Mapping[str, Sequence[CaseMeasures]],
    *,
    computed_at: str,
    trace_dataset_hash: str | None,
    extractor: ConceptExtractorInfo,
    stoplists: StoplistsProvenance,
    samples: int = RESAMPLES,
) -> AggregateMetrics:
    """Return the metrics of all variants.

    Args:
        by_variant: Cases by variant.
        computed_at: ISO 8601 time of the newest run log.
        trace_dataset_hash: Hash of the trace set; None if the run logs disagree on it.
        extractor: Identity of the concept extractor.
        stoplists: Provenance of the stoplists.
        samples: Number of resamples per interval.
    """
    variants = dict(sorted(by_variant.items()))
    return AggregateMetrics(
        schema_name=METRICS_SCHEMA_NAME,
        schema_version=METRICS_SCHEMA_VERSION,
        metrics_type="aggregate",
        computed_at=computed_at,
        bootstrap_samples=samples,
        seed=SEED,
        trace_dataset_hash=trace_dataset_hash,
        concept_extractor=extractor,
        stoplists_provenance=stoplists,
        variants={name: _variant(cases, samples) for name, cases in variants.items()},
        paired_differences=tuple(
            _difference(later, earlier, metric, variants, samples)
            for earlier, later in combinations(variants, 2)
            for metric in COMPARED
        ),
    )


def _variant(cases: Sequence[CaseMeasures], samples: int) -> VariantMetrics:
    records = [case.record for case in cases]

    def average(value: Callable[[PerCaseMetrics], float]) -> float:
        return mean(map(value, records)) or 0.0

    def of_cases(field: str) -> list[float | None]:
        return [getattr(record, field) for record in records]

    def interval(field: str) -> Interval:
        return bootstrap(of_cases(field), samples)

    jaccards = [j for case in cases for j in case.jaccards]
    events = sum(record.m1_update_count for record in records)
    failures = sum(record.m10_schema_failure_count for record in records)
    failure_rate = failures / events if events else None
    unsupported = of_cases("m5_unsupported_global_rate")
    summary_latencies = [ms for case in cases for ms in case.summary_latencies]
    decision_latencies = [ms for case in cases for ms in case.decision_latencies]
    reasons: Counter[str] = Counter()
    for record in records:
        reasons.update(record.flush_reason_counts)
    return VariantMetrics(
        n_cases=len(cases),
        m1_update_count_mean=average(lambda r: r.m1_update_count),
        m2_output_ctu_mean=average(lambda r: r.m2_output_ctu),
        m3_redundancy=Redundancy(
            jaccard_mean=mean(jaccards),
            pair_count=len(jaccards),
            threshold_rates=threshold_rates(jaccards),
        ),
        m4_trace_coverage=interval("m4_trace_coverage"),
        m5_unsupported=Unsupported(
            global_rate_mean=mean(unsupported),
            n_excluded=unsupported.count(None),
            per_summary_mean=mean(of_cases("m5_unsupported_per_summary_mean")),
        ),
        m6a=interval("m6a_mean"),
        m6b=interval("m6b_mean"),
        m6_empty_count=sum(record.m6_empty_count for record in records),
        m7b_coverage_by_budget_mean=CoverageByBudget(
            **{
                name: mean(getattr(r.m7b_coverage_by_budget, name) for r in records)
                for name in (f"ctu_{budget}" for budget in BUDGETS)
            }
        ),
        m8_latency_ms_mean=LatencyMeans(
            summary=mean(summary_latencies), buffer_decision=mean(decision_latencies)
        ),
        m8_latency_distribution_ms=LatencyDistributions(
            summary=distribution(summary_latencies),
            buffer_decision=distribution(decision_latencies),
        ),
        m9_usage_ctu_mean=UsageMeans(
            prompt=average(lambda r: r.m9_prompt_ctu_total),
            completion=average(lambda r: r.m9_completion_ctu_total),
            total=average(lambda r: r.m9_total_llm_ctu),
            buffer_decision_count=average(lambda r: r.m9_buffer_decision_count),
            buffer_decision_ctu=average(lambda r: r.m9_buffer_decision_ctu),
        ),
        m10_compliance=Compliance(
            schema_failure_rate_mean=failure_rate,
            compliance_rate_mean=one_minus(failure_rate),
            schema_failure_count=failures,
            summary_event_count=events,
        ),
        faithfulness_valid_event_count=events - failures,
        excluded_from_faithfulness_count=failures,
        schema_failures=failures,
        compression_ratio=interval("compression_ratio"),
        grounding_a=interval("grounding_a"),
        grounding_b=interval("grounding_b"),
        expected_latency_ms=interval("expected_latency_ms"),
        tail_loss=interval("tail_loss"),
        uncovered_tail=interval("uncovered_tail"),
        suppression_rate=interval("suppression_rate"),
        flushes=FlushMeans(
            count_mean=average(lambda r: r.flush_count),
            reason_counts=dict(sorted(reasons.items())),
        ),
        plane_latency_mean=PlaneMeans(
            content_plane_latency_ms=average(lambda r: r.content_plane_latency_ms),
            control_plane_latency_ms=average(lambda r: r.control_plane_latency_ms),
            control_plane_latency_pct=mean(of_cases("control_plane_latency_pct")),
        ),
        throughput_mean=ThroughputMeans(
            trace_ctu=average(lambda r: r.trace_ctu),
            trace_ctu_per_s=mean(of_cases("trace_ctu_per_s")),
            summary_ctu_per_s=mean(of_cases("summary_ctu_per_s")),
        ),
    )


def _difference(
    variant: str,
    baseline: str,
    metric: str,
    by_variant: Mapping[str, Sequence[CaseMeasures]],
    samples: int,
) -> PairedDifference:
    there, base = (
        {case.record.case_id: getattr(case.record, metric) for case in by_variant[name]}
        for name in (variant, baseline)
    )
    pairs = [(there[case_id], base[case_id]) for case_id in sorted(there.keys() & base.keys())]
    differences = [None if a is None or b is None else a - b for a, b in pairs]
    return PairedDifference(
        variant=variant,
        baseline=baseline,
        metric=metric,
        n_cases=len(known(differences)),
        difference=bootstrap(differences, samples),
    )
