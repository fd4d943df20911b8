"""Lists the runs of an output folder from their files."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from mdagents.display.display import Snapshot
from mdagents.live import LIVE_FILE
from mdagents.live.lines import decoded
from mdagents.records.manifest import RunManifest, RunTotals, problem_of, read_manifest
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching
from mdagents_llm.files.regular_file import regular_file, status_of
from mdagents_llm.text import well_formed

_OF_NO_USE = "its run.json is of another version of this program, or damaged"
_KEPT = 500  # manifests
_SILENT = 5.0  # seconds; a run in progress writes its state each second
_TAIL = 200_000  # bytes at the end of a feed, enough for one second of most runs


class RunState(StrEnum):
    """Whether a run is running, interrupted or finished."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A readable run of the list."""

    name: str
    folder: Path
    manifest: RunManifest
    state: RunState
    snapshot: Snapshot | None
    """Latest snapshot of the feed; None without one, or if the run has written its totals."""
    looked_at: float
    """When the run's files were read, in seconds since 1970 UTC."""

    @property
    def totals(self) -> RunTotals:
        """Totals of the latest snapshot, else of the manifest."""
        return self.snapshot.totals if self.snapshot else self.manifest.totals

    @property
    def start(self) -> str:
        """When the run was last started or resumed, in ISO 8601 UTC; empty if it never was."""
        return max((one.started_at for one in self.manifest.invocations), default="")

    @property
    def questions(self) -> int:
        """Number of questions times epochs."""
        return len(self.manifest.item_ids) * self.manifest.epochs


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A run of another version of this program, or one whose `run.json` is damaged."""

    name: str
    why: str
    """Reason, as a sentence for the user."""


class Runs:
    """Reader of the runs of a folder.

    Args:
        output_dir: Folder of the runs.
        now: Clock in seconds since 1970 UTC, comparable to file times.
    """

    def __init__(self, output_dir: Path, now: Callable[[], float] = time.time) -> None:
        self.output_dir = output_dir
        self._now = now
        self._read = lru_cache(maxsize=_KEPT)(lambda folder, _: _manifest_or_why(folder))

    def list(self) -> list[ListedRun | UnreadableRun]:
        """Return the readable runs, the latest start first, then the unreadable ones by name."""
        found = [self._listed(file.parent) for file in matching(self.output_dir, "*/run.json")]
        runs = [run for run in found if isinstance(run, ListedRun)]
        unreadable = [run for run in found if isinstance(run, UnreadableRun)]
        return [
            *sorted(runs, key=lambda run: run.start, reverse=True),
            *sorted(unreadable, key=lambda run: run.name),
        ]

    def get(self, name: str) -> ListedRun | UnreadableRun | None:
        """Return the run of this name from the folder's listing; None if it does not exist.

        A name that is not UTF-8 is also found as addresses and pages have it.
        """
        folders = list(self.output_dir.iterdir()) if self.output_dir.is_dir() else []
        found = [folder for folder in folders if name in _spellings(folder.name)]
        if len(found) > 1:
            return UnreadableRun(
                name,
                "several runs have this name but for bytes that are not UTF-8; "
                "rename their folders",
            )
        return self._listed(found[0]) if found else None

    def _manifest(self, folder: Path) -> RunManifest | str | None:
        """Return a cached manifest, or why it cannot be read; None if the file does not exist."""
        status = status_of(folder / "run.json")
        if status is None:
            return None
        return self._read(folder, (status.st_ino, status.st_mtime_ns, status.st_size))

    def _listed(self, folder: Path) -> ListedRun | UnreadableRun | None:
        manifest = self._manifest(folder)
        if manifest is None:
            return None
        if isinstance(manifest, str):
            return UnreadableRun(folder.name, manifest)
        if manifest.finished:
            return ListedRun(folder.name, folder, manifest, RunState.FINISHED, None, self._now())
        state, snapshot = RunState.INTERRUPTED, None
        if not _has_ended(manifest):  # else the manifest has the latest totals
            with contextlib.suppress(OSError):
                if self._now() - (folder / LIVE_FILE).stat().st_mtime < _SILENT:
                    state = RunState.RUNNING
                snapshot = newest_snapshot(folder / LIVE_FILE)
        return ListedRun(folder.name, folder, manifest, state, snapshot, self._now())


def _spellings(name: str) -> tuple[str, ...]:
    """Return the name of a folder, as it is and as an address and a page have it."""
    return name, os.fsencode(name).decode("utf-8", "replace"), well_formed(name)


def _manifest_or_why(folder: Path) -> RunManifest | str | None:
    """Return the manifest of a folder, or why it cannot be read; None if it does not exist."""
    try:
        return read_manifest(folder)
    except ConfigError as error:
        return f"{_OF_NO_USE} ({problem_of(error.__cause__)})"


def _has_ended(manifest: RunManifest) -> bool:
    """Return whether the last start of a run has recorded its end, so it was not killed."""
    return bool(manifest.invocations) and manifest.invocations[-1].ended_at is not None


def newest_snapshot(path: Path) -> Snapshot | None:
    """Return the last snapshot of a feed; None if the feed holds no snapshot.

    Raises:
        OSError: The feed does not exist or cannot be read.
    """
    with regular_file(path) as file:
        size, tail = file.seek(0, os.SEEK_END), _TAIL
        while True:
            file.seek(max(0, size - tail))
            for line in reversed(file.read(tail).split(b"\n")):
                found = decoded(line) if b'"snapshot"' in line else None
                if found is not None and isinstance(found.what, Snapshot):
                    return found.what
            if tail >= size:
                return None
            tail *= 4
