"""`python -m evals.cli.make_manifest RUN`: write the manifest of a run's frozen traces."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from evals.cli.command import RUN_FILE, make_parser, open_traces, output_folder, program
from evals.manifest import (
    MANIFEST_FILE,
    Summary,
    make_manifest,
    provenance,
    read_decoding,
    write_manifest,
)
from mdagents_llm.terminal.printing import print_result


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "make_manifest",
        "Write the manifest of the traces of a run of main.py, or of any folder of traces.",
    )
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="folder of a run, or of *.trace.jsonl.gz")
    add("--out", type=Path, metavar="FILE", help=f"the manifest [RUN/{MANIFEST_FILE}]")
    add("--dataset-id", default="", metavar="ID", help="name of the set [made of the run's id]")
    add(
        "--mac-fork-url",
        default="unknown",
        metavar="URL",
        help="where the code of the multi-agent system came from [%(default)s]",
    )
    add(
        "--decoding",
        metavar="JSON",
        help='how the agents\' model sampled, if the traces do not say [{"temperature": 0}]',
    )
    return parser


def _make(options: argparse.Namespace) -> int:
    out = options.out or output_folder(None, options.run) / MANIFEST_FILE
    files, status = open_traces([options.run], of_one_run=True)
    records = make_manifest(
        list(files.values()),
        dataset_id=options.dataset_id,
        mac_fork_url=options.mac_fork_url,
        config_hash=config_hash_of(options.run),
        decoding=read_decoding(options.decoding) if options.decoding else None,
    )
    write_manifest(out, records)
    totals = next(record for record in records if isinstance(record, Summary))
    print_result(
        f"{out}: {totals.total_cases} traces, {totals.total_turns} turns, "
        f"{totals.total_deltas} deltas, {provenance(records).trace_dataset_hash}"
    )
    return status


def config_hash_of(run_folder: Path) -> str:
    """Return the hash of the run's configuration that main.py wrote; empty if missing."""
    try:
        told = json.loads((run_folder / RUN_FILE).read_bytes())["config_hash"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    text = str(told).removeprefix("sha256:")
    return f"sha256:{text}" if len(text) == 64 else ""


main = program(parser, _make)

if __name__ == "__main__":
    raise SystemExit(main())
