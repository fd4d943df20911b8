"""Computes the metrics of a folder of run logs, writes them, and shows them as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

from evals.aggregate import aggregate, flag_outliers
from evals.concepts import ConceptExtractor
from evals.files import file_hash, write_whole
from evals.metrics import CaseMeasures, measure
from evals.metrics_records import AggregateMetrics, Interval, PerCaseMetrics
from evals.run_logs import read_run_log
from evals.trace_text import TraceText, content_turns
from exaid_core.trace.files import dump_line
from exaid_core.trace.run_records import StoplistsProvenance
from exaid_core.trace.traces import read_trace
from infra.errors import ConfigError

PER_CASE_FILE = "per_case.metrics.jsonl"
AGGREGATE_FILE = "aggregate.metrics.jsonl"


@dataclass(frozen=True, slots=True)
class Metrics:
    """The computed metrics."""

    per_case: tuple[PerCaseMetrics, ...]
    """By variant, then case."""
    aggregate: AggregateMetrics


def run_log_files(folder: Path) -> list[Path]:
    """Return the run logs in the folders of the variants below `folder`.

    Raises:
        ConfigError: The folder has no run logs.
    """
    files = [
        path
        for path in sorted(folder.glob("V[0-4]/*"))
        if path.name.endswith((".jsonl.gz", ".jsonl", ".json")) and not path.name.startswith(".")
    ]
    if not files:
        raise ConfigError(
            f"no run logs V0/*.jsonl.gz … in {folder}; make them with evals.cli.replay"
        )
    return files


def compute(
    logs: Sequence[Path],
    traces: Sequence[Path],
    extractor: ConceptExtractor,
    stoplists: StoplistsProvenance,
) -> Metrics:
    """Compute the metrics of run logs.

    Args:
        logs: Files of run logs.
        traces: Their traces.
        extractor: Finds the concepts.
        stoplists: Which concepts it leaves out.

    Raises:
        RecordError: A file is damaged.
        ConfigError: A run log's trace is not there or has changed, or a case comes twice.
    """
    texts: dict[str, tuple[TraceText, str]] = {}
    for path in traces:
        trace = read_trace(path)
        texts[trace.meta.case_id] = TraceText(content_turns(trace)), file_hash(path)
    by_variant: dict[str, dict[str, CaseMeasures]] = {}
    dataset_hashes = set()
    for path in logs:
        log = read_run_log(path)
        case_id = log.meta.case_id
        if case_id not in texts:
            raise ConfigError(f"{path} is of {case_id}, whose trace is not among those given")
        text, hash_ = texts[case_id]
        if log.meta.trace_file_hash not in (None, hash_):
            raise ConfigError(f"{path} was made from another trace of {case_id}: the hashes differ")
        cases = by_variant.setdefault(log.meta.variant_id, {})
        if case_id in cases:
            raise ConfigError(
                f"{path} is a second run log of {case_id} under {log.meta.variant_id}"
            )
        cases[case_id] = measure(log, text, extractor)
        dataset_hashes.add(log.meta.trace_dataset_hash)
    measures = {
        variant: [cases[case_id] for case_id in sorted(cases)]
        for variant, cases in sorted(by_variant.items())
    }
    return Metrics(
        tuple(record for cases in measures.values() for record in flag_outliers(cases)),
        aggregate(
            measures,
            trace_dataset_hash=dataset_hashes.pop() if len(dataset_hashes) == 1 else None,
            extractor=extractor.info,
            stoplists=stoplists,
        ),
    )


def write_metrics(folder: Path, metrics: Metrics) -> None:
    """Write both files; equal metrics give equal bytes."""
    write_whole(folder / PER_CASE_FILE, b"".join(map(dump_line, metrics.per_case)))
    write_whole(folder / AGGREGATE_FILE, dump_line(metrics.aggregate))


def metrics_table(metrics: AggregateMetrics) -> str:
    """Return a table of M1 to M10 and the other metrics, one column a variant."""
    table = PrettyTable(["metric", *metrics.variants], align="r")
    table.align["metric"] = "l"
    rows: dict[str, list[str]] = {}
    for variant in metrics.variants.values():
        m3, m9 = variant.m3_redundancy, variant.m9_usage_ctu_mean
        budgets = variant.m7b_coverage_by_budget_mean
        # Names are short, so that five variants fit a terminal of 80 columns.
        cells = {
            "cases": str(variant.n_cases),
            "M1 updates": _number(variant.m1_update_count_mean, 1),
            "M2 output CTU": _number(variant.m2_output_ctu_mean, 0),
            "M3 redundancy": _number(m3.jaccard_mean),
            "M3 at least 0.85": _number(m3.threshold_rates.tau_085),
            "M4 coverage": _number(variant.m4_trace_coverage.mean),
            "M4 95 % interval": _interval(variant.m4_trace_coverage),
            "M5 unsupported": _number(variant.m5_unsupported.global_rate_mean),
            "M5 per summary": _number(variant.m5_unsupported.per_summary_mean),
            "M6a unsupported": _number(variant.m6a.mean),
            "M6a 95 % interv.": _interval(variant.m6a),
            "M6b unsupported": _number(variant.m6b.mean),
            "M6b 95 % interv.": _interval(variant.m6b),
            "M6 empty": str(variant.m6_empty_count),
            "M7b at 250 CTU": _number(budgets.ctu_250),
            "M7b at 500 CTU": _number(budgets.ctu_500),
            "M7b at 1000 CTU": _number(budgets.ctu_1000),
            "M7b at 2000 CTU": _number(budgets.ctu_2000),
            "M8 summary, ms": _number(variant.m8_latency_ms_mean.summary, 0),
            "M8 decision, ms": _number(variant.m8_latency_ms_mean.buffer_decision, 0),
            "M9 prompt CTU": _number(m9.prompt, 0),
            "M9 reply CTU": _number(m9.completion, 0),
            "M9 decisions": _number(m9.buffer_decision_count, 1),
            "M9 CTU judged": _number(m9.buffer_decision_ctu, 0),
            "M10 compliance": _number(variant.m10_compliance.compliance_rate_mean),
            "compression": _number(variant.compression_ratio.mean),
            "latency, ms": _number(variant.expected_latency_ms.mean, 0),
            "end left out": _number(variant.tail_loss.mean),
            "missed alerts": _number(variant.suppression_rate.mean),
        }
        for name, cell in cells.items():
            rows.setdefault(name, []).append(cell)
    for name, row in rows.items():
        table.add_row([name, *row])
    return str(table)


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _interval(interval: Interval) -> str:
    if interval.mean is None:
        return "–"
    return f"{interval.ci_low:.2f}–{interval.ci_high:.2f}"
