"""Metrics M1 to M10 of one case under one variant (docs/how-to/evals.md, "Metrics")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

import numpy as np

from evals.concepts import Concept, ConceptExtractor
from evals.metrics_records import (
    METRICS_SCHEMA_NAME,
    METRICS_SCHEMA_VERSION,
    CoverageByBudget,
    Distribution,
    PerCaseMetrics,
    ThresholdRates,
)
from evals.run_logs import Decision, Event, RunLogFile
from evals.trace_text import TraceText
from exaid_core.checks.alerts import alerts_of_chunk
from exaid_core.ctu import letters, tail_loss
from exaid_core.trace.run_records import BufferAction
from mdagents_llm.clock import ms_of

BUDGETS = (250, 500, 1000, 2000)
"""Budgets of summary text in CTU, for M7b."""
THRESHOLDS = (0.85, 0.90, 0.95)
"""Jaccard indices at or above which two summaries count as near-duplicates, for M3."""

Concepts = frozenset[Concept]


@dataclass(frozen=True, slots=True)
class CaseMeasures:
    """The metrics of a case and the raw values that are pooled over cases."""

    record: PerCaseMetrics
    """Metrics record, without outlier flags and other fields that depend on other cases."""
    jaccards: tuple[float, ...]
    """Jaccard index of each pair of consecutive valid summaries that name a concept."""
    summary_latencies: tuple[float, ...]
    """Latencies of summaries in ms."""
    decision_latencies: tuple[float, ...]
    """Latencies of buffer decisions in ms."""


def measure(
    log: RunLogFile,
    trace: TraceText,
    extractor: ConceptExtractor,
    of_trace: Concepts | None = None,
) -> CaseMeasures:
    """Return the metrics of a run log.

    Args:
        log: Run log to measure.
        trace: Content of the trace that was replayed.
        extractor: Concept extractor.
        of_trace: Concepts of the trace, if known; None extracts them.
    """
    events = log.events
    found = [extractor.extract(event.text) for event in events]
    if of_trace is None:
        of_trace = extractor.extract(trace.text)
    of_summaries: Concepts = frozenset().union(*found)
    jaccards = _jaccards(events, found)
    m6a, m6b = _unsupported_by_window(events, found, trace, extractor)
    unsupported = known(_share(c - of_trace, c) for c in found)
    failures = sum(not event.schema_ok for event in events)
    failure_rate = _ratio(failures, len(events))
    steps: list[Event | Decision] = [*log.decisions, *events]
    prompt = sum(step.llm_usage.prompt_ctu for step in steps)
    completion = sum(step.llm_usage.completion_ctu for step in steps)
    output = sum(event.summary_ctu for event in events)
    summary_latencies = _latencies(events)
    decision_latencies = _latencies(log.decisions)
    content, control = sum(summary_latencies), sum(decision_latencies)
    seconds = trace.duration_ms / 1000
    seqs = sorted(seq for seq, _ in trace.seqs())
    covered: frozenset[int] = frozenset().union(*(event.covered(seqs) for event in events))
    record = PerCaseMetrics(
        schema_name=METRICS_SCHEMA_NAME,
        schema_version=METRICS_SCHEMA_VERSION,
        metrics_type="per_case",
        case_id=log.meta.case_id,
        variant_id=log.meta.variant_id,
        m1_update_count=len(events),
        m2_output_ctu=output,
        m3_redundancy_jaccard_mean=mean(jaccards),
        m3_redundancy_threshold_rates=threshold_rates(jaccards),
        m4_trace_coverage=_share(of_summaries & of_trace, of_trace),
        m4_trace_cui_count=len(of_trace),
        m4_summary_cui_count=len(of_summaries),
        m5_unsupported_global_rate=_share(of_summaries - of_trace, of_summaries),
        m5_unsupported_per_summary_mean=mean(unsupported),
        m6a_mean=mean(m6a),
        m6b_mean=mean(m6b),
        m6_empty_count=sum(
            event.schema_ok and not c for event, c in zip(events, found, strict=True)
        ),
        faithfulness_valid_event_count=len(events) - failures,
        excluded_from_faithfulness_count=failures,
        m7b_coverage_by_budget=_coverage_by_budget(events, found, of_trace),
        m8_summary_latency_ms_mean=mean(summary_latencies),
        m8_buffer_decision_latency_ms_mean=mean(decision_latencies),
        m8_summary_latency_distribution_ms=distribution(summary_latencies),
        m8_buffer_decision_latency_distribution_ms=distribution(decision_latencies),
        content_plane_latency_ms=content,
        content_plane_latency_pct=_ratio(content, content + control),
        control_plane_latency_ms=control,
        control_plane_latency_pct=_ratio(control, content + control),
        total_plane_latency_ms=content + control,
        m9_prompt_ctu_total=prompt,
        m9_completion_ctu_total=completion,
        m9_total_llm_ctu=prompt + completion,
        m9_buffer_decision_count=len(log.decisions),
        m9_buffer_decision_ctu=sum(decision.input_ctu for decision in log.decisions),
        m10_schema_failure_count=failures,
        m10_schema_failure_rate=failure_rate,
        m10_compliance_rate=one_minus(failure_rate),
        compression_ratio=one_minus(_ratio(output, trace.ctu)),
        grounding_a=one_minus(mean(m6a)),
        grounding_b=one_minus(mean(m6b)),
        expected_latency_ms=_expected_latency(log, trace, seqs),
        tail_loss=_tail_loss(trace, covered),
        uncovered_tail=_uncovered_tail(trace, covered),
        suppression_rate=_suppression_rate(log, trace, covered),
        flush_count=len(log.chunks),
        flush_reason_counts=_reason_counts(log),
        flush_accumulated_ctu_distribution=distribution(
            [chunk.accumulated_ctu for chunk in log.chunks]
        ),
        flush_interval_ms_distribution=distribution(_intervals(log)),
        trace_ctu=trace.ctu,
        virtual_time_duration_ms=trace.duration_ms,
        trace_ctu_per_s=_ratio(trace.ctu, seconds),
        summary_ctu_per_s=_ratio(output, seconds),
        dataset_manifest_hash_valid=None,
        tokengate_config_hash_match=None,
        stub_trace_detected=trace.is_stub,
        outlier_flags=(),
        outlier_latency_spike=False,
        outlier_excessive_flushes=False,
        outlier_low_coverage=False,
    )
    return CaseMeasures(record, jaccards, summary_latencies, decision_latencies)


def jaccard(first: Concepts, second: Concepts) -> float | None:
    """Return the Jaccard index of two concept sets; None if both are empty."""
    return _share(first & second, first | second)


def threshold_rates(jaccards: Sequence[float]) -> ThresholdRates:
    """Return the share of consecutive summaries that are near-duplicates, by threshold."""
    rates = {f"tau_{tau:.2f}": mean([float(j >= tau) for j in jaccards]) for tau in THRESHOLDS}
    return ThresholdRates.model_validate(rates)


def known(values: Iterable[float | None]) -> list[float]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None without such values."""
    kept = known(values)
    return fmean(kept) if kept else None


