"""`python -m evals.cli.replay TRACES`: replay frozen traces through the variants of EXAID."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from evals.cli.command import (
    FOUND_PROBLEMS,
    make_parser,
    open_traces,
    output_folder,
    program,
)
from evals.cli.models import add_model_options, open_models
from evals.concepts import extractor_info
from evals.files import file_hash
from evals.manifest import (
    MANIFEST_FILE,
    TraceEntry,
    make_manifest,
    provenance,
    read_manifest,
)
from evals.replay import Replayed, Setting, replay_all
from evals.stoplists import Stoplists, load_stoplists
from evals.terminology import load_terminology
from evals.variants import FOLDER, VARIANT_IDS, Variant, load_variant
from exaid_core.trace.run_records import StoplistsProvenance
from mdagents_llm.errors import ConfigError
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.processes import cores, in_processes
from mdagents_llm.terminal.printing import print_line, print_result

RUNS = Path("data") / "runs"
"""Folder of run logs, relative to the run folder."""
VARIANTS = Path("data") / "variants"
"""Folder of the variant settings calibrated by `run_all`, relative to the run folder."""
_WORTH_A_PROCESS = 4  # traces per process, a few seconds of work
_SHARES = 3


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
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
    """Add the replay options, which `run_all` shares."""
    add = parser.add_argument
    add("--variants", default=",".join(VARIANT_IDS), metavar="V0,V1,…", help="[%(default)s]")
    add(
        "--settings",
        type=Path,
        metavar="DIR",
        help=f"V0.yaml … [OUT/{VARIANTS} of `run_all`, or those of this package]",
    )
    add("--out", type=Path, metavar="DIR", help="[the first folder named, or the current one]")
    add("--manifest", type=Path, metavar="FILE", help=f"[OUT/{MANIFEST_FILE}, or made on the fly]")
    add("--stoplists", type=Path, metavar="DIR", help="from `make_stoplists` [none]")
    add(
        "--jobs",
        type=_positive,
        default=4,
        metavar="N",
        help="traces under replay at once [%(default)s]",
    )
    add("--fresh", action="store_true", help="replace run logs that exist")
    add_model_options(parser)


def replay(options: argparse.Namespace, files: Sequence[Path], out: Path) -> int:
    """Replay traces under the settings of the command line, with a progress bar.

    Args:
        options: Options added by `add_replay_options`.
        files: Trace files.
        out: Run folder.
    """
    variants = _variants(options, out)
    stoplists = load_stoplists(options.stoplists) if options.stoplists else Stoplists()
    work = _Work(
        options,
        out,
        tuple(variants),
        _dataset_hash(options.manifest or out / MANIFEST_FILE, files, options.manifest),
        stoplists.provenance,
    )
    done: list[Replayed] = []
    bar = tqdm(
        total=len(variants) * len(files), unit="case", desc="replay", disable=None, leave=False
    )
    with bar:

        def tell(results: Sequence[Replayed]) -> None:
            done.extend(results)
            bar.update(len(results))

        _replay_all(work, files, tell)
    errors = [result.error for result in done if result.error]
    kept = sum(result.was_there for result in done)
    made = len(done) - kept - len(errors)
    for error in sorted(errors):
        print_line(f"error: {error}")
    print_result(
        f"{out / RUNS}: {made} run logs written, {kept} already present, {len(errors)} failed"
    )
    return FOUND_PROBLEMS if errors else 0


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of a replay, in a form that can be sent between processes."""

    options: argparse.Namespace
    out: Path
    variants: tuple[Variant, ...]
    dataset_hash: str
    stoplists: StoplistsProvenance


def _replay_all(
    work: _Work, files: Sequence[Path], tell: Callable[[Sequence[Replayed]], None]
) -> None:
    """Replay all traces.

    Live model calls are I/O-bound, so one process awaits them all. With recorded replies, EXAID's
    own work dominates, so it is split among several processes.

    Args:
        work: Settings and variants to replay.
        files: Trace files.
        tell: Callback that receives outcomes as they arrive.
    """
    options = work.options
    processes = min(options.jobs, cores(), len(files) // _WORTH_A_PROCESS)
    if options.cache is not CacheMode.ONLY or processes <= 1:
        asyncio.run(_replay_here(work, files, tell))
        return
    # Several shares per process, since traces differ in length.
    count = processes * _SHARES
    shares = [(work, tuple(files[place::count])) for place in range(count) if files[place::count]]
    for of_share in in_processes(_replay_share, shares, processes=processes):
        tell(of_share)


def _replay_share(share: tuple[_Work, tuple[Path, ...]]) -> list[Replayed]:
    done: list[Replayed] = []
    asyncio.run(_replay_here(*share, done.extend))
    return done


async def _replay_here(
    work: _Work, files: Sequence[Path], tell: Callable[[Sequence[Replayed]], None]
) -> None:
    options = work.options
    async with open_models(options, work.out) as models:
        setting = Setting(
            models,
            work.out / RUNS,
            work.dataset_hash,
            extractor_info(load_terminology()),
            work.stoplists,
        )
        async for result in replay_all(
            setting, work.variants, files, jobs=options.jobs, fresh=options.fresh
        ):
            tell([result])


def variant_ids(options: argparse.Namespace) -> list[str]:
    """Return the variants named on the command line, without duplicates.

    Raises:
        ConfigError: No variant is named.
    """
    names = list(dict.fromkeys(filter(None, options.variants.split(","))))
    if not names:
        raise ConfigError("--variants names none")
    return names


def _variants(options: argparse.Namespace, out: Path) -> list[Variant]:
    """Return the settings of the variants, preferring the run's own over the package's."""
    own = options.settings or out / VARIANTS
    return [
        load_variant(name, own if options.settings or (own / f"{name}.yaml").is_file() else FOLDER)
        for name in variant_ids(options)
    ]


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


def _replay(options: argparse.Namespace) -> int:
    folder = next((path for path in options.traces if path.is_dir()), Path())
    out = output_folder(options.out, folder)
    _variants(options, out)  # fail before traces are read
    files, status = open_traces(options.traces, of_one_run=True)
    return max(status, replay(options, list(files.values()), out))


main = program(parser, _replay)

if __name__ == "__main__":
    raise SystemExit(main())
