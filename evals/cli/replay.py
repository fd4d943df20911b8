"""`python -m evals.cli.replay TRACES`: replays frozen traces through the variants of EXAID."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from evals.cli.command import FOUND_PROBLEMS, make_parser, program
from evals.cli.models import add_model_options, open_models
from evals.concepts import extractor_info
from evals.files import file_hash
from evals.manifest import (
    MANIFEST_FILE,
    TraceEntry,
    make_manifest,
    provenance,
    read_manifest,
    trace_files,
)
from evals.replay import Setting, replay_all
from evals.stoplists import Stoplists, load_stoplists
from evals.terminology import load_terminology
from evals.variants import VARIANT_IDS, load_variant
from infra.errors import ConfigError
from infra.files.printing import print_line, print_result

RUNS = Path("data") / "runs"
"""Run logs, below the folder of the run."""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = make_parser(
        "replay",
        "Feed frozen traces through variants of EXAID in virtual time; writes "
        f"OUT/{RUNS}/VARIANT/CASE.jsonl.gz. Run logs that are there are kept, so that a replay "
        "that was stopped goes on where it was.",
    )
    parser.add_argument(
        "traces", nargs="+", type=Path, metavar="TRACES", help="trace files, or folders of them"
    )
    add_replay_options(parser)
    return parser


def add_replay_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `run_all` shares."""
    add = parser.add_argument
    add("--variants", default=",".join(VARIANT_IDS), metavar="V0,V1,…", help="[%(default)s]")
    add("--out", type=Path, metavar="DIR", help="[the first folder named, or the current one]")
    add("--manifest", type=Path, metavar="FILE", help=f"[OUT/{MANIFEST_FILE}, or made on the fly]")
    add("--stoplists", type=Path, metavar="DIR", help="from `make_stoplists` [none]")
    add("--jobs", type=_positive, default=4, metavar="N", help="replays at once [%(default)s]")
    add("--fresh", action="store_true", help="make run logs again that are there")
    add_model_options(parser)


async def replay(options: argparse.Namespace) -> int:
    """Replay the traces of the command line, with a progress bar."""
    variants = [load_variant(name) for name in options.variants.split(",") if name]
    if not variants:
        raise ConfigError("--variants names none")
    files = trace_files(options.traces)
    out = output_folder(options)
    stoplists = load_stoplists(options.stoplists) if options.stoplists else Stoplists()
    made = kept = 0
    errors: list[str] = []
    async with open_models(options, out) as models:
        setting = Setting(
            models,
            out / RUNS,
            _dataset_hash(options.manifest or out / MANIFEST_FILE, files, options.manifest),
            extractor_info(load_terminology()),
            stoplists.provenance,
        )
        bar = tqdm(
            total=len(variants) * len(files), unit="case", desc="replay", disable=None, leave=False
        )
        with bar:
            async for result in replay_all(
                setting, variants, files, jobs=options.jobs, fresh=options.fresh
            ):
                bar.update()
                if result.error:
                    errors.append(result.error)
                kept += result.was_there
                made += not (result.was_there or result.error)
    for error in sorted(errors):
        print_line(f"error: {error}")
    print_result(f"{out / RUNS}: {made} run logs made, {kept} were there, {len(errors)} failed")
    return FOUND_PROBLEMS if errors else 0


def output_folder(options: argparse.Namespace) -> Path:
    """Return the folder that the command line names for output."""
    if options.out:
        return Path(options.out)
    folder = next((path for path in options.traces if path.is_dir()), None)
    return folder or Path()


def _dataset_hash(manifest: Path, files: Sequence[Path], given: Path | None) -> str:
    if not (given or manifest.is_file()):
        return provenance(make_manifest(files)).trace_dataset_hash
    records = read_manifest(manifest)
    listed = {record.sha256 for record in records if isinstance(record, TraceEntry)}
    for path in files:
        if file_hash(path) not in listed:
            raise ConfigError(
                f"{path} is not in {manifest}, or has changed since; make the manifest again with "
                "evals.cli.make_manifest"
            )
    return provenance(records).trace_dataset_hash


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


main = program(parser, lambda options: asyncio.run(replay(options)))

if __name__ == "__main__":
    raise SystemExit(main())
