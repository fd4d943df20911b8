"""What a run and the engine that answers its questions say to each other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from exaid_core.policy import TriggerPolicy
from mdagents.agents.feed import Event
from mdagents.datasets.dataset import IndexEntry
from mdagents.datasets.questions import SourceQuestion
from mdagents.records.case_files import CaseFiles
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.solver import Solver
from mdagents.settings import Difficulty
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.ledger import CallRow

GRACE = 10.0
"""Seconds to finish questions under way after an interruption; or EXAID, if all are done."""


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    """A limit of the run was reached."""
    TOO_MANY_ERRORS = "too_many_errors"
    COULD_NOT_WORK = "could_not_work"
    """No reply came, or more than half of the questions ended in `api_error`."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question to answer, and its epoch."""

    entry: IndexEntry
    epoch: int = 1
    """Counted from 1."""
    level: Difficulty | None = None
    """The level to which it goes; None: a router finds it, or the method has none."""

    @property
    def key(self) -> ItemKey:
        """(question_id, epoch)."""
        return self.entry.id, self.epoch


@dataclass(frozen=True, slots=True)
class Task:
    """What an engine needs to know of a run."""

    config: RunConfig
    specs: Mapping[str, ModelSpec]
    """Role -> model."""
    solver: Solver
    name: str
    """Of the run."""
    model: str
    """Of the experts, for the head of a trace."""
    revision: str | None
    """Of this program."""
    load: Callable[[Item], SourceQuestion]
    """Reads a question. Raises ConfigError when its file was changed."""
    check_spent: Callable[[], None]
    """Raises LimitExceeded when a limit of the run is reached."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What an engine needs to know of a record that was written."""

    attempt: int
    """Number of the answer to its question, from 1."""
    too_many_errors: bool = False
    """Whether more questions ended in `api_error` than the run allows."""


class Desk(Protocol):
    """Takes down what comes of the questions of a run."""

    @property
    def files(self) -> CaseFiles:
        """Where their traces and EXAID's logs go."""
        ...

    @property
    def watchers(self) -> Sequence[Callable[[ItemKey, Event], None]]:
        """Told what happens in each question; return at once."""
        ...

    @property
    def policy(self) -> TriggerPolicy | None:
        """Of EXAID; None: it is off, or left out of a replay that has none to follow."""
        ...

    @property
    def recorded(self) -> Path | None:
        """Folder of the run that is replayed, from which EXAID's steps are taken."""
        ...

    def booked(self, row: CallRow) -> None:
        """Take down a row of the ledger.

        Raises:
            StorageError: It cannot be written.
        """

    def decided(self, record: SampleRecord) -> Recorded:
        """Take down a decision; it is on the disk when this returns, its trace before it.

        Raises:
            StorageError: It cannot be written.
        """

    def summarised(self, made: CaseSummaries) -> None:
        """Take down what EXAID made of a decided question; more follows if it is not complete.

        Raises:
            StorageError: It cannot be written.
        """

    def restarted(self, item: ItemKey) -> None:
        """Note that an undecided question is begun anew, since its worker was lost."""


class Work:
    """Items to answer, in their order.

    Args:
        items: The first ones.
        is_complete: Whether no others will be added.
    """

    def __init__(self, items: Iterable[Item] = (), *, is_complete: bool = True) -> None:
        self._items = deque(items)
        self.is_complete = is_complete
        self.was_cut = False
        """Whether it ended before all was known to be done."""
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, items: Iterable[Item]) -> None:
        """Add items at the end."""
        self._items.extend(items)
        self._changed.set()

    def complete(self) -> None:
        """Note that no others will be added."""
        self.is_complete = True
        self._changed.set()

    def cut(self) -> None:
        """Forget what is left."""
        self.was_cut |= not self.is_all_taken
        self._items.clear()
        self.complete()

    async def wait(self) -> bool:
        """Wait until there is an item; return False when there will be none."""
        while not self._items:
            if self.is_complete:
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    def take(self) -> Item:
        """Remove and return the first item."""
        return self._items.popleft()

    @property
    def is_all_taken(self) -> bool:
        """Whether nothing is left and nothing will be added."""
        return self.is_complete and not self._items


class Places:
    """How many questions may be under way, in all runs that share an endpoint.

    Args:
        count: Of the places.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = asyncio.Semaphore(count)

    def take(self) -> AbstractAsyncContextManager[None]:
        """Wait for a place, and hold it within the context."""
        return self._free


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an engine is, for a display."""

    under_way: int = 0
    """Calls at all endpoints."""
    allowed: int = 0
    """Calls that may be under way now."""
    queued: int = 0
    """Calls that wait for a connection."""
    cooling: float = 0.0
    """Seconds for which an endpoint still cools down; 0 when none does."""
    in_batches: int = 0
    """Calls that wait for a provider's batch."""


class Answering(Protocol):
    """Answers the items of one run, once."""

    @property
    def summarising(self) -> int:
        """Decided questions for which EXAID has not finished."""
        ...

    async def run(
        self, items: Sequence[Item], places: Places, on_all_begun: Callable[[], None]
    ) -> Outcome:
        """Answer items, and let EXAID finish.

        Args:
            items: What is left to answer.
            places: How many may be under way.
            on_all_begun: Called when the last one has been begun.

        Raises:
            EndpointDown: A model cannot reply; what was decided before has been recorded.
            StorageError: Something could not be written.
        """
        ...

    def interrupt(self) -> None:
        """Start no further question; those under way get `GRACE` seconds, at a second call none."""


class Engine(Protocol):
    """Has what the questions of a run need, from models to machines."""

    @property
    def places(self) -> int:
        """How many questions are under way at a time, unless runs share places."""
        ...

    @property
    def load(self) -> Load:
        """How busy it is."""
        ...

    def answering(self, desk: Desk, unsummarised: Sequence[tuple[ItemKey, int]] = ()) -> Answering:
        """Return what answers the questions.

        Args:
            desk: Takes down what comes of them.
            unsummarised: (question, which answer to it) of an earlier process for which EXAID had
                not finished.
        """
        ...
