"""Displays that print only lines of text: `--display log` and `plain`."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from dataclasses import dataclass, field
from textwrap import shorten
from typing import TYPE_CHECKING, NoReturn

from mdagents.agents.events import Event, Recruited, Routed, Started, Summarised
from mdagents.display.display import (
    IN_DETAIL_UP_TO,
    Display,
    Pace,
    Snapshot,
    accuracy_so_far,
    cause_of,
    left_to_summarise,
    tokens_in_words,
)
from mdagents.display.in_progress import OpenQuestion, UnderWay
from mdagents.display.labels import (
    label_of,
    people_in_words,
    result_in_words,
    routed_in_words,
    summary_block,
)
from mdagents.records.manifest import RunTotals
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents_llm.terminal.printing import print_line, takes_text
from mdagents_llm.text import clean, counted, one_line

if TYPE_CHECKING:
    from tqdm import tqdm


_SILENCE = 30.0  # seconds of silence before a status line
_SILENCE_IN_BATCHES = 600.0  # seconds of silence before a status line if replies come in batches
_OVER = 5.0  # seconds without a wait before a cause is over
_LEAST_COST = 0.0001  # USD; a lower cost is not shown
_COOLING = "an endpoint is overloaded"
_LONGEST = 100  # characters of a line about a step


class LogLines(Display):
    """Display for `--display log`, and for `full` and `plain` without a terminal.

    Each line about a question begins with its id, or is indented below one that does. A run of
    more than `IN_DETAIL_UP_TO` questions shows only lines with results.
    Lines are buffered while stderr is blocked (a pager, Ctrl-S).
    """

    def __init__(self, questions: int) -> None:
        super().__init__()
        self._questions = questions
        self._under_way = UnderWay()
        self._pace: Pace | None = None
        self._now = 0.0  # seconds, on the clock of the run
        self._has_spoken = True
        self._spoke_at = 0.0
        self._has_said_left = False
        self._unwritten: deque[str] = deque()
        self._causes: dict[str, _Cause] = {}

    def __exit__(self, *exception: object) -> None:
        while self._unwritten:
            print_line(self._unwritten.popleft())

    def happened(self, item: ItemKey, event: Event) -> None:
        """Show a step or a summary of a question."""
        question = self._under_way.take(item, event)
        if self._questions > IN_DETAIL_UP_TO:
            return
        if isinstance(event, Summarised):
            self._say_summary(question)
            return
        step = ""
        match event:
            case Started():
                step = f"started: {event.question.text}"
            case Routed():
                step = routed_in_words(event)
            case Recruited():
                step = f"recruited: {people_in_words(event.members)}"
        if step:
            longest = None if isinstance(event, Recruited) else _LONGEST
            self.say(f"{question.label} {_shortened(step, longest)}")

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """Show the result of a decided question and the totals so far."""
        cost = record.token_usage.cost_usd
        used = [
            record.difficulty,
            counted(record.calls, "call"),
            f"{record.token_usage.total_tokens:,} tokens",
            f"${cost:.4f}" if cost and cost >= _LEAST_COST else "",
            f"{record.wall_seconds:.1f} s",
        ]
        so_far = []
        if self._questions > 1:
            so_far = [f"{totals.questions}/{self._questions} done", accuracy_so_far(totals)]
        left = self._pace and self._pace.left(self._now, totals.questions, self._questions)
        if left:
            so_far.append(f"{left} left")
        votes = "".join(f", {letter} {count}" for letter, count in record.votes.items())
        result = result_in_words(record) + (f" (votes{votes[1:]})" if votes else "")
        parts = [result, ", ".join(filter(None, used)), ", ".join(so_far)]
        label = label_of((record.question_id, record.epoch))
        self.say(f"{label} {'; '.join(filter(None, parts))}")
        if record.error:
            self.say(f"   {one_line(record.error)}")

    def summarised(self, made: CaseSummaries) -> None:
        """Show how many summaries and alerts EXAID made for a decided question."""
        parts = [counted(len(made.counting), "summary", "summaries")]
        if made.alerts:
            parts.append(counted(made.alerts, "alert"))
        parts.append(f"{made.exaid.token_usage.total_tokens:,} tokens")
        if made.watched.error:
            parts.append(one_line(made.watched.error))
        self.say(f"{label_of((made.question_id, made.epoch))} EXAID made {', '.join(parts)}")

    def _say_summary(self, question: OpenQuestion) -> None:
        if question.summary is not None:
            lines = summary_block(
                question.label, question.summaries, question.summary, question.roles
            )
            self.say("\n".join(lines))

    def refresh(self, snapshot: Snapshot) -> None:
        """Show changes of the run's state: a condition is shown when it begins and ends."""
        self._now = now = snapshot.now
        self._pace = self._pace or Pace(now, snapshot.totals.questions)
        self._under_way.look(now)
        self._say_waits(snapshot)
        left = left_to_summarise(snapshot, self._questions)
        silence = _SILENCE_IN_BATCHES if snapshot.in_batches else _SILENCE
        is_silent = not self._has_spoken and now - self._spoke_at >= silence
        if is_silent or (left and not self._has_said_left):
            self.say(left or self._sign_of_life(snapshot))
            self._has_said_left = bool(left)
        if self._has_spoken:
            self._spoke_at, self._has_spoken = now, False
        self._write()

    def say(self, line: str) -> None:
        """Show a line; a closed pipe is not an error of the run."""
        self._has_spoken = True
        self._unwritten.extend(clean(line).split("\n"))
        self._write()

    def _write(self) -> None:
        while self._unwritten and takes_text(sys.stderr):
            print_line(self._unwritten.popleft())

    def _say_waits(self, snapshot: Snapshot) -> None:
        """Show each cause of waiting calls when it begins, every `_SILENCE` and when it ends.

        The end of a brief cause is not shown, nor its return soon afterwards.
        """
        now = snapshot.now
        for name, cause in list(self._causes.items()):
            lasted = cause.last - cause.since
            if now < cause.last + _OVER or (lasted < _OVER and now < cause.said_at + _SILENCE):
                continue
            if lasted >= _OVER:
                self.say(f"over: {name}, after {lasted:.0f} s")
            del self._causes[name]
        for seconds, wait in self._pauses:
            cause = self._causes.setdefault(cause_of(wait), _Cause(now))
            if now >= cause.last + _OVER:
                cause.since = now
            cause.ends.append(now + seconds)
        self._pauses.clear()
        if snapshot.cooling:
            self._causes.setdefault(_COOLING, _Cause(now)).ends[:] = [now + snapshot.cooling]
        for name, cause in self._causes.items():
            cause.last = max([cause.last, *cause.ends])
            cause.ends[:] = [end for end in cause.ends if end > now]
            if cause.ends and now - cause.said_at >= _SILENCE:
                who = "all" if name == _COOLING else len(cause.ends)
                left = cause.last - now
                self.say(f"{who} waiting: {name}" + (f", {left:.0f} s left" if left >= 1 else ""))
                cause.said_at = now

    def _sign_of_life(self, snapshot: Snapshot) -> str:
        """Return a status line: work in progress and the longest-running question."""
        now, questions = snapshot.now, counted(len(self._under_way), "question")
        if snapshot.in_batches:
            return f"{questions} in progress, {snapshot.calls}"
        parts = [f"{questions} and {counted(snapshot.under_way, 'call')} in progress"]
        longest = next(iter(self._under_way), None)
        if longest is not None and longest.since is not None:
            course = ", ".join(filter(None, (longest.level, longest.phase)))
            parts.append(f"longest {longest.label}, for {now - longest.since:.0f} s: {course}")
            if longest.speaking:
                parts.append(f"{', '.join(longest.speaking.values())} at work")
            parts.append(f"last heard of {now - longest.heard_at:.0f} s ago")
        return "; ".join(parts)


