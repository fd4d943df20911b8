"""Base class of displays, and the state of a run that they show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from mdagents.agents.events import Event
from mdagents.records.manifest import RunTotals, Spent
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.scoring.formatting import interval
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents.settings import Status
from mdagents_llm.errors import ErrorKind
from mdagents_llm.layers.retry import Wait
from mdagents_llm.proportions import Interval, accuracy_interval, wilson
from mdagents_llm.text import counted

IN_DETAIL_UP_TO = 20
"""Maximum number of questions of a run of which displays show each step and each summary. Of a
longer run, a terminal shows only its panel, and lines of text show only results."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a run at one moment."""

    totals: RunTotals
    spent: Spent
    under_way: int
    """Number of calls in progress at all endpoints."""
    allowed: int
    """Current limit of concurrent calls."""
    queued: int
    """Number of calls that wait for a connection."""
    cooling: float
    """Seconds until an overloaded endpoint is used again; 0 if none is cooling down."""
    now: float
    """Time of the snapshot, in seconds on the run's clock."""
    summarising: int = 0
    """Number of decided questions that EXAID has not finished."""
    in_batches: int = 0
    """Number of calls that wait for a provider's batch."""

    def cost_forecast(self, questions: int) -> float | None:
        """Return the forecast cost of the whole run at the mean so far, in USD; None if unknown.

        The teams' mean is over decided questions and EXAID's over those that it has finished, so
        that neither is too low while EXAID is behind.

        Args:
            questions: Number of questions of the run, times epochs.
        """
        totals, spent = self.totals, self.spent
        finished = totals.exaid.questions
        if spent.cost_usd is None or totals.cost_usd is None or totals.exaid_cost_usd is None:
            return None
        if spent.cached_calls:  # usage of cached replies costs nothing
            return None
        if not totals.questions or (spent.exaid_calls and not finished):
            return None
        left = totals.cost_usd / totals.questions * (questions - totals.questions)
        if finished:
            left += totals.exaid_cost_usd / finished * (questions - finished)
        # A part of the remaining cost is already paid, for the questions in progress.
        in_progress = max(0.0, spent.cost_usd - totals.cost_usd - totals.exaid_cost_usd)
        return spent.cost_usd + max(0.0, left - in_progress)

    @property
    def calls(self) -> str:
        """Calls in progress, in words: `12/16 calls`, or `300 calls in batches`."""
        if self.in_batches:
            return f"{counted(self.in_batches, 'call')} in batches"
        return f"{self.under_way}/{self.allowed} calls" if self.allowed else "no calls"


@dataclass(frozen=True, slots=True)
class Pace:
    """Progress baseline of this process, for elapsed and remaining time."""

    started_at: float
    """Start of the process, in seconds on the run's clock."""
    done_before: int
    """Number of questions that were decided before the start."""

    def elapsed(self, now: float) -> timedelta:
        """Return the time since the start, rounded to seconds."""
        return timedelta(seconds=round(now - self.started_at))

    def left(self, now: float, done: int, of: int) -> timedelta | None:
        """Return the time left at the mean pace so far, rounded to seconds; None without a pace."""
        if done <= self.done_before:
            return None
        each = (now - self.started_at) / (done - self.done_before)
        return timedelta(seconds=round(each * (of - done)))


class Display:
    """Display that shows nothing (`--display none`), and base class of the others.

    A display never changes or delays a question.
    """

    period: float = 1.0
    """Seconds between two calls of `refresh`."""

    def __init__(self) -> None:
        self._pauses: list[tuple[float, Wait]] = []  # (seconds after its announcement, wait)
        self._ends: list[tuple[float, Wait]] = []  # (end on the run's clock, wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the display."""

    def happened(self, item: ItemKey, event: Event) -> None:
        """Show an event of a question; an observer of its feed."""

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """Show a decided question; only its summaries can still follow."""

    def summarised(self, made: CaseSummaries) -> None:
        """Show that EXAID has finished a decided question."""

    def waiting(self, wait: Wait) -> None:
        """Show that a call pauses before its next attempt."""
        self._pauses.append((wait.seconds, wait))

    def refresh(self, snapshot: Snapshot) -> None:
        """Show the state of the run; called every `period`."""
        self._pauses.clear()

    def say(self, line: str) -> None:
        """Show a line of text."""

    def _waits(self, snapshot: Snapshot) -> str:
        """Return the waits: `3 waiting: 429 from api.x.y, 12 s left`; empty if nothing waits."""
        self._ends += [(snapshot.now + seconds, wait) for seconds, wait in self._pauses]
        self._pauses.clear()
        self._ends = [(end, wait) for end, wait in self._ends if end > snapshot.now]
        if snapshot.cooling:
            return f"endpoint overloaded: all wait, {snapshot.cooling:.0f} s left"
        if not self._ends:
            return ""
        end, wait = max(self._ends, key=lambda entry: entry[0])
        left = end - snapshot.now
        waiting = f"{len(self._ends)} waiting: {cause_of(wait)}"
        return waiting + (f", {left:.0f} s left" if left >= 1 else "")


def tokens_in_words(spent: Spent) -> str:
    """Return the tokens of a run in words: `425,127 tokens, 148,364 of them EXAID's`."""
    words = f"{spent.total_tokens:,} tokens"
    return words + (f", {spent.exaid_tokens:,} of them EXAID's" if spent.exaid_calls else "")


def cause_of(wait: Wait) -> str:
    """Return the cause of a wait in a few words: `429 from api.x.y`."""
    cause = str(wait.error)
    if wait.error.kind is not ErrorKind.UNREACHABLE:  # its message is already short
        cause = cause.partition(": ")[0]
    return cause


def left_to_summarise(snapshot: Snapshot, questions: int) -> str:
    """Return `EXAID: 12 questions left to summarize` once all questions are decided; else empty.

    Args:
        snapshot: The state of the run.
        questions: Number of questions of the run.
    """
    if not snapshot.summarising or snapshot.totals.questions < questions:
        return ""
    return f"EXAID: {counted(snapshot.summarising, 'question')} left to summarize"


def accuracy_so_far(totals: RunTotals) -> str:
    """Return `accuracy 61.5% (52.1–70.0)`, with its 95% confidence interval as in the report.

    Fewer than `SMALLEST_FOR_RATES` questions are too few for a percentage, as in the report, and
    give `3 of 5 right`. If questions are asked several times, the interval is unknown before the
    end of the run.
    """
    scored = totals.scored
    if not scored:
        return "accuracy -"
    if not totals.correct and not totals.status_counts.get(Status.ANSWERED):
        return f"none of {scored} answered"
    if totals.asked < SMALLEST_FOR_RATES:
        return f"{totals.correct} of {scored} right"
    words = f"accuracy {totals.correct / scored:.1%}"
    ends = interval_so_far(totals)
    return f"{words} ({interval(*ends)})" if ends else words


def interval_so_far(totals: RunTotals) -> Interval | None:
    """Return the 95% confidence interval of accuracy, 0 to 1, as in the report.

    None without a scored question, and while questions are still being asked several times.
    """
    if totals.epochs == 1:
        return wilson(totals.correct, totals.scored)
    if (pairs := totals.by_question()) is None:
        return None
    low, high = accuracy_interval([right for right, _ in pairs], [n for _, n in pairs])
    return None if low is None or high is None else (low, high)
