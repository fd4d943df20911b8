"""A display whose errors do not affect the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Self

from mdagents.agents.events import Event
from mdagents.display.display import Display, Snapshot
from mdagents.records.manifest import RunTotals
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents_llm.layers.retry import Wait


class Failsafe(Display):
    """Forwards everything to a display, and replaces it with another after its first error.

    Args:
        display: Display that is used until its first error.
        instead: Display that is used afterwards; it first shows the error in one line.
    """

    def __init__(self, display: Display, instead: Display) -> None:
        super().__init__()
        self._display = display
        self._instead = instead
        self.period = display.period

    def __enter__(self) -> Self:
        self._show(lambda display: display.__enter__())
        return self

    def __exit__(self, *exception: object) -> None:
        self._show(lambda display: display.__exit__(*exception))

    def happened(self, item: ItemKey, event: Event) -> None:
        """Forward an event of a question."""
        self._show(lambda display: display.happened(item, event))

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """Forward a decided question."""
        self._show(lambda display: display.finished(record, totals))

    def summarised(self, made: CaseSummaries) -> None:
        """Forward the summaries of a decided question."""
        self._show(lambda display: display.summarised(made))

    def waiting(self, wait: Wait) -> None:
        """Forward the pause of a call."""
        self._show(lambda display: display.waiting(wait))

    def refresh(self, snapshot: Snapshot) -> None:
        """Forward the state of the run."""
        self._show(lambda display: display.refresh(snapshot))

    def say(self, line: str) -> None:
        """Forward a line."""
        self._show(lambda display: display.say(line))

    def _show(self, show: Callable[[Display], object]) -> None:
        try:
            show(self._display)
        # SystemExit: rich exits the program if the terminal is gone.
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a display must not end the run
            if self._display is self._instead:
                return
            failed, self._display = self._display, self._instead
            with contextlib.suppress(Exception, SystemExit):
                failed.__exit__(None, None, None)
            self.say(f"the display failed ({error!r}): the run continues and is shown line by line")
            self._show(show)
