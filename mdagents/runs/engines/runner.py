"""Answers the questions of a run in this process: a bounded pool of one-case workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mdagents.agents.case import Case, first_of, make_case_id
from mdagents.records.sample import SampleRecord, Watched, make_record
from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.engine import GRACE, Item, Places, Recorded, Recorder, Task, Work
from mdagents.runs.engines.exaid_queue import ExaidQueue
from mdagents.runs.engines.observers import CaseObservers, RunObservers
from mdagents.runs.open_case import open_case
from mdagents.runs.solver import Solved
from mdagents.settings import Outcome
from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import Clock
from mdagents_llm.errors import BenchError, LimitExceeded, UnexpectedError, is_debugging
from mdagents_llm.ledger import Ledger


@dataclass(frozen=True, slots=True)
class DecidedItem:
    """A decided question on which EXAID may still be at work."""

    item: Item
    case: Case
    observers: CaseObservers
    solved: Solved


class Runner:
    """Answers the items of a run.

    A worker takes its next question as soon as the record of the last one is written; EXAID
    finishes with that one in parallel.

    Args:
        task: Task to carry out.
        models: Role -> model.
        ledger: Ledger in which the models record their calls.
        clock: Clock for the wall time of a question.
        observers: Factory of the observers of a case.
        exaid: Queue that takes over EXAID's work on decided cases.
        recorder: Recorder of each decision.
    """

    def __init__(
        self,
        task: Task,
        models: Mapping[str, ChatModel],
        ledger: Ledger,
        clock: Clock,
        observers: RunObservers,
        exaid: ExaidQueue,
        recorder: Recorder,
    ) -> None:
        self._task = task
        self._config = task.config
        self._models = models
        self._ledger = ledger
        self._clock = clock
        self._observers = observers
        self._exaid = exaid
        self._recorder = recorder
        self._outcome = Outcome.FINISHED
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()
        self._grace_ends = float("inf")

    @property
    def summarising(self) -> int:
        """Number of decided questions for which EXAID has not finished."""
        return len(self._exaid)

    async def run(
        self,
        items: Sequence[Item],
        places: Places,
        on_all_begun: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Answer items, and let EXAID finish."""
        return await self.work_through(Work(items), places, on_all_begun)

    async def work_through(
        self, work: Work, places: Places, on_all_begun: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Answer the items of a queue that may still grow, and let EXAID finish."""
        self._exaid.start()
        try:
            left = await self._until_stopped(self._answer_all(work, places, on_all_begun))
            if self._outcome is not Outcome.FINISHED:
                return self._outcome
            if left:
                return Outcome.INTERRUPTED
            in_time = None if self._stopping.is_set() else self._config.exaid_wait
            if await self._until_stopped(self._exaid.finished(), in_time):
                if self._stopping.is_set():
                    return Outcome.INTERRUPTED
                if await self._until_stopped(self._exaid.cut()):
                    return Outcome.INTERRUPTED
            return Outcome.LIMIT if self._exaid.is_over_budget else Outcome.FINISHED
        finally:
            await self._exaid.stop()

    def end(self, outcome: Outcome) -> None:
        """Start nothing more, let questions in progress finish, and end with this outcome."""
        self._outcome = outcome

    def take_up(self, item: ItemKey, attempt: int) -> None:
        """Let EXAID finish, from its trace, with a question that was decided elsewhere."""
        self._exaid.take_up(item, attempt)

    async def _until_stopped(
        self, work: Coroutine[Any, Any, bool | None], in_time: float | None = None
    ) -> bool:
        """Do some work unless the run is stopped.

        Args:
            work: Work to do; may return True if some of it is left.
            in_time: Seconds that the work may take; None for no limit.

        Returns:
            Whether some of the work is left.
        """
        working = asyncio.ensure_future(work)
        try:
            await self._wait(working, self._stopping, in_time)
            if self._stopping.is_set():
                left = max(0.0, self._grace_ends - self._clock.monotonic())
                await self._wait(working, self._aborting, left)
            if working.done():
                return bool(working.result())
        finally:
            working.cancel()
            (ended,) = await asyncio.gather(working, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        return True if isinstance(ended, BaseException) else bool(ended)

    @staticmethod
    async def _wait(
        working: asyncio.Future[Any], event: asyncio.Event, at_most: float | None = None
    ) -> None:
        """Wait until the work is done, the event is set or `at_most` seconds are over."""
        happened = asyncio.ensure_future(event.wait())
        either: set[asyncio.Future[Any]] = {working, happened}
        try:
            await asyncio.wait(either, timeout=at_most, return_when=asyncio.FIRST_COMPLETED)
        finally:
            happened.cancel()

    def interrupt(self) -> None:
        """Start no more questions; those in progress get `GRACE` seconds.

        A second call stops them at once.
        """
        if self._stopping.is_set():
            self._aborting.set()
        else:
            self._grace_ends = self._clock.monotonic() + GRACE
            self._stopping.set()

    async def _answer_all(
        self, work: Work, places: Places, on_all_begun: Callable[[], None]
    ) -> bool:
        """Answer the items; return True if some are left."""
        at_once = min(places.count, len(work)) if work.is_complete else places.count
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(self._work(work, places, on_all_begun))
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        return len(work) > 0 or work.was_cut

    async def _work(self, work: Work, places: Places, on_all_begun: Callable[[], None]) -> None:
        while await work.wait():
            async with places.take():
                if self._is_to_end():
                    return
                if len(work) == 0:
                    continue
                item = work.take()
                if work.is_all_taken:
                    on_all_begun()
                await self._keep(await self._answer(item))
            # A question may end without ever yielding to other tasks, for example from the cache.
            await asyncio.sleep(0)

    def _is_to_end(self) -> bool:
        is_ending = self._stopping.is_set() or self._outcome is not Outcome.FINISHED
        return is_ending or self._is_over_budget()

    async def _keep(self, answered: DecidedItem) -> None:
        """Write the decision, even while the run is stopping, and hand the case over to EXAID."""
        try:
            await answered.observers.keep_trace()
        finally:
            try:
                recorded = self._record(answered)
            except BaseException:
                await self._close(answered.case.id, answered.observers)
                raise
            self._ledger.close_case(answered.case.id)
            if answered.observers.has_exaid:
                self._exaid.add(answered.item.key, recorded.attempt, answered.observers)
        if recorded.too_many_errors:
            self._outcome = Outcome.TOO_MANY_ERRORS
        await self._recorder.synced()

    async def _close(self, case_id: str, observers: CaseObservers) -> None:
        """Stop EXAID and close the ledger of a case that has no record."""
        try:
            await observers.abandon()
        finally:
            self._ledger.close_case(case_id)

    def _record(self, answered: DecidedItem) -> Recorded:
        try:
            record = self._made(answered, answered.solved)
        except BenchError:
            raise
        except Exception as error:
            if is_debugging():
                raise
            failed = replace(answered.solved, decision=None, error=UnexpectedError.of(error))
            record = self._made(answered, failed)
        return self._recorder.decided(record)

    def _made(self, answered: DecidedItem, solved: Solved) -> SampleRecord:
        return make_record(
            answered.case,
            epoch=answered.item.epoch,
            route=solved.route,
            decision=solved.decision,
            error=solved.error,
            book=self._ledger.book_of(answered.case.id),
            wall_seconds=solved.wall_seconds,
            watched=Watched(error=answered.observers.error),
        )

    def _is_over_budget(self) -> bool:
        is_exhausted = self._task.budget.is_exhausted
        if is_exhausted:
            self._outcome = Outcome.LIMIT
        return is_exhausted

    async def _answer(self, item: Item) -> DecidedItem:
        """Answer one item; an error of a model call becomes the status of its record."""
        config = self._config
        source = self._task.load(item)
        case_id = make_case_id(source.id, item.epoch)
        observers = self._observers.open(item.key)
        case = open_case(
            case_id,
            source,
            item.epoch,
            config=config,
            order=config.option_order,
            models=self._models,
            ledger=self._ledger,
            within=self._task.budget,
            bus=observers.bus,
            tell=observers.tell,
        )
        try:
            solved = await self._task.solver.solve(
                case, self._clock, item.level, partial(self._recorder.pictures_of, item)
            )
        except BaseException:
            await self._close(case.id, observers)
            raise
        if isinstance(solved.error, LimitExceeded):
            self._is_over_budget()  # records the outcome if the limit was the run's
        return DecidedItem(item, case, observers, solved)
