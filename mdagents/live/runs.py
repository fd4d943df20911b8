"""The runs of an output folder, as their files tell of them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from infra.errors import ConfigError
from mdagents.display.display import Snapshot
from mdagents.live import LIVE_FILE
from mdagents.live.lines import decoded
from mdagents.records.manifest import RunManifest, RunTotals, read_manifest

_SILENT = 5.0  # seconds; a run that works writes its state each second
_TAIL = 200_000  # bytes at the end of a feed, in which a second of most runs has room


class RunState(StrEnum):
    """What a run does."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run of the list."""

    name: str
    folder: Path
    manifest: RunManifest
    state: RunState
    snapshot: Snapshot | None
    """The newest of its feed; None when it has written its totals."""
    looked_at: float
    """When this was read, in seconds since 1970 UTC."""

    @property
    def totals(self) -> RunTotals:
        """As new as its feed."""
        return self.snapshot.totals if self.snapshot else self.manifest.totals

    @property
    def start(self) -> str:
        """When it was started or gone on with last, ISO 8601 UTC; empty when it never was."""
        return max((one.started_at for one in self.manifest.invocations), default="")

    @property
    def questions(self) -> int:
        """Number of questions, each epoch counted."""
        epochs = self.manifest.options.get("epochs", 1)
        return len(self.manifest.item_ids) * (epochs if isinstance(epochs, int) else 1)


class Runs:
    """Lists the runs of a folder.

    Args:
        output_dir: Where runs are.
        now: The time, in seconds since 1970 UTC, as files have it.
    """

    def __init__(self, output_dir: Path, now: Callable[[], float] = time.time) -> None:
        self._output_dir = output_dir
        self._now = now

    def list(self) -> list[ListedRun]:
        """Return the runs, the one that was started last comes first."""
        found = filter(None, map(self._listed, self._output_dir.glob("*/run.json")))
        return sorted(found, key=lambda run: run.start, reverse=True)

    def get(self, name: str) -> ListedRun | None:
        """Return the run of a name, which is looked for among those that are there."""
        for file in self._output_dir.glob("*/run.json"):
            if file.parent.name == name:
                return self._listed(file)
        return None

    def _listed(self, file: Path) -> ListedRun | None:
        folder = file.parent
        try:
            manifest = read_manifest(folder)
        except ConfigError:
            return None  # of another version
        if manifest is None:
            return None
        if manifest.finished:
            return ListedRun(folder.name, folder, manifest, RunState.FINISHED, None, self._now())
        state, snapshot = RunState.INTERRUPTED, None
        if not _has_ended(manifest):  # else its own totals are the newest
            with contextlib.suppress(FileNotFoundError):
                if self._now() - (folder / LIVE_FILE).stat().st_mtime < _SILENT:
                    state = RunState.RUNNING
                snapshot = newest_snapshot(folder / LIVE_FILE)
        return ListedRun(folder.name, folder, manifest, state, snapshot, self._now())


def _has_ended(manifest: RunManifest) -> bool:
    """Return whether the last start of a run has written how it ended: it was not killed."""
    return bool(manifest.invocations) and manifest.invocations[-1].ended_at is not None


def newest_snapshot(path: Path) -> Snapshot | None:
    """Return the last state that a feed tells of; None when it holds none.

    Raises:
        FileNotFoundError: There is no feed.
    """
    with path.open("rb") as file:
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
