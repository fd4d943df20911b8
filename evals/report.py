"""Compute the metrics of a folder of run logs, write them and format them as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from prettytable import PrettyTable

from evals.aggregate import aggregate, flag_outliers
from evals.extractors import Extractor
from evals.files import file_hash, write_whole
from evals.metrics import CaseMeasures, measure
from evals.metrics_records import AggregateMetrics, Distribution, Interval, PerCaseMetrics
from evals.run_logs import UNKNOWN_HASH, Meta, RunLogFile, read_run_log
from evals.trace_text import TraceText
from exaid_core.trace.files import RecordError, dump_line
from exaid_core.trace.traces import read_trace
from mdagents_llm.clock import ms_of, timestamp_of
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.files.matching import matching
from mdagents_llm.processes import cores, in_processes
from mdagents_llm.text import first_names

PER_CASE_FILE = "per_case.metrics.jsonl"
AGGREGATE_FILE = "aggregate.metrics.jsonl"
_MOST_NAMED = 5
_WORTH_PROCESSES = 60  # run logs, about 3 s of work, from which starting processes pays off


@dataclass(frozen=True, slots=True)
class Metrics:
    """Computed per-case and aggregate metrics, and the problems found."""

    per_case: tuple[PerCaseMetrics, ...]
    """Per-case records, ordered by variant, then case."""
    aggregate: AggregateMetrics
    problems: tuple[str, ...] = ()
    """One line for each run log or trace that is skipped (file, line, field), and for each variant
    that lacks cases which others have."""


def run_log_files(folder: Path) -> list[Path]:
    """Return the run logs in the variant folders below `folder`.

    Raises:
        ConfigError: The folder has no run logs.
    """
    files = [
        path
        for path in matching(folder, "V[0-4]/*")
        if path.name.endswith((".jsonl.gz", ".jsonl", ".json")) and not path.name.startswith(".")
    ]
    if not files:
        raise ConfigError(
            f"no run logs V0/*.jsonl.gz … in {folder}; make them with evals.cli.replay"
        )
    return files


def compute(
    logs: Sequence[Path],
    traces: Mapping[str, Path],
    extractor: Extractor,
    *,
    manifest_hash: str | None = None,
) -> Metrics:
    """Compute the metrics of run logs; report and skip those that cannot be measured.

    Many run logs are measured in parallel, with one process per core.

    Args:
        logs: Run log files.
        traces: Trace file by case id.
        extractor: Concept extractor.
        manifest_hash: `trace_dataset_hash` of the manifest; None without a manifest.

    Raises:
        ConfigError: No run log can be measured, or the extractor is not installed.
    """
    problems: list[str] = []
    by_case: dict[str, list[RunLogFile]] = {}
    for path in logs:
        try:
            log = read_run_log(path)
        except RecordError as error:
            problems.append(str(error))
        else:
            by_case.setdefault(log.meta.case_id, []).append(log)
    for case_id in by_case.keys() - traces.keys():
        first, *more = by_case.pop(case_id)
        others = f" and {len(more)} more" if more else ""
        problems.append(f"{first.path}{others}: of {case_id}, whose trace is not among those given")
    info = extractor.make().info
    tasks = [
        (tuple(of_case), traces[case_id], extractor) for case_id, of_case in sorted(by_case.items())
    ]
    processes = min(cores(), len(tasks)) if len(logs) >= _WORTH_PROCESSES else 1
    measured: dict[tuple[str, str], tuple[Meta, CaseMeasures]] = {}
    for of_case, found in in_processes(_measure_case, tasks, processes=processes):
        problems += found
        measured |= {(meta.variant_id, meta.case_id): (meta, m) for meta, m in of_case}
    if not measured:
        others = f" ({len(problems) - 1} more like this)" if len(problems) > 1 else ""
        raise ConfigError(f"{min(problems)}{others}")
    metas = [meta for meta, _ in measured.values()]
    by_variant = _by_variant(measured, manifest_hash)
    problems += _without_cases(by_variant)
    dataset_hashes = {meta.trace_dataset_hash for meta in metas}
    return Metrics(
        tuple(record for cases in by_variant.values() for record in flag_outliers(cases)),
        aggregate(
            by_variant,
            computed_at=max(timestamp_of(ms_of(meta.created_at)) for meta in metas),
            trace_dataset_hash=dataset_hashes.pop() if len(dataset_hashes) == 1 else None,
            extractor=info,
            stoplists=extractor.stoplists.provenance,
        ),
        tuple(sorted(problems)),
    )


def _measure_case(
    task: tuple[tuple[RunLogFile, ...], Path, Extractor],
) -> tuple[list[tuple[Meta, CaseMeasures]], list[str]]:
    """Measure the run logs of one case; return the measures and the problems."""
    logs, path, extractor = task
    try:
        trace, hash_ = read_trace(path), file_hash(path)
    except BenchError as error:
        return [], [str(error)]
    text = TraceText.of(trace)
    of_trace = extractor.make().extract(text.text)
    measured: dict[str, tuple[Meta, CaseMeasures]] = {}
    problems = []
    for log in logs:
        variant = log.meta.variant_id
        if log.meta.trace_file_hash not in (None, hash_):
            problems.append(
                f"{log.path} line 1: trace_file_hash: it was made from another trace than {path}, "
                "the hashes differ"
            )
        elif variant in measured:
            problems.append(f"{log.path} is a second run log of {log.meta.case_id} under {variant}")
        else:
            # A log of an earlier version may lack a creation time.
            made = log.meta.created_at or trace.meta.created_at
            meta = log.meta.model_copy(update={"created_at": made})
            measured[variant] = meta, measure(log, text, extractor.make(), of_trace)
    return list(measured.values()), problems


def _by_variant(
    measured: Mapping[tuple[str, str], tuple[Meta, CaseMeasures]], manifest_hash: str | None
) -> dict[str, list[CaseMeasures]]:
    """Return the measures by variant, ordered by case, with the fields that compare run logs."""
    gates: dict[str, set[str | None]] = {}
    for (variant, _), (meta, _) in measured.items():
        gates.setdefault(variant, set()).add(meta.tokengate_config_hash)
    by_variant: dict[str, list[CaseMeasures]] = {}
    for (variant, _), (meta, measures) in sorted(measured.items(), key=itemgetter(0)):
        of_set = meta.trace_dataset_hash
        of_gate = meta.tokengate_config_hash if meta.tokengate_config_hash != UNKNOWN_HASH else None
        update = {
            "dataset_manifest_hash_valid": manifest_hash and of_set == manifest_hash,
            "tokengate_config_hash_match": of_gate and len(gates[variant]) == 1,
        }
        known = {name: bool(value) for name, value in update.items() if value is not None}
        record = measures.record.model_copy(update=known)
        by_variant.setdefault(variant, []).append(replace(measures, record=record))
    return by_variant


def _without_cases(by_variant: Mapping[str, Sequence[CaseMeasures]]) -> list[str]:
    """Return a line for each variant without metrics of a case that another variant has."""
    cases = {name: {one.record.case_id for one in of} for name, of in by_variant.items()}
    every = set().union(*cases.values())
    lines = []
    for variant, own in cases.items():
        missing = sorted(every - own)
        if missing:
            lines.append(
                f"{variant} has metrics of {len(own)} of {len(every)} cases, so its means are not "
                f"those of the other variants; without {first_names(missing, _MOST_NAMED)}"
            )
    return lines


def write_metrics(folder: Path, metrics: Metrics) -> None:
    """Write the per-case and aggregate files; equal metrics give equal bytes."""
    write_whole(folder / PER_CASE_FILE, b"".join(map(dump_line, metrics.per_case)))
    write_whole(folder / AGGREGATE_FILE, dump_line(metrics.aggregate))


def metrics_table(metrics: AggregateMetrics, cases: int) -> str:
    """Return a table of M1 to M10 and the other metrics, with one column per variant.

    Args:
        metrics: Metrics of the variants.
        cases: Number of cases that any of the variants has.
    """
    table = PrettyTable(["metric", *metrics.variants], align="r")
    table.align["metric"] = "l"
    rows: dict[str, list[str]] = {}
    for variant in metrics.variants.values():
        m3, m9 = variant.m3_redundancy, variant.m9_usage_ctu_mean
        budgets = variant.m7b_coverage_by_budget_mean
        # Short names, so that five variants fit in an 80-column terminal.
        cells = {
            "cases": f"{n} of {cases}" if (n := variant.n_cases) < cases else str(n),
            "M1 updates": number(variant.m1_update_count_mean, 1),
            "M2 output CTU": number(variant.m2_output_ctu_mean, 0),
            "M3 redundancy": number(m3.jaccard_mean),
            "M3 pairs": str(m3.pair_count),
            "M3 at least 0.85": number(m3.threshold_rates.tau_085),
            "M4 coverage": number(variant.m4_trace_coverage.mean),
            "M4 95% interval": _interval(variant.m4_trace_coverage),
            "M5 unsupported": number(variant.m5_unsupported.global_rate_mean),
            "M5 per summary": number(variant.m5_unsupported.per_summary_mean),
            "M6a unsupported": number(variant.m6a.mean),
            "M6a 95% interval": _interval(variant.m6a),
            "M6b unsupported": number(variant.m6b.mean),
            "M6b 95% interval": _interval(variant.m6b),
            "M6 empty": str(variant.m6_empty_count),
            "M7b at 250 CTU": number(budgets.ctu_250),
            "M7b at 500 CTU": number(budgets.ctu_500),
            "M7b at 1000 CTU": number(budgets.ctu_1000),
            "M7b at 2000 CTU": number(budgets.ctu_2000),
            "M8 summary, ms": number(variant.m8_latency_ms_mean.summary, 0),
            "M8 sum. p95, ms": _p95(variant.m8_latency_distribution_ms.summary),
            "M8 decision, ms": number(variant.m8_latency_ms_mean.buffer_decision, 0),
            "M8 dec. p95, ms": _p95(variant.m8_latency_distribution_ms.buffer_decision),
            "M9 prompt CTU": number(m9.prompt, 0),
            "M9 reply CTU": number(m9.completion, 0),
            "M9 decisions": number(m9.buffer_decision_count, 1),
            "M9 CTU judged": number(m9.buffer_decision_ctu, 0),
            "M10 compliance": number(variant.m10_compliance.compliance_rate_mean),
            "compression": number(variant.compression_ratio.mean),
            "latency, ms": number(variant.expected_latency_ms.mean, 0),
            "text left out": number(variant.tail_loss.mean),
            "end left out": number(variant.uncovered_tail.mean),
            "missed alerts": number(variant.suppression_rate.mean),
        }
        for name, cell in cells.items():
            rows.setdefault(name, []).append(cell)
    for name, row in (rows | _cases_with_a_value(metrics)).items():
        table.add_row([name, *row])
    return str(table)


def _cases_with_a_value(metrics: AggregateMetrics) -> dict[str, list[str]]:
    """Return a row for each metric that leaves out a case, with the number of cases that count."""
    variants = metrics.variants.values()
    excluded = {
        "M4 cases": [variant.m4_trace_coverage.n_excluded for variant in variants],
        "M5 cases": [variant.m5_unsupported.n_excluded for variant in variants],
        "M6 cases": [variant.m6a.n_excluded for variant in variants],
        "alert cases": [variant.suppression_rate.n_excluded for variant in variants],
    }
    return {
        name: [f"{v.n_cases - n} of {v.n_cases}" for v, n in zip(variants, of, strict=True)]
        for name, of in excluded.items()
        if any(of)
    }


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with a fixed count of decimals; None as a dash."""
    return "–" if value is None else f"{value:z.{digits}f}"


def _p95(distribution: Distribution | None) -> str:
    return number(distribution.p95 if distribution else None, 0)


def _interval(interval: Interval) -> str:
    if interval.ci_low is None or interval.ci_high is None:
        return "–"
    return f"{number(interval.ci_low, 2)}–{number(interval.ci_high, 2)}"
