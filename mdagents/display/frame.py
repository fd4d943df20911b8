"""One frame of a run for a terminal of any size: figures, the focused question and the others.

Text of models, endpoints and data sets is shown literally: it is not parsed as markup, and control
characters are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.templates import LABELS, flags
from mdagents.display.display import (
    Pace,
    Snapshot,
    accuracy_so_far,
    left_to_summarise,
    tokens_in_words,
)
from mdagents.display.in_progress import OpenQuestion
from mdagents.display.labels import STATUSES, by_role, by_worth, label_of, result_in_words
from mdagents.records.sample import SampleRecord
from mdagents.settings import Status
from mdagents_llm.text import counted, one_line

LOW = 30
"""Terminal height in lines below which a question and the last words get one line each."""

_WIDEST = 120  # columns of a line; longer ones are hard to read
_TWO_COLUMNS = 160  # columns from which the questions stand beside the focused one
_LOG_ROWS = 5  # finished questions below the focused one
_LABEL_WIDTH = 2 + max(map(len, LABELS.values()))
_NARROW = 60  # columns; with fewer, labels have no separate column
_WIDE_LOG = 80  # columns; with fewer, the log shows only the most important fields
_KEPT_FREE = 2  # terminal lines for scrolling text
_FEWEST_ROWS = 2  # of the log and of the other questions, if there is little room
_GAP = "  "
_VOTES = len("99 votes")
_NOTICE = "bold yellow"


@dataclass(frozen=True, slots=True)
class Frame:
    """Renderable state of a run that fits itself to the terminal."""

    questions: int
    """Number of questions of the run."""
    snapshot: Snapshot
    pace: Pace
    waits: str
    """Waiting calls and their cause, in words; empty without any."""
    focused: OpenQuestion | None
    others: Sequence[OpenQuestion]
    """Other questions in progress."""
    finished: Sequence[SampleRecord]
    """Recently finished questions, the latest last."""
    with_summaries: bool = True
    """Whether EXAID is on."""
    latest: OpenQuestion | None = None
    """Question whose summary is shown while the focused one has none; None shows no other."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_wide = options.max_width >= _TWO_COLUMNS
        width = options.max_width if is_wide else min(options.max_width, _WIDEST)
        options = options.update(width=width)
        room = max(1, options.size.height - _KEPT_FREE)
        lines = console.render_lines(self._bar(), options, pad=False)
        below = list(self._figures(width))
        free = room - len(lines) - len(below)
        if is_wide:
            below += self._columns(console, width, free)
        else:
            below += self._stacked(console, width, free)
        lines += [_rendered(_cut(line, width), console) for line in below]
        yield SegmentLines(lines[:room], new_lines=True)

    def _columns(self, console: Console, width: int, free: int) -> Iterator[Text]:
        """Yield the focused question and, at its right, the finished and the other questions."""
        left_width = max(width - len(_GAP) - _WIDE_LOG, width // 2)
        right_width = width - left_width - len(_GAP)
        left: list[Text] = []
        if self.focused is not None:
            left = list(self._box(self.focused, console, left_width, free - 2))
        rows = min(len(self.finished), max(0, free - 2 - min(len(self.others), free // 2)))
        right = list(_log(self.finished[-rows:], right_width)) if rows > 0 else []
        right += self._others(right_width, free - len(right))
        if not left:
            left_width, right = 0, [_cut(line, right_width) for line in right]
        for line, beside in zip_longest(left, right):
            whole = Text.assemble(line) if line is not None else Text()
            if beside is not None:
                whole.pad_right(max(0, left_width - whole.cell_len))
                whole.append(_GAP).append_text(_cut(beside, right_width))
            yield whole

    def _stacked(self, console: Console, width: int, free: int) -> list[Text]:
        """Return the focused question, the other ones and the finished ones, from top to bottom."""
        finished = self.finished[-_LOG_ROWS:]
        for_log = 1 + min(_FEWEST_ROWS, len(finished)) if finished else 0
        for_others = min(_FEWEST_ROWS, len(self.others))
        box: list[Text] = []
        if self.focused is not None:
            inside = free - for_log - for_others - 2  # upper and lower edge of the box
            box = list(self._box(self.focused, console, width, inside))
        free -= len(box)
        others = list(self._others(width, free - for_log))
        rows = min(len(finished), free - len(others) - 1)
        log = _log(finished[-rows:], width) if rows > 0 else ()
        return [*box, *others, *log]

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
        calls = self.snapshot.calls
        if self.snapshot.queued:
            calls += f", {self.snapshot.queued} queued"
        figures = [Text(accuracy_so_far(totals), "bold"), Text(calls)]
        figures.append(Text(tokens_in_words(spent)))
        if spent.cost_usd is None:
            figures.append(Text("cost unknown"))
        elif spent.cost_usd:
            figures.append(Text(f"${spent.cost_usd:.2f}"))
        if spent.cached_calls:
            figures.append(Text(counted(spent.cached_calls, "cached reply", "cached replies")))
        if spent.failed_attempts:
            figures.append(Text(counted(spent.failed_attempts, "failed attempt")))
        for status, count in totals.status_counts.items():
            if status != Status.ANSWERED:
                figures.append(Text(f"{STATUSES[Status(status)]}: {count:,}", "yellow"))
        if totals.exaid.alerts:
            figures.append(Text(counted(totals.exaid.alerts, "critical alert"), "yellow"))
        figures.append(Text(f"{self.pace.elapsed(self.snapshot.now)} so far"))
        yield from _flow(figures, width)
        if self.waits:
            yield Text(one_line(self.waits), _NOTICE)
        if left := left_to_summarise(self.snapshot, self.questions):
            yield Text(left, _NOTICE)

    def _box(
        self, question: OpenQuestion, console: Console, width: int, room: int
    ) -> Iterator[Text]:
        """Yield the focused question in a box of at most `room` lines; nothing without room."""
        if room < 1:
            return
        inside = max(1, width - 4)
        lines = list(_course(question, console, inside, is_low=console.height < LOW))[:room]
        if self.with_summaries:
            lines += _summary(question, self.latest, console, inside, room - len(lines))
        heading = [question.label, question.level, question.phase]
        if question.since is not None and not question.ended:
            heading.append(f"{self.snapshot.now - question.since:.0f} s")
        yield _edge("╭", " · ".join(map(one_line, filter(None, heading))), "╮", width)
        for line in lines:
            line = _cut(line, inside)
            line.pad_right(inside - line.cell_len)
            yield Text.assemble(("│ ", "cyan"), line, (" │", "cyan"))
        yield _edge("╰", "", "╯", width)

    def _others(self, width: int, room: int) -> Iterator[Text]:
        """Yield a line for each other open question, in at most `room` lines."""
        shown = self.others if len(self.others) <= room else self.others[: max(0, room - 1)]
        widest = max((cell_len(other.label) for other in shown), default=0)
        for other in shown:
            seconds = "" if other.since is None else f"{self.snapshot.now - other.since:.0f} s"
            label = set_cell_size(other.label, min(widest, width // 2))
            course = " · ".join(filter(None, (other.level, other.phase, seconds)))
            yield Text.assemble((label, "cyan"), f"{_GAP}{one_line(course)}")
        if len(shown) < len(self.others) and room > 0:
            yield Text(f"{len(self.others) - len(shown)} more in progress", "dim")


def _course(
    question: OpenQuestion, console: Console, width: int, *, is_low: bool
) -> Iterator[Text]:
    """Yield the question, its options with the current votes, the speakers and the last words."""
    asked = question.question
    if asked is not None:
        most = 1 if is_low else 3
        text = Text(one_line(asked.text[: (most + 2) * width]), "bold")  # the rest is not visible
        yield from _beginning(list(text.wrap(console, width)), most, width)
        for letter, option in asked.options.items():
            yield _option(letter, option, question, width)
    if question.speaking:
        yield Text.assemble(("working: ", "dim"), one_line(", ".join(question.speaking.values())))
    speaker, words = question.last_words()
    if words:
        said = Text.assemble((f"{one_line(speaker)}: ", "dim"))
        longest = (1 if is_low else 2) * width - said.cell_len - 2
        if len(words) > longest:
            words = "…" + words[-max(1, longest) :].partition(" ")[2]
        yield from said.append(words).wrap(console, width)[: 1 if is_low else 2]


def _option(letter: str, option: str, question: OpenQuestion, width: int) -> Text:
    """Return an option, with its holders and its number of votes at the right."""
    holders = question.holders(letter)
    votes = Text(counted(len(holders), "vote").rjust(_VOTES) if holders else "", "cyan")
    line = Text(f"{letter}) {one_line(option)}")
    if letter == question.decided:
        line.stylize("bold")
        votes = Text.assemble(("decided", "bold"), _GAP if holders else "", votes)
    free = width - votes.cell_len - (len(_GAP) if votes else 0)
    names = Text(one_line(", ".join(holders)), "cyan")
    if names and free - line.cell_len - len(_GAP) >= names.cell_len:
        votes = names.append(_GAP).append_text(votes)
        free = width - votes.cell_len - len(_GAP)
    if not votes:
        return line
    _cut(line, max(1, free)).pad_right(max(0, free - line.cell_len))
    return line.append(_GAP).append_text(votes)


def _summary(
    question: OpenQuestion, latest: OpenQuestion | None, console: Console, width: int, room: int
) -> list[Text]:
    """Return the latest summary in at most `room` lines; long fields are cut."""
    of_question = ""
    if question.summary is None and latest is not None:
        question, of_question = latest, f" of {one_line(latest.label)}"
    summary = question.summary
    if room < 1:
        return []
    if summary is None:
        return [Text("No summaries yet.", "dim")]
    heading = Text(f"EXAID summary {question.summaries}{of_question}", "cyan")
    if wrong := flags(summary):
        heading.append(" · ").append(" · ".join(wrong), _NOTICE)
    fields = {name: _field(name, question, summary, console, width) for name in LABELS}
    shown = dict.fromkeys(fields, 0)
    left = room - 1
    for number in range(max(map(len, fields.values()))):  # one line of each field, then a second …
        for name in by_worth(summary):
            if left > 0 and number < len(fields[name]):
                shown[name] += 1
                left -= 1
    lines = (line for name, n in shown.items() for line in _beginning(fields[name], n, width))
    return [heading, *lines]


def _field(
    name: str, question: OpenQuestion, summary: AgentSummary, console: Console, width: int
) -> list[Text]:
    content = Text(by_role(one_line(getattr(summary, name)), question.roles))
    label = LABELS[name]
    if width < _NARROW:
        return list(Text.assemble((f"{label}: ", "bold"), content).wrap(console, width))
    lines = []
    for line in content.wrap(console, width - _LABEL_WIDTH):  # a table would take twice as long
        lines.append(Text.assemble((label.ljust(_LABEL_WIDTH), "bold"), line))
        label = ""
    return lines


def _beginning(lines: Sequence[Text], most: int, width: int) -> list[Text]:
    """Return at most `most` lines, with an ellipsis if some are left out."""
    shown = list(lines[:most])
    if shown and len(lines) > most:
        shown[-1].rstrip()
        shown[-1].truncate(width - 1)
        shown[-1].append("…")
    return shown


def _edge(left: str, title: str, right: str, width: int) -> Text:
    """Return the upper or lower edge of a box."""
    line = Text(f"{left}─", "cyan")
    if title:
        shown = Text(f" {title} ")
        line.append_text(_cut(shown, max(0, width - 4)))
    line.append("─" * (width - 1 - line.cell_len) + right)
    return line


def _rendered(line: Text, console: Console) -> list[Segment]:
    style = console.get_style(line.style)  # `render` omits it for a text without spans
    return list(Segment.apply_style(line.render(console), style))


def _cut(line: Text, width: int) -> Text:
    """Return the line, with an ellipsis if it is wider than `width`."""
    line.truncate(width, overflow="ellipsis")
    return line


def _log(records: Sequence[SampleRecord], width: int) -> Iterator[Text]:
    """Yield a heading and a line for each record, none wider than `width`."""
    rows = [
        {
            "question": Text(
                label_of((record.question_id, record.epoch)).removeprefix("question ")
            ),
            "level": Text(record.difficulty or "-"),
            "result": _result(record),
            "time": Text(f"{record.wall_seconds:.1f} s"),
            "tokens": Text(f"{record.token_usage.total_tokens:,}"),
            "": Text(one_line(record.error or ""), "yellow"),
        }
        for record in records
    ]
    widths = {"question": 0, "level": 12, "result": 18, "time": 9, "tokens": 9, "": 0}
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
    style = "yellow" if record.correct is None else "green" if record.correct else "red"
    return Text(result_in_words(record), style)


def _flow(parts: Sequence[Text], width: int) -> Iterator[Text]:
    """Yield lines of parts separated by dots, as many on a line as fit."""
    line = Text()
    for part in parts:
        if line and line.cell_len + 3 + part.cell_len > width:
            yield line
            line = Text()
        if line:
            line.append(" · ", "dim")
        line.append_text(part)
    yield line
