"""Answers the questions of a run: a bounded pool of workers, one case at a time each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from infra.chat import ChatModel
from infra.clock import Clock
from infra.errors import LimitExceeded
from infra.ledger import Ledger
from mdagents.agents.case import Case, first_of, make_case_id
from mdagents.datasets.questions import present
from mdagents.records.sample import EXAID_ROLES, SampleRecord, Watched, make_record
from mdagents.runs.exaid_queue import ExaidQueue
from mdagents.runs.limits import Limited
from mdagents.runs.observers import CaseObservers, RunObservers
from mdagents.runs.plan import Item, Plan
from mdagents.runs.shared import Places
from mdagents.runs.solver import Solved

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
class Answered:
    """A question after its decision, while EXAID may still be at work on it."""

    item: Item
    case: Case
    observers: CaseObservers
    solved: Solved


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a runner needs to know of a record that was written."""

    attempt: int
    """Number of the answer to its question, from 1."""
    api_errors: int
    """Questions of the run that have ended in `api_error` so far."""


class Runner:
    """Runs the items of a configuration.

    A worker takes its next question as soon as the record of the last one is written; EXAID
    finishes with that one in parallel.

    Args:
        plan: What is to be done.
        models: Role -> model.
        ledger: Where the models book their calls.
        clock: For the wall time of a question.
        observers: Opens the observers of a case.
        exaid: Takes over the EXAID of decided cases.
        on_record: Called with each record as its question is decided.
    """

    def __init__(
        self,
        plan: Plan,
        models: Mapping[str, ChatModel],
        ledger: Ledger,
        clock: Clock,
        observers: RunObservers,
        exaid: ExaidQueue,
        on_record: Callable[[SampleRecord], Recorded],
    ) -> None:
        self._plan = plan
        self._config = plan.config
        self._models = models
        self._ledger = ledger
        self._clock = clock
        self._observers = observers
        self._exaid = exaid
        self._on_record = on_record
        self._outcome = Outcome.FINISHED
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()
        self._grace_ends = float("inf")

    async def run(
        self,
        items: Sequence[Item],
        places: Places,
        on_all_begun: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Answer items, and let EXAID finish.

        Args:
            items: What is left to answer.
            places: How many may be under way.
            on_all_begun: Called when the last one has been begun.

        Raises:
            EndpointDown: A model cannot reply; what was decided before has been recorded.
            StorageError: A record could not be written.
        """
        self._exaid.start()
        try:
            left = await self._until_stopped(self._answer_all(items, places, on_all_begun))
            if self._outcome is not Outcome.FINISHED:
                return self._outcome
            if left:
                return Outcome.INTERRUPTED
            in_time = None if self._stopping.is_set() else self._config.exaid_wait
            if await self._until_stopped(self._exaid.finished(), in_time):
                if self._stopping.is_set():
                    return Outcome.INTERRUPTED
                await self._exaid.cut()
            return Outcome.LIMIT if self._exaid.is_over_budget else Outcome.FINISHED
        finally:
            await self._exaid.stop()

    async def _until_stopped(
        self, work: Coroutine[Any, Any, bool | None], in_time: float | None = None
    ) -> bool:
        """Do something unless the run is stopped.

        Args:
            work: What to do; may return that something is left of it.
            in_time: Seconds that it may take; None for any.

        Returns:
            Whether something is left.
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
        """Wait until the work is done, the event has happened or the time (seconds) is over."""
        happened = asyncio.ensure_future(event.wait())
        either: set[asyncio.Future[Any]] = {working, happened}
        try:
            await asyncio.wait(either, timeout=at_most, return_when=asyncio.FIRST_COMPLETED)
        finally:
            happened.cancel()

    def interrupt(self) -> None:
        """Start no further question; those under way get `GRACE` seconds, at a second call none."""
        if self._stopping.is_set():
            self._aborting.set()
        else:
            self._grace_ends = self._clock.monotonic() + GRACE
            self._stopping.set()

    async def _answer_all(
        self, items: Sequence[Item], places: Places, on_all_begun: Callable[[], None]
    ) -> bool:
        """Answer the items; return True if some are left."""
        queue = deque(items)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(places.count, len(items))):
                    group.create_task(self._work(queue, places, on_all_begun))
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        return bool(queue)

    async def _work(
        self, queue: deque[Item], places: Places, on_all_begun: Callable[[], None]
    ) -> None:
        while queue:
            async with places.take():
                if not queue or self._is_to_end():
                    return
                item = queue.popleft()
                if not queue:
                    on_all_begun()
                await self._keep(await self._answer(item))
            # A question may end without ever yielding to others: from the cache, for example.
            await asyncio.sleep(0)

    def _is_to_end(self) -> bool:
        is_ending = self._stopping.is_set() or self._outcome is not Outcome.FINISHED
        return is_ending or self._is_over_budget()

    async def _keep(self, answered: Answered) -> None:
        """Write the decision, even while the run is being stopped, and hand EXAID over."""
        try:
            await answered.observers.keep_trace()
        finally:
            try:
                recorded = self._record(answered)
            except BaseException:
                await self._close(answered.case.id, answered.observers)
                raise
            if answered.observers.exaid is None:
                self._ledger.close_case(answered.case.id)
            else:
                self._exaid.add(answered.item.key, recorded.attempt, answered.observers)
        allowed = self._config.fail_on_error
        if allowed is not None:
            most = allowed if allowed >= 1 else allowed * len(self._plan.items)
            if recorded.api_errors > most:
                self._outcome = Outcome.TOO_MANY_ERRORS

    async def _close(self, case_id: str, observers: CaseObservers) -> None:
        """Stop EXAID and close the book for a case that has no record."""
        try:
            await observers.abandon()
        finally:
            self._ledger.close_case(case_id)

    def _record(self, answered: Answered) -> Recorded:
        solved = answered.solved
        return self._on_record(
            make_record(
                answered.case,
                epoch=answered.item.epoch,
                route=solved.route,
                decision=solved.decision,
                error=solved.error,
                book=self._ledger.book_of(answered.case.id),
                wall_seconds=solved.wall_seconds,
                watched=Watched(error=answered.observers.error),
            )
        )

    def _is_over_budget(self) -> bool:
        try:
            self._check_budget()
        except LimitExceeded:
            return True
        return False

    def _check_budget(self) -> None:
        try:
            self._plan.check_spent()
        except LimitExceeded:
            self._outcome = Outcome.LIMIT
            raise

    async def _answer(self, item: Item) -> Answered:
        """Answer one item. An error of a model call becomes the status of its record."""
        config = self._config
        source = self._plan.dataset.load(item.entry)
        case_id = make_case_id(source.id, item.epoch)
        observers = self._observers.open(item.key)
        case = Case(
            id=case_id,
            question=present(source, config.option_order, config.seed, item.epoch),
            models={
                role: Limited(model, lambda: self._check_case(case_id))
                for role, model in self._models.items()
            },
            settings=config.team,
            seed=config.seed + item.epoch - 1,
            bus=observers.bus,
            tell=observers.tell,
            repeat=item.epoch - 1,
        )
        self._ledger.open_case(case.id)
        try:
            solved = await self._plan.solver.solve(case, self._clock, item.level)
        except BaseException:
            await self._close(case.id, observers)
            raise
        if isinstance(solved.error, LimitExceeded):
            self._is_over_budget()  # notes it, if the limit was the run's
        return Answered(item, case, observers, solved)

    def _check_case(self, case_id: str) -> None:
        self._check_budget()
        used = self._ledger.book_of(case_id).totals(without=EXAID_ROLES)
        self._config.limits.check_sample(used.usage.total_tokens)
