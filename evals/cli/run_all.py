"""`python -m evals.cli.run_all RUN`: make the manifest, replays, metrics and figures of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evals.calibration import chunk_of_v3
from evals.cli.calibrate import told_of_v3
from evals.cli.command import RUN_FILE, make_parser, open_traces, output_folder, program
from evals.cli.compute_metrics import METRICS, add_extractor_options, compute_metrics
from evals.cli.make_manifest import config_hash_of
from evals.cli.plot import FIGURES, add_plot_options, draw
from evals.cli.replay import RUNS, VARIANTS, add_replay_options, replay, variant_ids
from evals.manifest import MANIFEST_FILE, make_manifest, write_manifest
from evals.variants import load_variant, write_variant
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import print_line, print_result


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "run_all",
        "From the traces of a run of main.py to metrics and figures: make_manifest, calibrate (the "
        "size of V3's chunks), replay, compute_metrics and plot. What was replayed before is kept.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of traces")
    add_replay_options(parser)
    add_extractor_options(parser)
    add_plot_options(parser)
    return parser


def _run_all(options: argparse.Namespace) -> int:
    folder = options.run
    if folder.is_file() and options.out is None:
        raise ConfigError(f"{folder} is a file: name its folder, or say with --out where to write")
    out = output_folder(options.out, folder)
    traces, status = open_traces([folder], of_one_run=True)
    if out == folder and not any((out / name).is_file() for name in (RUN_FILE, MANIFEST_FILE)):
        print_line(f"note: output goes into {out}, which is no run of main.py; see --out")
    files = list(traces.values())
    manifest = options.manifest or out / MANIFEST_FILE
    if options.manifest is None:
        records = make_manifest(files, config_hash=config_hash_of(folder))
        write_manifest(manifest, records)
        print_result(f"written: {manifest}")
    if options.settings is None:
        _calibrate(options, files, out)
    status = max(status, replay(options, files, out))
    measured = argparse.Namespace(
        **{**vars(options), "run": out, "out": out / METRICS, "manifest": manifest}
    )
    status = max(status, compute_metrics(measured, traces))
    draw(out / METRICS, out / FIGURES, options.format)
    return status


def _calibrate(options: argparse.Namespace, files: Sequence[Path], out: Path) -> None:
    """Write the settings of the variants, with V3's chunk size calibrated to V0's flushes."""
    variants = {name: load_variant(name) for name in variant_ids(options)}
    if "V3" in variants:
        gate = load_variant("V0").exaid_config().gate
        chunk = chunk_of_v3(map(read_trace, files), gate)
        print_result(told_of_v3(chunk))
        if chunk is not None:
            variants["V3"] = variants["V3"].model_copy(update={"chunk_ctu": chunk})
            before = out / VARIANTS / "V3.yaml"
            if before.is_file() and (was := load_variant("V3", before.parent).chunk_ctu) != chunk:
                print_line(f"note: it was {was} CTU when {out / RUNS} was made, on other traces")
    for variant in variants.values():
        write_variant(out / VARIANTS, variant)


main = program(parser, _run_all)

if __name__ == "__main__":
    raise SystemExit(main())
