"""Current state of a run from its feed: questions in progress, recent decisions, snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mdagents.agents.events import Ended, Started
from mdagents.display.display import Snapshot
from mdagents.live.case import LiveCase
from mdagents.live.lines import FeedLine
from mdagents.live.reader import FeedReader
from mdagents.records.summaries import ItemKey

_KEPT = 200  # decided questions; records and traces hold all of them


class LiveRun:
    """Follows the feed of a run.

    Args:
        path: `live.jsonl`, which is missing if the run is finished or has not started.
    """

    def __init__(self, path: Path) -> None:
        self._reader = FeedReader(path)
        self.snapshot: Snapshot | None = None
        """Latest snapshot; None before the first."""
        self.cases: dict[ItemKey, LiveCase] = {}
        """Questions in the order of their start."""

    def update(self) -> list[FeedLine]:
        """Read, apply and return the new lines."""
        lines = self.read()
        self.take(lines)
        return lines

    def read(self) -> list[FeedLine]:
        """Return the new lines, for `take`; another thread may call this method."""
        return self._reader.read()

    def take(self, lines: Iterable[FeedLine]) -> None:
        """Apply lines in order.

        What EXAID does about a decided question that was forgotten, or left out of the feed, is
        passed over: it must not seem to be in progress again.
        """
        for line in lines:
            if isinstance(line.what, Snapshot):
                self.snapshot = line.what
            elif line.item is not None:
                if isinstance(line.what, Started | Ended):
                    self.cases.setdefault(line.item, LiveCase(line.item))
                if case := self.cases.get(line.item):
                    case.take(line)
        self._forget()

    @property
    def under_way(self) -> list[LiveCase]:
        """Questions that are not decided."""
        return [case for case in self.cases.values() if case.ended is None]

    @property
    def decided(self) -> list[LiveCase]:
        """Recently decided questions, the latest first."""
        found = [case for case in self.cases.values() if case.ended is not None]
        return sorted(found, key=lambda case: case.ended_at or 0, reverse=True)

    def _forget(self) -> None:
        for case in self.decided[_KEPT:]:
            del self.cases[case.item]
