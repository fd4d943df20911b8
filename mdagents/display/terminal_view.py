"""`--display full` on a terminal: the figures, the focused case and what is finished, live."""

from __future__ import annotations

import select
from collections import deque
from dataclasses import replace
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from exaid_core.channel import clean
from exaid_core.schema.agent_summary import AgentSummary
from mdagents.display.display import Display, Snapshot
from mdagents.display.focus import Focus, OpenCase
from mdagents.display.frame import Frame, Pace, summary_box
from mdagents.records.manifest import RunTotals
from mdagents.records.sample import SampleRecord

_ROWS = 5  # finished questions
_BOXES = 10  # summaries that scroll by at a time: more are not readable, and each takes 2 ms


class TerminalView(Display):
    """Notes what happens and draws only in `refresh`.

    Lines and summaries scroll by above the part that is redrawn each time; a summary does so
    when that part no longer shows it.

    Args:
        questions: Number of questions of the run.
        console: The terminal.
        with_summaries: Whether EXAID is on.
    """

    period = 0.25

    def __init__(self, questions: int, console: Console, *, with_summaries: bool = True) -> None:
        super().__init__()
        self._questions = questions
        self._with_summaries = with_summaries
        self._console = console
        # stdout is for results. What others write to stderr scrolls by as well.
        self._live = Live(
            self, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=True
        )
        self._pace: Pace | None = None
        self._frame: Frame | None = None
        self._focus = Focus()
        self._finished: deque[SampleRecord] = deque(maxlen=_ROWS)
        self._lines: list[str] = []
        self._summaries: deque[tuple[str, int, AgentSummary]] = deque(maxlen=_BOXES)
        self._left_out = 0

    def __exit__(self, *exception: object) -> None:
        try:
            if self._frame is None:
                self._scroll(None)
            else:
                last = self._frame.snapshot
                idle = replace(last, under_way=0, queued=0, cooling=0.0, summarising=0)
                frame = replace(
                    self._frame, snapshot=idle, waits="", finished=tuple(self._finished)
                )
                front = self._focus.look(last.now) if self._with_summaries else None
                try:
                    self._draw(replace(frame, case=front))
                except Exception:  # noqa: BLE001 - a failed item must not lose the rest
                    self._draw(replace(frame, case=None))
        finally:
            self._live.stop()

    def __rich__(self) -> RenderableType:
        return self._frame or ""

    def turn_started(self, case_id: str, agent_id: str) -> None:
        """See `Display`."""
        self._focus.turn_started(case_id, agent_id)

    def summary(self, case_id: str, summary: AgentSummary) -> None:
        """See `Display`."""
        number = self._focus.summary(case_id, summary)
        self._left_out += len(self._summaries) == _BOXES
        self._summaries.append((case_id, number, summary))

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """See `Display`."""
        self._focus.finished(record.case_id)
        self._finished.append(record)

    def say(self, line: str) -> None:
        """See `Display`."""
        self._lines.append(line)

    def refresh(self, snapshot: Snapshot) -> None:
        """See `Display`. While the terminal takes nothing (Ctrl-S), nothing is drawn."""
        self._pace = self._pace or Pace(snapshot.now, snapshot.totals.questions)
        frame = Frame(
            questions=self._questions,
            snapshot=snapshot,
            pace=self._pace,
            waits=self._waits(snapshot),
            case=self._focus.look(snapshot.now),
            finished=tuple(self._finished),
            with_summaries=self._with_summaries,
        )
        if _takes_text(self._console.file):
            self._draw(frame)

    def _draw(self, frame: Frame) -> None:
        self._frame = frame
        self._live.start()
        if not self._scroll(frame.case):
            self._live.refresh()

    def _scroll(self, front: OpenCase | None) -> bool:
        """Print what is to scroll by, and the frame below it; return False without anything."""
        if lines := "\n".join(self._lines):  # first: a box that fails must not lose them
            self._console.print(Text(clean(lines), overflow="fold"))
            self._lines.clear()
        shown = front.summary if front else None
        passing = [entry for entry in self._summaries if entry[2] is not shown]
        if passing:
            above = [summary_box(*entry) for entry in passing]
            if self._left_out:
                above.insert(0, Text(f"{self._left_out} more summaries", "dim"))
            self._left_out = 0
            self._summaries = deque((e for e in self._summaries if e[2] is shown), maxlen=_BOXES)
            self._console.print(Group(*above))
        return bool(lines or passing)


def _takes_text(file: IO[str]) -> bool:
    """Return whether writing does not block; True where that cannot be determined."""
    try:
        return bool(select.select([], [file], [], 0)[1])
    except (OSError, ValueError):
        return True
