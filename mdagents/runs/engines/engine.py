"""The interface between a run and the engine that answers its questions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from exaid_core.policy import TriggerPolicy
from mdagents.agents.events import Event
from mdagents.datasets.dataset import IndexEntry
from mdagents.datasets.questions import Question, SourceQuestion
from mdagents.records.case_files import CaseFiles
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.budget import Budget
from mdagents.runs.config import RunConfig
from mdagents.runs.solver import Solver
from mdagents.settings import Difficulty, Outcome
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.ledger import CallRow
from mdagents_llm.pictures import Picture

GRACE = 10.0
"""Seconds after an interruption for questions in progress to finish; for EXAID if all are done."""


Watch = Callable[[ItemKey, Event, int], None]
"""Callback for (question, event, time of the event in ms since 1970 UTC); it returns at once."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question to answer, and its epoch."""

    entry: IndexEntry
    epoch: int = 1
    """Number of the epoch, from 1."""
    level: Difficulty | None = None
    """Level that answers the question; None: a router chooses it, or the method has no levels."""

    @property
    def key(self) -> ItemKey:
        """Key of the item: (question_id, epoch)."""
        return self.entry.id, self.epoch


@dataclass(frozen=True, slots=True)
class Task:
    """Everything about a run that an engine needs."""

    config: RunConfig
    specs: Mapping[str, ModelSpec]
    """Role -> model."""
    solver: Solver
    name: str
    """Name of the run."""
    model: str
    """Model of the experts, for the header of a trace."""
    revision: str | None
    """Git revision of this program; None when it is unknown."""
    load: Callable[[Item], SourceQuestion]
    """Reads a question. Raises ConfigError when its file has changed."""
    budget: Budget
    has_pictures: bool = False
    """Whether agents see pictures, which fill memory while their questions are in progress."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Facts about a written record that an engine needs."""

    attempt: int
    """Number of this answer to its question, from 1."""
    too_many_errors: bool = False
    """Whether more questions ended in `api_error` than the run allows."""


class Recorder(Protocol):
    """Records the results of a run."""

    @property
    def files(self) -> CaseFiles:
        """Storage for the traces and EXAID logs of the questions."""
        ...

    @property
    def watchers(self) -> Sequence[Watch]:
        """Callbacks for the events of each question; they return at once."""
        ...

    @property
    def policy(self) -> TriggerPolicy | None:
        """Trigger policy of EXAID; None: EXAID is off, or a replay has no EXAID run to follow."""
        ...

    @property
    def recorded(self) -> Path | None:
        """Folder of the replayed run, which holds EXAID's steps; None: this is not a replay."""
        ...

    async def pictures_of(self, item: Item, question: Question) -> tuple[Picture, ...]:
        """Return the pictures of a question as its agents see them; a copy of each is kept.

        Raises:
            PictureError: A picture cannot be shown, which costs the question.
            StorageError: A copy cannot be written.
        """
        ...

    def booked(self, row: CallRow) -> None:
        """Record a ledger row.

        Raises:
            StorageError: The row cannot be written.
        """

    def decided(self, record: SampleRecord) -> Recorded:
        """Record a decision, whose trace was written before it.

        Raises:
            StorageError: The decision cannot be written.
        """

    async def synced(self) -> None:
        """Wait until the decisions recorded so far survive a power failure.

        Raises:
            StorageError: The disk does not take them.
        """

    def summarised(self, made: CaseSummaries) -> None:
        """Record EXAID's results for a decided question; incomplete results are followed by more.

        Raises:
            StorageError: The results cannot be written.
        """

    def restarted(self, item: ItemKey) -> None:
        """Note that an undecided question starts again because its worker died."""


class Work:
    """Queue of items to answer, in order.

    Args:
        items: First items.
        is_complete: Whether no further items will be added.
    """

    def __init__(self, items: Iterable[Item] = (), *, is_complete: bool = True) -> None:
        self._items = deque(items)
        self.is_complete = is_complete
        self.was_cut = False
        """Whether the queue was cut before all of its items were known to be taken."""
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, items: Iterable[Item]) -> None:
        """Add items at the end."""
        self._items.extend(items)
        self._changed.set()

    def complete(self) -> None:
        """Note that no further items will be added."""
        self.is_complete = True
        self._changed.set()

    def cut(self) -> None:
        """Drop the remaining items."""
        self.was_cut |= not self.is_all_taken
        self._items.clear()
        self.complete()

    async def wait(self) -> bool:
        """Wait until an item is available; return False when no item will follow."""
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
    """Limit on the questions in progress, across all runs that share an endpoint.

    Args:
        count: Maximum number of questions in progress.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = asyncio.Semaphore(count)

    def take(self) -> AbstractAsyncContextManager[None]:
        """Wait for a place, and hold it within the context."""
        return self._free


@dataclass(frozen=True, slots=True)
class Load:
    """Load of an engine, for a display."""

    under_way: int = 0
    """Calls in progress at all endpoints."""
    allowed: int = 0
    """Maximum number of calls in progress at the moment."""
    queued: int = 0
    """Calls that wait for a connection."""
    cooling: float = 0.0
    """Seconds for which an endpoint still cools down; 0 when none does."""
    in_batches: int = 0
    """Calls that wait in a provider's batch."""


class Answering(Protocol):
    """Answers the items of one run, once."""

    @property
    def summarising(self) -> int:
        """Number of decided questions for which EXAID has not finished."""
        ...

    async def run(
        self, items: Sequence[Item], places: Places, on_all_begun: Callable[[], None]
    ) -> Outcome:
        """Answer items, and let EXAID finish.

        Args:
            items: Items that are left to answer.
            places: Limit on the questions in progress.
            on_all_begun: Called when the last item has started.

        Raises:
            EndpointDown: A model cannot reply; earlier decisions have been recorded.
            StorageError: A result cannot be written.
        """
        ...

    def interrupt(self) -> None:
        """Start no more questions; those in progress get `GRACE` seconds.

        A second call stops them at once.
        """


class Engine(Protocol):
    """Holds the resources that the questions of a run need, from models to machines."""

    @property
    def places(self) -> int:
        """Number of questions in progress at a time, unless runs share places."""
        ...

    @property
    def load(self) -> Load:
        """Current load of the engine."""
        ...

    def answering(
        self, recorder: Recorder, unsummarised: Sequence[tuple[ItemKey, int]] = ()
    ) -> Answering:
        """Return an object that answers the questions of the run.

        Args:
            recorder: Recorder of the results.
            unsummarised: (question, number of the answer) pairs of an earlier process for which
                EXAID had not finished.
        """
        ...
