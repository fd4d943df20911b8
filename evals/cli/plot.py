"""`python -m evals.cli.plot RUN`: draw figures of computed metrics."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import TypeAdapter

from evals.cli.command import make_parser, output_folder, program
from evals.cli.compute_metrics import METRICS
from evals.figures import FORMATS, draw_metrics
from evals.metrics_records import AggregateMetrics, PerCaseMetrics
from evals.report import AGGREGATE_FILE, PER_CASE_FILE
from exaid_core.trace.files import read_as
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import print_result

FIGURES = "figures"
"""Folder of figures, relative to the run folder."""


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "plot",
        f"Draw the metrics in RUN/{METRICS}: coverage against budget, cost against coverage, "
        "latency, ablation.",
    )
    add_plot_options(parser)
    parser.add_argument("run", type=Path, metavar="RUN", help=f"folder that holds {METRICS}")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"[RUN/{FIGURES}]")
    return parser


def add_plot_options(parser: argparse.ArgumentParser) -> None:
    """Add the plot options, which `run_all` shares."""
    parser.add_argument("--format", choices=FORMATS, default="png", help="[%(default)s]")


def _plot(options: argparse.Namespace) -> int:
    out = output_folder(options.out, options.run, FIGURES)
    draw(options.run / METRICS, out, options.format)
    return 0


def draw(metrics: Path, out: Path, format_: str) -> None:
    """Draw the metrics of a folder.

    Raises:
        RecordError: The metrics cannot be read.
        ConfigError: The file of aggregate metrics is empty or holds no variant.
        StorageError: A figure cannot be written.
    """
    aggregate = next(read_as(TypeAdapter(AggregateMetrics), metrics / AGGREGATE_FILE), None)
    if aggregate is None:
        raise ConfigError(f"{metrics / AGGREGATE_FILE} is empty")
    per_case = list(read_as(TypeAdapter(PerCaseMetrics), metrics / PER_CASE_FILE))
    paths = draw_metrics(out, aggregate, per_case, format_)
    print_result(f"written: {out}: {', '.join(path.name for path in paths)}")


main = program(parser, _plot)

if __name__ == "__main__":
    raise SystemExit(main())