@dataclass(slots=True)
class _Cause:
    """A current or recent cause of waiting calls; times are in seconds on the run's clock."""

    since: float
    ends: list[float] = field(default_factory=list)
    """End times of the waits in progress."""
    last: float = 0.0
    """Latest end time of any wait, including those that are over."""
    said_at: float = float("-inf")


def _shortened(text: str, longest: int | None) -> str:
    line = one_line(text)
    return line if longest is None else shorten(line, longest, placeholder="…")


class Bar(Display):
    """Display for `--display plain` on a terminal: a progress bar with the figures so far."""

    def __init__(self, questions: int) -> None:
        super().__init__()
        self._questions = questions
        self._bar: tqdm[NoReturn] | None = None

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def refresh(self, snapshot: Snapshot) -> None:
        """Update the progress bar and its figures."""
        totals, spent = snapshot.totals, snapshot.spent
        if self._bar is None:  # created here, so that the banner is above it
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._questions,
                initial=totals.questions,  # questions of an earlier start do not affect the pace
                unit="question",
                dynamic_ncols=True,
            )
        figures = [
            accuracy_so_far(totals),
            snapshot.calls,
            tokens_in_words(spent),
        ]
        if spent.cost_usd:
            figures.append(f"${spent.cost_usd:.2f}")
        if spent.failed_attempts:
            figures.append(counted(spent.failed_attempts, "failed attempt"))
        if waits := self._waits(snapshot):
            figures.append(waits)
        if left := left_to_summarise(snapshot, self._questions):
            figures.append(left)
        self._bar.set_postfix_str(", ".join(figures), refresh=False)
        self._bar.n = totals.questions
        with contextlib.suppress(OSError):
            self._bar.refresh()

    def say(self, line: str) -> None:
        """Show a line above the progress bar."""
        if self._bar is None:
            print_line(line)
            return
        with contextlib.suppress(OSError):
            self._bar.write(line, file=sys.stderr)
