"""Queue of the decided questions for which EXAID has not finished.

No worker and no record waits for EXAID. A question that it does not finish, for lack of memory or
because the process ends, is resumed from its saved trace and log: no summary is made twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import NamedTuple

from mdagents.agents.case import make_case_id
from mdagents.records.sample import CaseSummaries
from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.observers import CaseObservers, RunObservers
from mdagents_llm.finishing import finished

MOST_IN_MEMORY = 64
"""Maximum number of decided questions whose EXAID is in memory. Further ones are suspended, and
resumed from their files when there is room."""

_FROM_TRACES_AT_ONCE = 4  # resumed cases at a time while many others are in memory
_NO_TIME = "no time was left for it (--exaid-wait)"


class _Answer(NamedTuple):
    """An answer to a question."""

    item: ItemKey
    attempt: int
    """Number of this answer to its question, from 1."""

    @property
    def case_id(self) -> str:
        return make_case_id(*self.item)


class ExaidQueue:
    """Lets EXAID finish with decided questions while others are in progress.

    Args:
        observers: Factory that reopens saved cases.
        keep: Writes EXAID's results for an answer.
        kept: (question, number of the answer) pairs of an earlier process for which EXAID had not
            finished.
        postpone: Takes over cases that do not fit into memory; None: they wait here until there is
            room.
    """

    def __init__(
        self,
        observers: RunObservers,
        keep: Callable[[CaseSummaries], None],
        kept: Iterable[tuple[ItemKey, int]] = (),
        postpone: Callable[[ItemKey, int], None] | None = None,
    ) -> None:
        self._observers = observers
        self._keep = keep
        self._give_away = postpone
        self._kept = deque(_Answer(*answer) for answer in kept)
        self._under_way: set[asyncio.Task[None]] = set()
        self._from_traces = 0
        self._is_cut = False
        self._error: BaseException | None = None
        self.is_over_budget = False
        """Whether a limit of the run left work for a later start with a higher limit."""

    def __len__(self) -> int:
        return len(self._under_way) + len(self._kept)

    def start(self) -> None:
        """Resume suspended cases and those of an earlier process, while there is room.

        Needs a running event loop.
        """
        while self._kept and self._has_room() and not self._is_cut:
            self._from_traces += 1
            self._begin(self._take_up(self._kept.popleft()))

    def _has_room(self) -> bool:
        """Return whether another case may be resumed, with room left for those decided next."""
        is_idle = len(self._under_way) < MOST_IN_MEMORY // 2
        return is_idle or self._from_traces < _FROM_TRACES_AT_ONCE

    def take_up(self, item: ItemKey, attempt: int) -> None:
        """Resume a case from its saved trace as soon as there is room."""
        self._kept.append(_Answer(item, attempt))
        self.start()

    def add(self, item: ItemKey, attempt: int, observers: CaseObservers) -> None:
        """Take over EXAID's work on a case whose record is written."""
        answer = _Answer(item, attempt)
        if len(self._under_way) < MOST_IN_MEMORY or not observers.can_be_suspended:
            self._begin(self._finish(answer, observers))
        else:
            self._begin(self._postpone(answer, observers))

    async def finished(self) -> None:
        """Wait until EXAID has finished with all cases.

        Raises:
            StorageError: A result cannot be written.
        """
        while self._under_way:
            await asyncio.wait(set(self._under_way))
        if self._error is not None:
            raise self._error

    async def cut(self) -> None:
        """Stop now, and write the results so far; those of suspended cases come from their files.

        Raises:
            StorageError: A result cannot be written.
        """
        self._is_cut = True
        await self._cancel_all()
        while self._kept:
            answer = self._kept.popleft()
            await self._end_early(answer, self._observers.reopen(answer.item))
        await self.finished()

    async def stop(self) -> None:
        """Stop now, and leave unfinished cases to the next start."""
        self._kept.clear()
        await self._cancel_all()

    async def _cancel_all(self) -> None:
        await asyncio.sleep(0)  # a task that is cancelled before its first step never runs
        while self._under_way:
            for task in self._under_way:
                task.cancel()
            await asyncio.wait(set(self._under_way))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = self._error or task.exception()

    async def _finish(self, answer: _Answer, observers: CaseObservers) -> None:
        try:
            await observers.summarise_rest()
        except asyncio.CancelledError:
            await self._end_early(answer, observers)
            raise
        is_complete = not observers.is_kept_from_finishing()
        self.is_over_budget |= not is_complete
        await finished(self._write(answer, observers, is_complete=is_complete))

    async def _postpone(self, answer: _Answer, observers: CaseObservers) -> None:
        try:
            await observers.suspend()
            await finished(self._write(answer, observers, is_complete=False))
        except asyncio.CancelledError:
            await self._end_early(answer, observers)
            raise
        if self._give_away is not None:
            self._give_away(answer.item, answer.attempt)
        else:
            self._kept.append(answer)
            self.start()

    async def _end_early(self, answer: _Answer, observers: CaseObservers) -> None:
        """Write the results of a case so far: as final if no time is left, else to be resumed."""
        await observers.abandon()
        if not observers.is_restored:
            if not self._is_cut:
                return  # its files hold the results
            await observers.summarise_rest()  # only restores the earlier results
        if self._is_cut:
            observers.note(_NO_TIME)
        await finished(self._write(answer, observers, is_complete=self._is_cut))

    async def _take_up(self, answer: _Answer) -> None:
        try:
            await self._finish(answer, self._observers.reopen(answer.item))
        finally:
            self._from_traces -= 1
        self.start()

    async def _write(self, answer: _Answer, observers: CaseObservers, *, is_complete: bool) -> None:
        question_id, epoch = answer.item
        exaid, watched, alerts = await observers.outcome(is_complete=is_complete)
        self._keep(
            CaseSummaries(
                question_id=question_id,
                epoch=epoch,
                case_id=answer.case_id,
                attempt=answer.attempt,
                exaid=exaid,
                watched=watched,
                alerts=alerts,
                is_complete=is_complete,
            )
        )
