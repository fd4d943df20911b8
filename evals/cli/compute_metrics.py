"""`python -m evals.cli.compute_metrics RUN`: metrics M1 to M10 of replayed traces."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from evals.cli.command import make_parser, program
from evals.cli.replay import RUNS
from evals.concepts import ConceptExtractor, TermExtractor
from evals.manifest import trace_files
from evals.report import (
    AGGREGATE_FILE,
    PER_CASE_FILE,
    compute,
    metrics_table,
    run_log_files,
    write_metrics,
)
from evals.stoplists import Stoplists, load_stoplists
from infra.files.printing import print_result

METRICS = "metrics"
"""Computed metrics, below the folder of the run."""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
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
        "--stoplists", type=Path, metavar="DIR", help="from `make_stoplists` [none]"
    )
    add_extractor_options(parser)
    return parser


def add_extractor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `make_extractor`."""
    parser.add_argument(
        "--negation",
        action="store_true",
        help="a concept that its clause denies is another one than the same concept affirmed",
    )
    parser.add_argument(
        "--extractor",
        choices=("terms", "scispacy"),
        default="terms",
        help="terms: the embedded terminology; scispacy: requirements-scispacy.txt [%(default)s]",
    )


def make_extractor(options: argparse.Namespace, stoplists: Stoplists) -> ConceptExtractor:
    """Return the extractor that the command line asks for.

    Raises:
        ConfigError: The extractor is not installed, or does not support an option.
    """
    extractor: Callable[..., ConceptExtractor] = TermExtractor
    if options.extractor == "scispacy":
        from evals.scispacy_extractor import ScispacyExtractor

        extractor = ScispacyExtractor
    return extractor(
        negation=options.negation, stop_concepts=stoplists.concepts, stop_terms=stoplists.terms
    )


def compute_metrics(options: argparse.Namespace) -> int:
    """Compute, write and show the metrics that the command line asks for."""
    stoplists = load_stoplists(options.stoplists) if options.stoplists else Stoplists()
    metrics = compute(
        run_log_files(options.run / RUNS),
        trace_files(options.traces or [options.run]),
        make_extractor(options, stoplists),
        stoplists.provenance,
    )
    out = options.out or options.run / METRICS
    write_metrics(out, metrics)
    print_result(metrics_table(metrics.aggregate))
    print_result(f"written: {out / PER_CASE_FILE} and {AGGREGATE_FILE}")
    return 0


main = program(parser, compute_metrics)

if __name__ == "__main__":
    raise SystemExit(main())
