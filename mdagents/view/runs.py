"""The runs of an output folder, as their files tell of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from infra.errors import ConfigError
from mdagents.live import LIVE_FILE
from mdagents.live.run import LiveRun
from mdagents.records.manifest import RunManifest, RunTotals, read_manifest

_SILENT = 5.0  # seconds; a run that works writes its state each second


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
    totals: RunTotals
    """As new as its feed."""

    @property
    def questions(self) -> int:
        """Number of questions, each epoch counted."""
        epochs = self.manifest.options.get("epochs", 1)
        return len(self.manifest.item_ids) * (epochs if isinstance(epochs, int) else 1)


class Runs:
    """Lists the runs of a folder, and follows the feeds of those that are looked at.

    Args:
        output_dir: Where runs are.
        now: The time, in seconds since 1970 UTC, as files have it.
    """

    def __init__(self, output_dir: Path, now: Callable[[], float] = time.time) -> None:
        self._output_dir = output_dir
        self._now = now
        self._live: dict[str, LiveRun] = {}

    def list(self) -> list[ListedRun]:
        """Return the runs, the one that was started last comes first."""
        found = []
        for file in self._output_dir.glob("*/run.json"):
            try:
                manifest = read_manifest(file.parent)
            except ConfigError:
                continue  # of another version
            if manifest is not None:
                found.append(self._listed(file.parent, manifest))
        return sorted(found, key=lambda run: run.manifest.invocations[-1].started_at, reverse=True)

    def get(self, name: str) -> ListedRun | None:
        """Return the run of a name, which is looked for among those that are there."""
        return next((run for run in self.list() if run.name == name), None)

    def live(self, run: ListedRun) -> LiveRun:
        """Return what the feed of a run tells of it by now."""
        live = self._live.setdefault(run.name, LiveRun(run.folder / LIVE_FILE))
        live.update()
        return live

    def _listed(self, folder: Path, manifest: RunManifest) -> ListedRun:
        state = RunState.FINISHED if manifest.finished else RunState.INTERRUPTED
        totals = manifest.totals
        feed = folder / LIVE_FILE
        try:
            if not manifest.finished and self._now() - feed.stat().st_mtime < _SILENT:
                state = RunState.RUNNING
        except FileNotFoundError:
            pass
        listed = ListedRun(folder.name, folder, manifest, state, totals)
        if state is RunState.FINISHED:
            return listed
        snapshot = self.live(listed).snapshot
        if snapshot is None:
            return listed
        return ListedRun(folder.name, folder, manifest, state, snapshot.totals)
