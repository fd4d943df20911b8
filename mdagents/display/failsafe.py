"""A display whose errors do not affect the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Self

from mdagents.agents.feed import Event
from mdagents.display.display import Display, Snapshot
from mdagents.records.manifest import RunTotals
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents_llm.layers.retry import Wait


class Failsafe(Display):
    """Passes everything to a display; at its first error removes it and uses another instead.

    Args:
        display: What is shown while there is no error.
        instead: What is shown after the first error, which is reported to it in one line.
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
        """See `Display`."""
        self._show(lambda display: display.happened(item, event))

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """See `Display`."""
        self._show(lambda display: display.finished(record, totals))

    def summarised(self, made: CaseSummaries) -> None:
        """See `Display`."""
        self._show(lambda display: display.summarised(made))

    def waiting(self, wait: Wait) -> None:
        """See `Display`."""
        self._show(lambda display: display.waiting(wait))

    def refresh(self, snapshot: Snapshot) -> None:
        """See `Display`."""
        self._show(lambda display: display.refresh(snapshot))

    def say(self, line: str) -> None:
        """See `Display`."""
        self._show(lambda display: display.say(line))

    def _show(self, show: Callable[[Display], object]) -> None:
        try:
            show(self._display)
        # SystemExit: rich would end the program when the terminal is gone.
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a display must not end the run
            if self._display is self._instead:
                return
            failed, self._display = self._display, self._instead
            with contextlib.suppress(Exception, SystemExit):
                failed.__exit__(None, None, None)
            self.say(f"the display failed ({error!r}): the run continues and is shown line by line")
            self._show(show)
