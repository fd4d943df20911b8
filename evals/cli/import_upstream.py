"""`python -m evals.cli.import_upstream FOLDER`: import published logs of earlier versions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evals.changes import Changes
from evals.cli.command import FOUND_PROBLEMS, make_parser, output_folder, program
from evals.cli.replay import RUNS
from evals.delta_seqs import SeqsOf
from evals.files import write_whole
from evals.manifest import MANIFEST_FILE, ManifestRecord
from evals.trace_files import trace_files, usable
from evals.upstream import Line, format_of, import_manifest, import_run_log
from exaid_core.trace.files import RecordError, dump_line, read_records, validated, write_gz
from exaid_core.trace.names import TRACE_SUFFIX
from exaid_core.trace.run_records import RunRecord
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching
from mdagents_llm.terminal.printing import print_line, print_result
from mdagents_llm.text import first_names

IMPORTED = "imported"
"""Folder of the imported files, relative to the source folder."""

_MOST_NAMED = 5
_SUFFIXES = (".jsonl.gz", ".jsonl", ".json")
_RUN: TypeAdapter[Any] = TypeAdapter(RunRecord)
_MANIFEST: TypeAdapter[Any] = TypeAdapter(ManifestRecord)


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "import_upstream",
        "Bring published run logs and manifests of earlier forms into the present one: writes "
        f"OUT/{RUNS}/VARIANT/CASE.jsonl.gz, OUT/{MANIFEST_FILE} and copies of the traces, for "
        "`compute_metrics OUT`. Each change is named, with how often it was made.",
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="with the published files, at any depth")
    add("--traces", nargs="+", type=Path, default=[], metavar="TRACES", help="further traces")
    add("--out", type=Path, metavar="DIR", help=f"[FOLDER/{IMPORTED}]")
    return parser


@dataclass(slots=True)
class _Found:
    """The files of a folder, grouped by format."""

    by_format: dict[str, list[Path]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)


def _import(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder" if folder.exists() else f"there is no {folder}")
    out = output_folder(options.out, folder, IMPORTED)
    found = _find(folder, out)
    logs, manifests = (found.by_format.get(name, []) for name in ("exaid.run", "exaid.manifest"))
    if not logs and not manifests:
        for line in found.refused:
            print_line(f"error: {line}")
        raise ConfigError(f"no run log and no manifest in {folder}")
    paths = found.by_format.get("exaid.trace", [])
    paths += trace_files(options.traces) if options.traces else []
    traces = usable(paths, of_one_run=False)
    refused = [*found.refused, *traces.refused]
    changes = Changes()
    made = _run_logs(logs, out, traces.by_case, changes, refused)
    made += _manifest(manifests, out, changes, refused)
    for case_id, path in traces.by_case.items():
        write_whole(out / "traces" / f"{case_id}{TRACE_SUFFIX}", path.read_bytes())
    _tell(found, traces.notes, changes, refused)
    print_result(
        f"{out}: {made} of {len(logs) + len(manifests)} run logs and manifests imported, "
        f"{len(traces.by_case)} traces copied"
    )
    return FOUND_PROBLEMS if refused else 0


def _find(folder: Path, out: Path) -> _Found:
    found = _Found()
    for path in matching(folder, "**/*"):
        if not path.is_file() or path.is_relative_to(out):
            continue
        name = ""
        if path.name.endswith(_SUFFIXES):
            try:
                name = format_of(next(read_records(path), (1, {}))[1])
            except RecordError as error:
                found.refused.append(str(error))
                continue
        if name in ("exaid.run", "exaid.manifest", "exaid.trace"):
            found.by_format.setdefault(name, []).append(path)
        else:
            found.others.append(path)
    return found


def _run_logs(
    logs: Sequence[Path],
    out: Path,
    traces: Mapping[str, Path],
    changes: Changes,
    refused: list[str],
) -> int:
    """Import run logs and return the number imported."""
    seqs: dict[str, SeqsOf | None] = {}

    def trace_of(case_id: str) -> SeqsOf | None:
        if case_id not in seqs:
            path = traces.get(case_id)
            seqs[case_id] = SeqsOf(read_trace(path)) if path else None
        return seqs[case_id]

    made: dict[Path, Path] = {}
    for path in logs:
        own = Changes()
        try:
            records = import_run_log(path, list(read_records(path)), own, trace_of)
            lines = _checked(path, records, _RUN)
        except RecordError as error:
            refused.append(str(error))
            continue
        meta = records[0][1]
        target = out / RUNS / meta["variant_id"] / f"{meta['case_id']}.jsonl.gz"
        if target in made:
            what = f"case_id: of the same case and variant as {made[target]}"
            refused.append(str(RecordError(path, 1, what)))
            continue
        write_gz(target, lines)
        made[target] = path
        changes.counts.update(own.counts)
    return len(made)


def _manifest(manifests: Sequence[Path], out: Path, changes: Changes, refused: list[str]) -> int:
    """Import the first manifest and return the number imported: 0 or 1."""
    refused += [f"{path} is a second manifest, after {manifests[0]}" for path in manifests[1:]]
    for path in manifests[:1]:
        own = Changes()
        try:
            lines = _checked(path, import_manifest(read_records(path), own), _MANIFEST)
        except RecordError as error:
            refused.append(str(error))
            continue
        write_whole(out / MANIFEST_FILE, b"".join(lines))
        changes.counts.update(own.counts)
        return 1
    return 0


def _checked(path: Path, records: Iterable[Line], form: TypeAdapter[Any]) -> list[bytes]:
    """Validate records against the current format and return their lines.

    Raises:
        RecordError: A record does not match the current format despite the changes.
    """
    return [dump_line(validated(form, path, number, record)) for number, record in records]


def _tell(found: _Found, notes: Sequence[str], changes: Changes, refused: Sequence[str]) -> None:
    """Print the changes made, notes on irregularities, and the files skipped."""
    for what, count in sorted(changes.counts.items()):
        print_result(f"{count:7,} x {what}")
    if found.others:
        names = first_names([path.name for path in found.others], _MOST_NAMED)
        print_result(f"left alone, neither run log, manifest nor trace: {names}")
    for note in notes:
        print_line(f"note: {note}")
    for line in refused:
        print_line(f"error: {line}")


main = program(parser, _import)

if __name__ == "__main__":
    raise SystemExit(main())
