"""`python -m evals.cli.run_all RUN`: manifest, replay, metrics and figures of a run."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from evals.cli.command import make_parser, program
from evals.cli.compute_metrics import METRICS, add_extractor_options, compute_metrics
from evals.cli.make_manifest import config_hash_of
from evals.cli.plot import FIGURES, add_plot_options, draw
from evals.cli.replay import add_replay_options, replay
from evals.manifest import MANIFEST_FILE, make_manifest, trace_files, write_manifest
from infra.files.printing import print_result


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = make_parser(
        "run_all",
        "From the traces of a run of main.py to metrics and figures: make_manifest, replay, "
        "compute_metrics and plot. What was replayed before is kept.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of traces")
    add_replay_options(parser)
    add_extractor_options(parser)
    add_plot_options(parser)
    return parser


def _run_all(options: argparse.Namespace) -> int:
    folder = options.run
    options.traces = [folder]
    out = options.out or folder
    manifest = options.manifest or out / MANIFEST_FILE
    if options.manifest is None:
        records = make_manifest(trace_files([folder]), config_hash=config_hash_of(folder))
        write_manifest(manifest, records)
        print_result(f"written: {manifest}")
    status = asyncio.run(replay(options))
    compute_metrics(argparse.Namespace(**{**vars(options), "run": out, "out": out / METRICS}))
    draw(out / METRICS, out / FIGURES, options.format)
    return status


main = program(parser, _run_all)

if __name__ == "__main__":
    raise SystemExit(main())
