"""Finds the trace files of a command line, and leaves out those that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exaid_core.trace.files import RecordError
from exaid_core.trace.records import TraceMeta
from exaid_core.trace.rules import late_note
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError

TRACE_SUFFIX = ".trace.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Usable:
    """The trace files that can be used, and what is said of the others."""

    by_case: Mapping[str, Path]
    """Case id -> its file, in order of the files' names."""
    refused: tuple[str, ...]
    """A line for each file that is left out."""
    notes: tuple[str, ...]
    """A line for each file that is used but odd."""


def trace_files(paths: Sequence[Path]) -> list[Path]:
    """Return the trace files among `paths` and in the folders among them, in order of their names.

    For the folder of a run, its `traces` folder is used.

    Raises:
        ConfigError: A path does not exist, or the paths have no trace files.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            below = sorted(path.glob(f"*{TRACE_SUFFIX}"))
            found += below or sorted((path / "traces").glob(f"*{TRACE_SUFFIX}"))
        elif path.is_file():
            found.append(path)
        else:
            raise ConfigError(f"there is no {path}")
    if not found:
        raise ConfigError(f"no *{TRACE_SUFFIX} in {', '.join(map(str, paths))}")
    return sorted(set(found), key=lambda path: path.name)


def usable(files: Sequence[Path], *, of_one_run: bool) -> Usable:
    """Read all traces and leave out those that cannot be read, or that are of a case again.

    Args:
        files: See `trace_files`.
        of_one_run: Whether traces of another run or model than most are left out too.
    """
    metas: dict[Path, TraceMeta] = {}
    refused: list[str] = []
    notes: list[str] = []
    for path in files:
        try:
            trace = read_trace(path)
        except RecordError as error:
            refused.append(str(error))
            continue
        metas[path] = trace.meta
        if trace.late:
            notes.append(f"{path}: {late_note(trace.late)}")
    runs = Counter(map(_run_of, metas.values()))
    usual = runs.most_common(1)[0][0] if runs else ""
    used: dict[str, Path] = {}
    for path, meta in metas.items():
        run = _run_of(meta)
        if of_one_run and run != usual:
            what = f"of another run than most: {run}, not {usual}"
            refused.append(str(RecordError(path, 1, what)))
        elif used.setdefault(meta.case_id, path) is not path:
            what = f"case_id: of {meta.case_id}, as {used[meta.case_id]} is"
            refused.append(str(RecordError(path, 1, what)))
    return Usable(used, tuple(refused), tuple(notes))


def _run_of(meta: TraceMeta) -> str:
    return f"mas_run_id {meta.mas_run_id} with model {meta.model}"
