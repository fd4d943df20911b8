"""Answers the questions of a run: a bounded pool of workers, one case at a time each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from infra.chat import ChatModel
from infra.clock import Clock
from infra.errors import BenchError, LimitExceeded, ProviderError, StructuredOutputError
from infra.ledger import Ledger
from mdagents.case import Case, TeamRole, first_of, make_case_id
from mdagents.config import RunConfig
from mdagents.datasets import Dataset, IndexEntry
from mdagents.limits import Limited
from mdagents.methods import Solver
from mdagents.questions import present
from mdagents.records import EXAID_ROLES, ExaidRecord, SampleRecord, Watched, make_record
from mdagents.router import Route
from mdagents.teams import Decision
from mdagents.watching import Watch, Watching

GRACE = 10.0
"""Seconds that questions under way, and EXAID, get to finish after an interruption."""

MOST_DRAINING = 64
"""Decided questions that EXAID may still be at work on; then the oldest is cut short."""


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    """A limit of the run was reached."""
    TOO_MANY_ERRORS = "too_many_errors"


@dataclass(frozen=True, slots=True)
class Item:
    """A question to answer, and which time."""

    entry: IndexEntry
    epoch: int = 1
    """Counted from 1."""

    @property
    def key(self) -> tuple[str, int]:
        """(question_id, epoch)."""
        return self.entry.id, self.epoch


@dataclass(frozen=True, slots=True)
class Answered:
    """A question after its decision, while EXAID may still be at work on it."""

    item: Item
    case: Case
    watch: Watch
    route: Route | None
    decision: Decision | None
    error: BenchError | None
    wall_seconds: float


class Runner:
    """Runs the items of a configuration.

    A worker takes its next question as soon as the last one is decided; what EXAID still has to say
    about that is waited for beside.

    Args:
        config: What is asked for.
        dataset: Where the questions are.
        solver: Chooses who answers a question.
        models: Role -> model.
        ledger: Where the models book their calls.
        clock: For the wall time of a question.
        watching: Opens the watchers of a case.
        on_record: Called with each record as its question finishes; gives how many questions of
            the run have ended in `api_error`.
        check_run: Raises LimitExceeded when a limit of the run is reached.
    """

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        solver: Solver,
        models: Mapping[TeamRole, ChatModel],
        ledger: Ledger,
        clock: Clock,
        watching: Watching,
        *,
        on_record: Callable[[SampleRecord], int],
        check_run: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._dataset = dataset
        self._solver = solver
        self._models = models
        self._ledger = ledger
        self._clock = clock
        self._watching = watching
        self._on_record = on_record
        self._check_run = check_run
        self._outcome = Outcome.FINISHED
        self._recorded = 0
        self._unrecorded: dict[str, Answered] = {}  # decided, by case, the oldest first
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()

    async def run(self, items: Sequence[Item], workers: int) -> Outcome:
        """Answer all items, `workers` at a time.

        Raises:
            EndpointDown: A model can only fail; what was finished before has been recorded.
            StorageError: A record could not be written.
        """
        working = asyncio.ensure_future(self._answer_all(items, workers))
        try:
            await self._wait(working, self._stopping)
            await self._wait(working, self._aborting, at_most=GRACE)
            if working.done():
                working.result()
        finally:
            working.cancel()
            (ended,) = await asyncio.gather(working, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        if self._recorded == len(items):
            return Outcome.FINISHED  # interrupted, perhaps, but nothing was left to stop
        return self._outcome

    @staticmethod
    async def _wait(
        working: asyncio.Future[None], event: asyncio.Event, at_most: float | None = None
    ) -> None:
        """Wait until the work is done, the event has happened or the time (seconds) is over."""
        happened = asyncio.ensure_future(event.wait())
        either: set[asyncio.Future[Any]] = {working, happened}
        await asyncio.wait(either, timeout=at_most, return_when=asyncio.FIRST_COMPLETED)
        happened.cancel()

    def interrupt(self) -> None:
        """Start no further question; those under way get `GRACE` seconds, or none if said twice."""
        if self._stopping.is_set():
            self._aborting.set()
        self._outcome = Outcome.INTERRUPTED
        self._stopping.set()

    async def _answer_all(self, items: Sequence[Item], workers: int) -> None:
        queue, planned = iter(items), len(items)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(workers, planned)):
                    group.create_task(self._work(queue, planned, group))
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        finally:
            # What was decided is recorded, whatever stops the run.
            for answered in list(self._unrecorded.values()):
                self._record(answered, *await answered.watch.close_at_once(), planned)

    async def _work(self, queue: Iterator[Item], planned: int, group: asyncio.TaskGroup) -> None:
        for item in queue:
            if self._outcome is not Outcome.FINISHED or self._is_over_budget():
                return
            answered = await self.answer(item)
            self._unrecorded[answered.case.id] = answered
            if answered.watch.exaid is None:
                await self._finish(answered, planned)
            else:
                group.create_task(self._finish(answered, planned))
            # A question may end without ever giving way to others: from the cache, for example.
            await asyncio.sleep(0)

    async def _finish(self, answered: Answered, planned: int) -> None:
        """Wait for EXAID, then record."""
        if len(self._unrecorded) > MOST_DRAINING:
            next(iter(self._unrecorded.values())).watch.cut()
        self._record(answered, *await answered.watch.close(), planned)

    def _record(
        self, answered: Answered, exaid: ExaidRecord, watched: Watched, planned: int
    ) -> None:
        del self._unrecorded[answered.case.id]
        errors = self._on_record(
            make_record(
                answered.case,
                epoch=answered.item.epoch,
                route=answered.route,
                decision=answered.decision,
                error=answered.error,
                book=self._ledger.close_case(answered.case.id),
                wall_seconds=answered.wall_seconds,
                exaid=exaid,
                watched=watched,
            )
        )
        self._recorded += 1
        allowed = self._config.fail_on_error
        if allowed is not None and errors > (allowed if allowed >= 1 else allowed * planned):
            self._outcome = Outcome.TOO_MANY_ERRORS

    def _is_over_budget(self) -> bool:
        try:
            self._check_run()
        except LimitExceeded:
            self._outcome = Outcome.LIMIT
            return True
        return False

    async def answer(self, item: Item) -> Answered:
        """Answer one item. An error of a model call becomes the status of its record."""
        config = self._config
        source = self._dataset.load(item.entry)
        case_id = make_case_id(source.id, item.epoch)
        watch = self._watching.open(case_id)
        case = Case(
            id=case_id,
            question=present(source, config.option_order, config.seed),
            models={
                role: Limited(model, lambda: self._check_case(case_id))
                for role, model in self._models.items()
            },
            settings=config.team,
            seed=config.seed + item.epoch - 1,
            bus=watch.bus,
            repeat=item.epoch - 1,
        )
        chosen: Route | None = None
        decision: Decision | None = None
        error: BenchError | None = None
        started = self._clock.monotonic()
        self._ledger.open_case(case.id)
        try:
            async with _time_limit(config.limits.sample_seconds):
                chosen = await self._solver.route(case)
                if chosen.difficulty not in config.skip:
                    solve = self._solver.at(chosen)
                    decision = await solve(case, case.question, config.team)
        except (ProviderError, StructuredOutputError, LimitExceeded) as caught:
            error = caught
        except BaseException:
            await watch.abandon()
            self._ledger.close_case(case.id)
            raise
        wall_seconds = self._clock.monotonic() - started
        return Answered(item, case, watch, chosen, decision, error, wall_seconds)

    def _check_case(self, case_id: str) -> None:
        self._check_run()
        used = self._ledger.book_of(case_id).totals(without=EXAID_ROLES)
        self._config.limits.check_sample(used.usage.total_tokens)


@asynccontextmanager
async def _time_limit(seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise LimitExceeded(f"the question has reached --sample-time-limit {seconds:g}") from None