def one_minus(share: float | None) -> float | None:
    """Return 1 - share; None for None."""
    return None if share is None else 1.0 - share


def distribution(values: Sequence[float]) -> Distribution | None:
    """Return summary statistics of the values; None without values."""
    if not values:
        return None
    p50, p90, p95, p99 = (float(p) for p in np.percentile(values, [50, 90, 95, 99]))
    return Distribution(
        count=len(values),
        mean=fmean(values),
        min=min(values),
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        max=max(values),
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _share(part: Concepts, whole: Concepts) -> float | None:
    return _ratio(len(part), len(whole))


def _jaccards(events: Sequence[Event], found: Sequence[Concepts]) -> tuple[float, ...]:
    """Return the Jaccard index of consecutive valid summaries, unless both name no concept."""
    valid = [concepts for event, concepts in zip(events, found, strict=True) if event.schema_ok]
    return tuple(known(jaccard(first, second) for first, second in pairwise(valid)))


def _latencies(steps: Sequence[Event] | Sequence[Decision]) -> tuple[float, ...]:
    return tuple(step.latency_ms for step in steps if step.latency_ms is not None)


def _unsupported_by_window(
    events: Sequence[Event],
    found: Sequence[Concepts],
    trace: TraceText,
    extractor: ConceptExtractor,
) -> tuple[list[float], list[float]]:
    """Return M6a and M6b of each valid summary."""
    by_id = {event.event_id: concepts for event, concepts in zip(events, found, strict=True)}
    m6a: list[float] = []
    m6b: list[float] = []
    for event, concepts in zip(events, found, strict=True):
        if not event.schema_ok:
            continue
        window = extractor.extract(trace.window(event.start_seq, event.end_seq))
        latest = by_id.get(event.latest_summary_event_id or "", frozenset())
        # Extracted from both at once, an abbreviation of one could take its meaning from the other.
        for rates, support in ((m6a, window), (m6b, window | latest)):
            share = _share(concepts - support, concepts)
            # A summary without concepts counts as ungrounded.
            rates.append(1.0 if share is None else share)
    return m6a, m6b


def _coverage_by_budget(
    events: Sequence[Event], found: Sequence[Concepts], of_trace: Concepts
) -> CoverageByBudget:
    spent = list(accumulate(event.summary_ctu for event in events))
    coverage = {}
    for budget in BUDGETS:
        within = [c for c, total in zip(found, spent, strict=True) if total <= budget]
        named: Concepts = frozenset().union(*within)
        coverage[f"ctu_{budget}"] = _share(named & of_trace, of_trace)
    return CoverageByBudget(**coverage)


def _reason_counts(log: RunLogFile) -> dict[str, int]:
    counts = Counter(chunk.trigger_reason or "unstated" for chunk in log.chunks)
    return dict(sorted(counts.items()))


def _intervals(log: RunLogFile) -> list[int]:
    """Return the time between chunks in ms, in log order.

    A chunk flushed by a timer may be logged after later chunks of other agents; it is excluded.
    """
    times = [ms_of(chunk.timestamp) for chunk in log.chunks if chunk.timestamp]
    latest = list(accumulate(times, max))
    in_time = [t for t, last in zip(times, latest, strict=True) if t == last]
    return [second - first for first, second in pairwise(in_time)]


def _expected_latency(log: RunLogFile, trace: TraceText, seqs: Sequence[int]) -> float | None:
    """Return the mean time in ms from a delta to the first summary that covers it.

    Decisions and summaries are made sequentially: each starts when its text has arrived and the
    previous one is done.
    """
    covered: set[int] = set()
    emitted = dict(trace.seqs())
    waits: list[float] = []
    ready = _ready_times(log, emitted)
    for event, at in zip(log.events, ready, strict=True):
        new = event.covered(seqs) - covered
        covered |= new
        # If a log's times were not taken from the trace, they can precede those of the text.
        there = max([at, *(emitted[seq] for seq in new)])
        waits += [there - emitted[seq] for seq in sorted(new)]
    return mean(waits)


def _ready_times(log: RunLogFile, emitted: Mapping[int, int]) -> list[float]:
    """Return when each summary is ready, in ms since the Unix epoch.

    A decision to summarize is followed by its summary; summaries without a decision come last.
    """
    by_index = {
        chunk.flush_index: ms_of(chunk.timestamp) for chunk in log.chunks if chunk.timestamp
    }
    by_end = {chunk.end_seq: ms_of(chunk.timestamp) for chunk in log.chunks if chunk.timestamp}

    def arrival(end_seq: int | None, covered: Sequence[int] = ()) -> int:
        known = [by_index[index] for index in covered if index in by_index]
        if known or end_seq is None:
            return max(known, default=0)
        return by_end.get(end_seq, emitted.get(end_seq, 0))

    free = 0.0
    ready: list[float] = []
    left = iter(log.events)
    for decision in log.decisions:
        there = arrival(decision.end_seq, decision.covered or ())
        free = max(free, there) + (decision.latency_ms or 0)
        if decision.decision == BufferAction.SUMMARIZE and (event := next(left, None)):
            free += event.latency_ms or 0
            ready.append(free)
    for event in left:
        free = max(free, arrival(event.end_seq)) + (event.latency_ms or 0)
        ready.append(free)
    return ready


def _left_out(trace: TraceText, covered: frozenset[int]) -> Iterator[str]:
    """Yield the text of each delta that no summary covers."""
    for turn in trace.turns:
        yield from (delta.text for delta in turn.deltas if delta.seq not in covered)


def _tail_loss(trace: TraceText, covered: frozenset[int]) -> float | None:
    total = letters(trace.text)
    return tail_loss(_left_out(trace, covered), total) if total else None


def _uncovered_tail(trace: TraceText, covered: frozenset[int]) -> float | None:
    return _ratio(trace.chars_after(max(covered, default=-1)), trace.chars_after(-1))


def _suppression_rate(log: RunLogFile, trace: TraceText, covered: frozenset[int]) -> float | None:
    """Return the share of critical segments that the summaries do not fully cover.

    Segments are the chunks of the log, or the turns if it has no chunks. An alert that is split
    between chunks counts for the chunk that completes it, as EXAID counts it.
    """
    if log.chunks:
        segments = [
            (trace.before(chunk.start_seq), *trace.chunk(chunk.start_seq, chunk.end_seq))
            for chunk in log.chunks
        ]
    else:
        segments = [("", t.text, frozenset(d.seq for d in t.deltas)) for t in trace.turns]
    critical = [seqs for before, text, seqs in segments if alerts_of_chunk(before, text)]
    return mean([float(not seqs <= covered) for seqs in critical])
