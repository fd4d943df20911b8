"""Find the trace files named on a command line, skipping those that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.files import is_read_only
from exaid_core.trace.files import RecordError
from exaid_core.trace.journal import unpack_journal
from exaid_core.trace.names import JOURNAL, TRACE_SUFFIX
from exaid_core.trace.records import TraceMeta
from exaid_core.trace.rules import late_note
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching


@dataclass(frozen=True, slots=True)
class Usable:
    """The usable trace files, and messages about the others."""

    by_case: Mapping[str, Path]
    """Trace file by case id, ordered by file name."""
    refused: tuple[str, ...]
    """One line for each file that is skipped."""
    notes: tuple[str, ...]
    """One line for each file that is used despite an irregularity."""


def trace_files(paths: Sequence[Path]) -> list[Path]:
    """Return the trace files among `paths` and in folders among them, ordered by name.

    For a run folder, its `traces` folder is used, into which its journal is unpacked.

    Raises:
        ConfigError: A path does not exist, the paths contain no trace files, or a journal is in a
            read-only folder.
        RecordError: A journal is damaged.
        StorageError: A trace cannot be unpacked.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            if (path / JOURNAL).is_file():
                if is_read_only(path):
                    raise ConfigError(
                        f"{path} is read-only, and its traces are to be unpacked in it from "
                        f"{JOURNAL}: copy it to a folder of your own"
                    )
                unpack_journal(path)
            below = matching(path, f"*{TRACE_SUFFIX}")
            found += below or matching(path / "traces", f"*{TRACE_SUFFIX}")
        elif path.is_file():
            found.append(path)
        else:
            raise ConfigError(f"there is no {path}")
    if not found:
        raise ConfigError(f"no *{TRACE_SUFFIX} in {', '.join(map(str, paths))}")
    return sorted(set(found), key=lambda path: path.name)


def usable(files: Sequence[Path], *, of_one_run: bool) -> Usable:
    """Read all traces and skip those that are unreadable or repeat a case.

    Args:
        files: Trace files, from `trace_files`.
        of_one_run: Whether to also skip traces of another run or model than most.
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
