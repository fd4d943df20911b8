"""Finds recorded traces, and the run logs of EXAID that belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exaid_core.logged_summaries import read_log_meta
from exaid_core.trace.files import RecordError, read_records
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching

_SUFFIX = ".jsonl.gz"
_LOGS_BESIDE = ("../exaid", "../runs/V0")
"""Folders of run logs, seen from that of a trace: in a run's folder, in a published data set."""


@dataclass(frozen=True, slots=True)
class FrozenTrace:
    """A trace in the list, with one of the run logs of its case."""

    path: Path
    case_id: str
    turns: int
    model: str
    recorded: str
    """When the trace was written, in ISO 8601."""
    log: Path | None = None
    variant: str = ""
    """Variant of EXAID that wrote the log; empty without a log."""
    address: str = ""
    """Address of the trace's page."""

    @property
    def name(self) -> str:
        """Case id, with the variant of EXAID."""
        return " · ".join(filter(None, (self.case_id, self.variant)))


def is_of_traces(path: Path) -> bool:
    """Return whether a path names a trace, or a folder of traces rather than of runs."""
    if not path.is_dir():
        return path.name.endswith(_SUFFIX)
    is_of_runs = (path / "run.json").is_file() or any(path.glob("*/run.json"))
    return not is_of_runs and matching(path, f"**/*.trace{_SUFFIX}") != []


def find_traces(given: Sequence[Path]) -> tuple[list[FrozenTrace], list[str]]:
    """Return the traces, each with each run log of its case, and why other files are left out.

    Args:
        given: Traces, run logs, and folders of them.

    Raises:
        ConfigError: A path does not exist, or there is no trace.
        RecordError: A file that was named cannot be read.
    """
    for path in given:
        if not path.exists():
            raise ConfigError(f"there is no file or folder {path}")
    traces: list[FrozenTrace] = []
    logs: dict[str, list[tuple[str, Path]]] = {}
    unreadable: list[str] = []
    for path in dict.fromkeys(_files(given)):
        try:
            found = _trace_or_log(path)
            if path in given and isinstance(found, FrozenTrace):
                read_trace(path)
        except RecordError as error:
            if path in given:
                raise
            unreadable.append(str(error))
            continue
        if isinstance(found, FrozenTrace):
            traces.append(found)
        else:
            logs.setdefault(found[0], []).append((found[1], path))
    if not traces:
        what = f": {unreadable[0]}" if unreadable else ""
        raise ConfigError(f"there is no trace in {', '.join(map(str, given))}{what}")
    shown: list[FrozenTrace] = []
    for trace in sorted(traces, key=lambda one: one.case_id):
        of_case = sorted(logs.get(trace.case_id) or _beside(trace))
        shown += [replace(trace, variant=variant, log=log) for variant, log in of_case] or [trace]
    numbered = [replace(one, address=f"/traces/{n}") for n, one in enumerate(shown, start=1)]
    return numbered, unreadable


def _files(given: Iterable[Path]) -> Iterable[Path]:
    for path in given:
        yield from matching(path, f"**/*{_SUFFIX}") if path.is_dir() else (path,)


def _trace_or_log(path: Path) -> FrozenTrace | tuple[str, str]:
    """Return a trace, or (case id, variant) of a run log."""
    number, first = next(read_records(path), (1, {}))
    kind = first.get("record_type")
    if kind == "run_meta":
        meta = read_log_meta(path)
        return meta.case_id, meta.variant_id
    if kind != "trace_meta":
        raise RecordError(path, number, "neither a trace (exaid.trace) nor a run log (exaid.run)")
    turns = first.get("total_turns")
    told = [str(first.get(name, "")) for name in ("case_id", "model", "created_at")]
    return FrozenTrace(path, told[0], turns if isinstance(turns, int) else 0, told[1], told[2][:19])


def _beside(trace: FrozenTrace) -> list[tuple[str, Path]]:
    """Return the (variant, run log) of a case in the folders where logs usually are."""
    stem = trace.path.name.removesuffix(f".trace{_SUFFIX}")
    for folder in _LOGS_BESIDE:
        for name in (f"{stem}{_SUFFIX}", trace.path.name):
            path = trace.path.parent / folder / name
            try:
                meta = read_log_meta(path)
            except RecordError:
                continue
            if meta.case_id == trace.case_id:
                return [(meta.variant_id, path)]
    return []
