"""What every display has in common, and the state of a run that displays show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from mdagents.agents.feed import Event
from mdagents.records.manifest import RunTotals, Spent
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.scoring.formatting import interval
from mdagents.scoring.group import accuracy_interval
from mdagents.settings import Status
from mdagents_llm.errors import ErrorKind
from mdagents_llm.layers.retry import Wait
from mdagents_llm.proportions import Interval, wilson

_FEWEST = 10  # questions for which a share in percent is shown


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a run at one moment."""

    totals: RunTotals
    spent: Spent
    under_way: int
    """Calls at all endpoints."""
    allowed: int
    """Calls that may be under way now."""
    queued: int
    """Calls that wait for a connection."""
    cooling: float
    """Seconds for which an endpoint still cools down; 0 when none does."""
    now: float
    """Seconds, on the clock of the run."""
    summarising: int = 0
    """Decided questions for which EXAID has not finished."""
    in_batches: int = 0
    """Calls that wait for a provider's batch."""

    def cost_forecast(self, questions: int) -> float | None:
        """Return what the whole run will cost at the mean so far, in USD; None without a mean.

        The teams' mean is over decided questions and EXAID's over those it has finished with, so
        that neither is too low while EXAID is behind.

        Args:
            questions: Number of questions of the run, times epochs.
        """
        totals, spent = self.totals, self.spent
        finished = totals.exaid.questions
        if spent.cost_usd is None or totals.cost_usd is None or totals.exaid_cost_usd is None:
            return None
        if spent.cached_calls:  # what was used is not what was paid
            return None
        if not totals.questions or (spent.exaid_calls and not finished):
            return None
        left = totals.cost_usd / totals.questions * (questions - totals.questions)
        if finished:
            left += totals.exaid_cost_usd / finished * (questions - finished)
        # A part of what is left has been paid already, for the questions in progress.
        in_progress = max(0.0, spent.cost_usd - totals.cost_usd - totals.exaid_cost_usd)
        return spent.cost_usd + max(0.0, left - in_progress)

    @property
    def calls(self) -> str:
        """What is under way at endpoints: `12/16 calls`, or `300 calls in batches`."""
        if self.in_batches:
            return f"{self.in_batches:,} {'call' if self.in_batches == 1 else 'calls'} in batches"
        return f"{self.under_way}/{self.allowed} calls" if self.allowed else "no calls"


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


class Display:
    """Shows nothing (`--display none`), and what the other displays have in common.

    A display never changes or delays a question.
    """

    period: float = 1.0
    """Seconds between two calls of `refresh`."""

    def __init__(self) -> None:
        self._pauses: list[tuple[float, Wait]] = []  # (seconds from when it was announced, wait)
        self._ends: list[tuple[float, Wait]] = []  # (end on the clock of the run, wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the display away."""

    def happened(self, item: ItemKey, event: Event) -> None:
        """Show what happens in a question: an observer of its feed."""

    def finished(self, record: SampleRecord, totals: RunTotals) -> None:
        """Show one more decided question; only summaries of it can still follow."""

    def summarised(self, made: CaseSummaries) -> None:
        """Show that EXAID has finished with a decided question."""

    def waiting(self, wait: Wait) -> None:
        """Show that a call pauses before its next attempt."""
        self._pauses.append((wait.seconds, wait))

    def refresh(self, snapshot: Snapshot) -> None:
        """Show the state of the run; called every `period`."""
        self._pauses.clear()

    def say(self, line: str) -> None:
        """Show a line of its own."""

    def _waits(self, snapshot: Snapshot) -> str:
        """Return the waits: `3 waiting: 429 from api.x.y, 12 s left`; empty without any."""
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
    """Return what a run has spent so far: `425,127 tokens, 148,364 of them EXAID's`."""
    words = f"{spent.total_tokens:,} tokens"
    return words + (f", {spent.exaid_tokens:,} of them EXAID's" if spent.exaid_calls else "")


def cause_of(wait: Wait) -> str:
    """Return what is waited for, in a few words: `429 from api.x.y`."""
    cause = str(wait.error)
    if wait.error.kind is not ErrorKind.UNREACHABLE:  # which states the reason in a few words
        cause = cause.partition(": ")[0]
    return cause


def left_to_summarise(snapshot: Snapshot, questions: int) -> str:
    """Return `EXAID: 12 questions left` once all questions are decided, else an empty text.

    Args:
        snapshot: The state of the run.
        questions: Number of questions of the run.
    """
    if not snapshot.summarising or snapshot.totals.questions < questions:
        return ""
    count = snapshot.summarising
    return f"EXAID: {count} question{'s' * (count > 1)} left to summarise"


def accuracy_so_far(totals: RunTotals) -> str:
    """Return `accuracy 61.5% (52.1 – 70.0)`, with its 95 % interval as in the report.

    Of fewer than `_FEWEST` answers, which no interval makes a measurement: `3 of 5 right`. While
    questions are asked several times, the interval is not known before the end of the run.
    """
    scored = totals.scored
    if not scored:
        return "accuracy -"
    if not totals.correct and not totals.status_counts.get(Status.ANSWERED):
        return f"none of {scored} answered"
    if scored < _FEWEST:
        return f"{totals.correct} of {scored} right"
    words = f"accuracy {totals.correct / scored:.1%}"
    ends = interval_so_far(totals)
    return f"{words} ({interval(*ends)})" if ends else words


def interval_so_far(totals: RunTotals) -> Interval | None:
    """Return the 95 % interval of accuracy, both ends 0 to 1, as in the report.

    None without a scored question, and while questions are being asked several times.
    """
    if totals.epochs == 1:
        return wilson(totals.correct, totals.scored)
    if (pairs := totals.by_question()) is None:
        return None
    low, high = accuracy_interval([right for right, _ in pairs], [n for _, n in pairs])
    return None if low is None or high is None else (low, high)
