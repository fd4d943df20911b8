"""`python -m evals.cli.compute_metrics RUN`: compute metrics M1 to M10 of replayed traces."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from evals.cli.command import (
    FOUND_PROBLEMS,
    make_parser,
    open_traces,
    output_folder,
    program,
)
from evals.cli.replay import RUNS
from evals.extractors import EXTRACTORS, Extractor
from evals.manifest import MANIFEST_FILE, provenance, read_manifest
from evals.report import (
    AGGREGATE_FILE,
    PER_CASE_FILE,
    compute,
    metrics_table,
    run_log_files,
    write_metrics,
)
from evals.stoplists import Stoplists, load_stoplists
from mdagents_llm.terminal.printing import print_line, print_result

METRICS = "metrics"
"""Folder of computed metrics, relative to the run folder."""


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "compute_metrics",
        f"Compute the metrics of the run logs in RUN/{RUNS}; writes RUN/{METRICS}/{PER_CASE_FILE} "
        f"and {AGGREGATE_FILE}, and prints a table.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=f"folder that holds {RUNS}")
    parser.add_argument(
        "--traces", nargs="+", type=Path, metavar="TRACES", help="trace files or folders [RUN]"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"[RUN/{METRICS}]")
    parser.add_argument(
        "--manifest", type=Path, metavar="FILE", help=f"[RUN/{MANIFEST_FILE}, if it is there]"
    )
    parser.add_argument(
        "--stoplists", type=Path, metavar="DIR", help="from `make_stoplists` [none]"
    )
    add_extractor_options(parser)
    return parser


def add_extractor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that configure `Extractor`."""
    parser.add_argument(
        "--negation",
        action="store_true",
        help="count a concept that its clause denies apart from the same concept affirmed",
    )
    parser.add_argument(
        "--extractor",
        choices=EXTRACTORS,
        default="terms",
        help="terms: the embedded terminology; scispacy: scispaCy's UMLS linker [%(default)s]",
    )


def compute_metrics(options: argparse.Namespace, traces: Mapping[str, Path]) -> int:
    """Compute, write and print the metrics requested on the command line.

    Args:
        options: Parsed command-line options.
        traces: Trace file by case id.
    """
    out = output_folder(options.out, options.run, METRICS)
    stoplists = load_stoplists(options.stoplists) if options.stoplists else Stoplists()
    manifest = options.manifest or options.run / MANIFEST_FILE
    is_there = bool(options.manifest) or manifest.is_file()
    metrics = compute(
        run_log_files(options.run / RUNS),
        traces,
        Extractor(options.extractor, options.negation, stoplists),
        manifest_hash=provenance(read_manifest(manifest)).trace_dataset_hash if is_there else None,
    )
    for problem in metrics.problems:
        print_line(f"error: {problem}")
    write_metrics(out, metrics)
    cases = {record.case_id for record in metrics.per_case}
    print_result(metrics_table(metrics.aggregate, len(cases)))
    print_result(f"written: {out / PER_CASE_FILE} and {AGGREGATE_FILE}")
    return FOUND_PROBLEMS if metrics.problems else 0


def _compute(options: argparse.Namespace) -> int:
    files, status = open_traces(options.traces or [options.run])
    return max(status, compute_metrics(options, files))


main = program(parser, _compute)

if __name__ == "__main__":
    raise SystemExit(main())
