"""Display for `--display full` on a terminal: live figures and questions."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from mdagents.agents.events import Event, Summarised
from mdagents.display.display import IN_DETAIL_UP_TO, Display, Pace, Snapshot
from mdagents.display.focus import Focus
from mdagents.display.frame import LOW, Frame
from mdagents.display.in_progress import OpenQuestion, UnderWay
from mdagents.display.labels import (
    by_role,
    by_worth,
    label_of,
    result_in_words,
    summary_block,
)
from mdagents.records.manifest import RunTotals
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents_llm.terminal.printing import takes_text
from mdagents_llm.text import clean, one_line

_ROWS = 50  # finished questions; more fit no screen
_MOST = 10  # summaries that scroll by at a time; more would be unreadable


class TerminalView(Display):
    """Display that records events and draws only in `refresh`.

    Lines and summaries scroll by above the part that is redrawn each time. A summary scrolls by
    once that part no longer shows it, in one line on a low terminal. In a run of more than
    `IN_DETAIL_UP_TO` questions, no summary and only the lines of errors scroll by.

    Args:
        questions: Number of questions of the run.
        console: Terminal to draw on.
        with_summaries: Whether EXAID is on.
    """

    period = 0.5

    def __init__(self, questions: int, console: Console, *, with_summaries: bool = True) -> None:
        super().__init__()
        self._questions = questions
        self._with_summaries = with_summaries
        self._console = console
        # stdout is for results. Other output to stderr scrolls by as well.
        self._live = Live(
            self, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=True
        )
        self._pace: Pace | None = None
        self._frame: Frame | None = None
        self._under_way = UnderWay()
        self._focus = Focus(self._under_way)
        self._finished: deque[SampleRecord] = deque(maxlen=_ROWS)
        self._lines: list[str] = []
        self._summaries: deque[tuple[OpenQuestion, Summarised]] = deque(maxlen=_MOST)
        self._left_out = 0
        self._is_long = questions > IN_DETAIL_UP_TO
        self._latest: OpenQuestion | None = None

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
                frame = replace(frame, others=(), focused=None)
                try:
                    if self._with_summaries:
                        self._draw(replace(frame, focused=self._focus.look(last.now)))
                    else:
                        self._draw(frame)
                except Exception:  # noqa: BLE001 - a failed item must not lose the rest
                    self._draw(frame)
        finally:
            self._live.stop()

    def __rich__(self) -> RenderableType:
        return self._frame or ""

    def happened(self, item: ItemKey, event: Event) -> None:
        """Record an event of a question."""
        question = self._under_way.take(item, event)
        if isinstance(event, Summarised):
            self._latest = question
        if isinstance(event, Summarised) and not self._is_long:
            self._left_out += len(self._summaries) == _MOST
            self._summaries.append((question, event))

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """Record a decided question."""
        self._finished.append(record)
        if self._is_long and record.error:
            label = label_of((record.question_id, record.epoch))
            self.say(f"{label} {result_in_words(record)}: {one_line(record.error)}")

    def summarised(self, made: CaseSummaries) -> None:
        """Record an error of EXAID for a decided question of a long run."""
        if self._is_long and made.watched.error:
            label = label_of((made.question_id, made.epoch))
            self.say(f"{label} EXAID: {one_line(made.watched.error)}")

    def say(self, line: str) -> None:
        """Record a line, which scrolls by at the next `refresh`."""
        self._lines.append(line)

    def refresh(self, snapshot: Snapshot) -> None:
        """Draw the state of the run, unless the terminal is blocked (Ctrl-S)."""
        self._pace = self._pace or Pace(snapshot.now, snapshot.totals.questions)
        focused = self._focus.look(snapshot.now)
        frame = Frame(
            questions=self._questions,
            snapshot=snapshot,
            pace=self._pace,
            waits=self._waits(snapshot),
            focused=focused,
            others=[question for question in self._under_way if question is not focused],
            finished=tuple(self._finished),
            with_summaries=self._with_summaries,
            latest=self._latest if self._is_long else None,
        )
        if takes_text(self._console.file):
            self._draw(frame)

    def _draw(self, frame: Frame) -> None:
        self._frame = frame
        self._live.start()
        if not self._scroll(frame.focused):
            self._live.refresh()

    def _scroll(self, focused: OpenQuestion | None) -> bool:
        """Print pending lines and summaries above the frame; return False if there were none."""
        if lines := "\n".join(self._lines):  # first, so that a failing summary does not lose them
            self._console.print(Text(clean(lines), overflow="fold"))
            self._lines.clear()
        shown = focused.summary if focused else None
        passing = [entry for entry in self._summaries if entry[1].summary is not shown]
        if passing:
            above = [self._passing(*entry) for entry in passing]
            if self._left_out:
                above.insert(0, Text(f"{self._left_out} more summaries", "dim"))
            self._left_out = 0
            self._summaries = deque(
                (entry for entry in self._summaries if entry[1].summary is shown), maxlen=_MOST
            )
            self._console.print(Group(*above))
        return bool(lines or passing)

    def _passing(self, question: OpenQuestion, made: Summarised) -> Text:
        """Return the text of a summary that scrolls by; one line on a low terminal."""
        lines = summary_block(question.label, made.number, made.summary, question.roles)
        if self._console.height >= LOW:
            return Text("\n".join(lines), overflow="fold")
        most = getattr(made.summary, by_worth(made.summary)[0])
        line = Text(f"{lines[0]}: {by_role(one_line(most), question.roles)}")
        line.truncate(self._console.width, overflow="ellipsis")
        return line
