"""One picture of a run for a terminal of any size: figures, the focused case, what is finished.

Text of models, endpoints and data sets is shown as it is: never read as markup, and without
control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from exaid_core.channel import one_line
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.templates import LABELS, flags
from mdagents.display.display import Snapshot, accuracy_so_far, left_to_summarise
from mdagents.display.focus import OpenCase
from mdagents.records.sample import SampleRecord
from mdagents.settings import Status

_WIDEST = 120  # columns; longer lines are hard to read
_NARROW = 60  # columns; with fewer, a label takes no column of its own
_LABEL_WIDTH = 2 + max(map(len, LABELS.values()))
_WIDE_LOG = 80  # columns; with fewer, only the most important stand in the log
_KEPT_FREE = 2  # lines of the terminal, for what scrolls by
_FEWEST_ROWS = 2  # of the log, when there is little room
_GAP = "  "
_NOTICE = "bold yellow"


@dataclass(frozen=True, slots=True)
class Pace:
    """When this process started, and what was done before."""

    started_at: float
    """Seconds, on the clock of the run."""
    done_before: int

    def elapsed(self, now: float) -> timedelta:
        """Return the time since the start, in full seconds."""
        return timedelta(seconds=round(now - self.started_at))

    def left(self, now: float, done: int, of: int) -> timedelta | None:
        """Return the time left at the mean pace so far, in full seconds; None without a pace."""
        if done <= self.done_before:
            return None
        each = (now - self.started_at) / (done - self.done_before)
        return timedelta(seconds=round(each * (of - done)))


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture of the run that fits itself into the terminal on which it is printed."""

    questions: int
    """Number of questions of the run."""
    snapshot: Snapshot
    pace: Pace
    waits: str
    """What is waited for; empty for nothing."""
    case: OpenCase | None
    """The focused case."""
    finished: Sequence[SampleRecord]
    """The last finished questions, the latest last."""
    with_summaries: bool = True
    """Whether EXAID is on."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, _WIDEST)
        options = options.update(width=width)
        room = options.size.height - _KEPT_FREE
        lines = console.render_lines(Group(self._bar(), *self._figures(width)), options, pad=False)
        if self.case is not None:
            fewest = 1 + min(_FEWEST_ROWS, len(self.finished)) if self.finished else 0
            lines += self._case(self.case, console, options, room - len(lines) - fewest)
        rows = min(len(self.finished), room - len(lines) - 1)
        if rows > 0:
            log = Group(*_log(self.finished[-rows:], width))
            lines += console.render_lines(log, options, pad=False)
        yield SegmentLines(lines[: max(1, room)], new_lines=True)

    def _case(
        self, case: OpenCase, console: Console, options: ConsoleOptions, room: int
    ) -> list[list[Segment]]:
        """Return the panel of a case in at most `room` lines, empty when they are too few."""
        if room < 3:
            return []
        content: RenderableType = Text("")
        if case.summary is not None:
            content = _SixFields(case.summary)
        elif self.with_summaries:
            content = Text("No summaries yet.")
        inside = options.update(width=max(1, options.max_width - 4))
        lines = console.render_lines(content, inside, pad=False)
        if len(lines) > room - 2:
            lines = [*lines[: room - 3], [Segment("…")]]
        heading = f"{case.id} · summary {case.summaries}" if case.summaries else case.id
        activity = None
        if case.finished:
            activity = _border_text("finished")
        elif case.agents:
            activity = _border_text(f"speaking: {', '.join(case.agents)}")
        panel = Panel(
            SegmentLines(lines, new_lines=True),
            title=_border_text(heading),
            title_align="left",
            subtitle=activity,
            subtitle_align="right",
            border_style="cyan",
        )
        return console.render_lines(panel, options, pad=False)

    def _bar(self) -> RenderableType:
        done = self.snapshot.totals.questions
        left = self.pace.left(self.snapshot.now, done, self.questions)
        bar = Table.grid(padding=(0, 1), pad_edge=False)
        bar.add_row(
            Text(f"{done}/{self.questions}", style="bold", no_wrap=True),
            ProgressBar(self.questions, done, complete_style="cyan", finished_style="green"),
            Text("" if left is None else f"{left} left", no_wrap=True),
        )
        return bar

    def _figures(self, width: int) -> Iterator[Text]:
        totals, spent = self.snapshot.totals, self.snapshot.spent
        calls = f"{self.snapshot.under_way}/{self.snapshot.allowed} calls"
        if self.snapshot.queued:
            calls += f", {self.snapshot.queued} queued"
        figures = [Text(accuracy_so_far(totals), "bold"), Text(calls)]
        figures.append(Text(f"{spent.total_tokens:,} tokens"))
        if totals.exaid_tokens:
            figures.append(Text(f"EXAID {totals.exaid_tokens:,} tokens"))
        if spent.cost_usd is None:
            figures.append(Text("cost unknown"))
        elif spent.cost_usd:
            figures.append(Text(f"${spent.cost_usd:.2f}"))
        if spent.cached_calls:
            figures.append(Text(f"{spent.cached_calls:,} kept replies"))
        if spent.failed_attempts:
            figures.append(Text(f"{spent.failed_attempts:,} failed attempts"))
        for status, count in totals.status_counts.items():
            if status != Status.ANSWERED:
                figures.append(Text(f"{count:,} {status}", "yellow"))
        figures.append(Text(f"{self.pace.elapsed(self.snapshot.now)} so far"))
        yield from _flow(figures, width)
        if self.waits:
            yield Text(one_line(self.waits), _NOTICE)
        if left := left_to_summarise(self.snapshot, self.questions):
            yield Text(left, _NOTICE)


def summary_box(case_id: str, number: int, summary: AgentSummary) -> RenderableType:
    """Return a summary as shown in the scroll-back, with its number within the case, from 1."""
    title = _border_text(f"{case_id} · summary {number}")
    box = Panel(_SixFields(summary), title=title, title_align="left", border_style="dim")
    return Constrain(box, _WIDEST)


@dataclass(frozen=True, slots=True)
class _SixFields:
    summary: AgentSummary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if wrong := flags(self.summary):
            yield Text(" · ".join(wrong), _NOTICE)
        for name, label in LABELS.items():
            content = Text(one_line(getattr(self.summary, name)))
            if options.max_width < _NARROW:
                yield Text.assemble((f"{label}: ", "bold"), content)
                continue
            # A table would take twice the time.
            for line in content.wrap(console, options.max_width - _LABEL_WIDTH):
                yield Text.assemble((label.ljust(_LABEL_WIDTH), "bold"), line)
                label = ""


def _log(records: Sequence[SampleRecord], width: int) -> Iterator[Text]:
    """Yield a heading and a line for each record, none wider than `width`."""
    rows = [
        {
            "question": Text(one_line(record.question_id)),
            "level": Text(record.difficulty or "-"),
            "result": _result(record),
            "time": Text(f"{record.wall_seconds:.1f} s"),
            "tokens": Text(f"{record.token_usage.total_tokens:,}"),
            "": Text(one_line(record.error or ""), "yellow"),
        }
        for record in records
    ]
    widths = {"question": 0, "level": 12, "result": 15, "time": 9, "tokens": 9, "": 0}
    if width < _WIDE_LOG:
        widths = {name: widths[name] for name in ("question", "result", "time")}
    free = width - sum(widths.values()) - len(_GAP) * (len(widths) - 1)
    longest = max(row["question"].cell_len for row in rows)
    widths["question"] = max(8, min(longest, free))
    if "" in widths:
        widths[""] = free - widths["question"]
    for row in [{name: Text(name, "dim") for name in widths}, *rows]:
        line = Text()
        for name, cells in widths.items():
            cell = row[name]
            cell.overflow = "ellipsis"
            cell.align("right" if name in ("time", "tokens") else "left", cells)
            line.append_text(cell).append(_GAP)
        line.truncate(width)
        yield line


def _result(record: SampleRecord) -> Text:
    if record.status is not Status.ANSWERED:
        return Text(record.status, "yellow")
    if record.correct:
        return Text(f"{record.predicted} right", "green")
    return Text(f"{record.predicted} wrong, gold {record.label}", "red")


def _flow(parts: Sequence[Text], width: int) -> Iterator[Text]:
    """Yield the parts with dots between them, as many on a line as fit."""
    line = Text()
    for part in parts:
        if line and line.cell_len + 3 + part.cell_len > width:
            yield line
            line = Text()
        if line:
            line.append(" · ", "dim")
        line.append_text(part)
    yield line


def _border_text(text: str) -> Text:
    return Text(one_line(text), overflow="ellipsis")
