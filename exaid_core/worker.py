"""Schedules the decisions of EXAID: one worker takes the segments of a case in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import accumulate, takewhile

from exaid_core.buffer_agent.buffer_agent import TriggerReason
from exaid_core.config import JUDGED
from exaid_core.decisions import Decisions
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.segmenter import Segmenter
from exaid_core.segments import Segment
from exaid_core.tokenizer import count_words
from mdagents_llm.config import LLMRole
from mdagents_llm.layers.gate import Urgency

RoomFor = Callable[[LLMRole, Urgency], AbstractAsyncContextManager[None]]
"""Function that makes a context; entering it waits until a model call of the role can be sent."""

_ANOTHER_LOOP = (
    "this EXAID runs on another event loop: make one EXAID for each asyncio.run, "
    "and for threads a SyncExaid"
)

Waiter = asyncio.Future[AgentSummary | None]
"""Future of the summary that covers a segment; its result is None without a summary."""


@dataclass(slots=True)
class _Arrival:
    """A segment that is waiting for a decision."""

    segment: Segment
    is_parked: bool
    """Whether the segment goes into the buffer without a decision."""
    waiter: Waiter | None = None

    def settle(self, summary: AgentSummary | None) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(summary)


class Worker:
    """Decides on the segments of a case, one decision at a time.

    Segments that arrive during a decision, or while the next call waits for room, are decided on
    together. Cancellation never loses a segment: it is still waiting, buffered or in a summary.

    Args:
        segmenter: Segmenter that releases further segments when its timers expire.
        decisions: Decisions on the segments.
        now_ms: Clock in ms since 1970 UTC.
        room: Function that makes a context to enter before a model call, as in `EXAID`.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        decisions: Decisions,
        now_ms: Callable[[], int],
        room: RoomFor,
    ) -> None:
        self._segmenter = segmenter
        self._decisions = decisions
        self._config = decisions.config
        self._buffer_agent = decisions.buffer_agent
        self._now_ms = now_ms
        self._room = room
        self._pending: list[_Arrival] = []
        self._hurry = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._finishing: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._is_deciding = False
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for_room = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.failure: Exception | None = None
        """First exception in a decision that no caller waited for; None without one."""

    def submit(
        self, segments: Sequence[Segment], *, is_parked: bool = False, waiter: Waiter | None = None
    ) -> None:
        """Queue segments in order and watch the timers; needs a running event loop.

        Args:
            segments: Segments to queue, possibly none.
            is_parked: Whether they go into the buffer without a decision.
            waiter: Future for the summary that covers the last segment, if any; the decision then
                does not linger.

        Raises:
            RuntimeError: The event loop is not the one of the earlier calls.
        """
        self.check_loop()
        self._watch_timers()
        if not segments:
            return
        self._pending += [_Arrival(segment, is_parked) for segment in segments]
        self._pending[-1].waiter = waiter
        is_alert = any(segment.is_alert for segment in segments)
        if waiter is not None or is_alert or self._may_begin():
            self._hurry.set()
        self._start()

    async def decision_on(
        self, segments: Sequence[Segment], *, is_parked: bool = False
    ) -> AgentSummary | None:
        """Queue segments like `submit` and wait for the decision on them.

        Returns:
            The summary that covers the last segment, or None if there is no new summary.
        """
        waiter: Waiter | None = None
        if segments:
            waiter = asyncio.get_running_loop().create_future()
        self.submit(segments, is_parked=is_parked, waiter=waiter)
        return await waiter if waiter is not None else None

    async def finish(self) -> None:
        """Decide on all waiting text, then summarize what is left in the buffer."""
        self.check_loop()
        self._stop_timer()
        self.submit(self._segmenter.rest(self._now_ms()), is_parked=True)
        # Waiting text need not be judged, since it is summarized anyway, unless a caller waits for
        # the decision, the text has an alert, or each text is judged alone.
        pending = self._pending
        if self._config.coalesce and not any(a.waiter or a.segment.is_alert for a in pending):
            for arrival in pending:
                arrival.is_parked = True
        while not self._is_stopped and (
            self._pending or (self._task is not None and not self._task.done())
        ):
            self._hurry.set()
            task = self._start()
            if self._waits_for_room and all(arrival.is_parked for arrival in self._pending):
                self._waits_for_room = False
                task.cancel()  # it has taken no segments yet, and none needs a call
            await asyncio.wait([task])
        if self._buffer_agent.held() and not self._is_stopped:
            self._finishing = asyncio.create_task(self._summarize_rest())
            try:
                await self._finishing
            except asyncio.CancelledError:
                if not self._was_stopped_meanwhile():
                    raise

    def _was_stopped_meanwhile(self) -> bool:
        """Return whether `stop` canceled one of our tasks, but nobody canceled the current one."""
        caller = asyncio.current_task()
        return self._is_stopped and caller is not None and not caller.cancelling()

    async def _summarize_rest(self) -> None:
        async with self._one_at_a_time, self._room(LLMRole.SUMMARIZER, self._urgency):
            with self._deciding():
                await self._decisions.summarize()

    async def catch_up(self, groups: Iterable[list[Segment]]) -> None:
        """Summarize the groups one by one, without judging whether they are due.

        Live cases have priority, except over a case with an alert.
        """
        left = deque(groups)
        alerts = any(segment.is_alert for group in left for segment in group)
        try:
            while left and not self._is_stopped:
                room = self._room(LLMRole.SUMMARIZER, lambda: (not alerts, 2))
                async with self._one_at_a_time, room:
                    with self._deciding():
                        await self._decisions.consider(left.popleft(), TriggerReason.BEHIND)
        finally:
            for group in left:
                self._buffer_agent.hold(group)

    async def stop(self, *, after_decision: bool = False) -> None:
        """Start no further decision, and cancel the one in progress.

        Args:
            after_decision: Whether to complete the decision in progress instead, so that no
                paid-for call is wasted.
        """
        self.check_loop()
        self._is_stopped = True
        self._stop_timer()
        for arrival in self._pending:
            arrival.settle(None)
        in_progress = [task for task in (self._task, self._finishing) if task is not None]
        if not (after_decision and self._is_deciding):
            for task in in_progress:
                task.cancel()
        await asyncio.gather(*in_progress, return_exceptions=True)
        # A canceled task keeps its exception, which refers to this worker: a cycle, so that only
        # the garbage collector would free the case.
        self._task = self._finishing = None
        self._buffer_agent.hold(self._segmenter.rest(self._now_ms()))

    def left(self) -> list[Segment]:
        """Return the segments without a summary."""
        return [*self._buffer_agent.held(), *(arrival.segment for arrival in self._pending)]

    def is_on_its_loop(self) -> bool:
        """Return whether the running event loop is the first one or that of the earlier calls."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return False
        self._loop = self._loop or running
        return self._loop is running

    def call_soon(self, function: Callable[[], None]) -> None:
        """Schedule a function on the event loop of the earlier calls, from any thread.

        Without earlier calls, the function is not called.

        Raises:
            RuntimeError: That event loop is closed.
        """
        if self._loop is None:
            return
        if self._loop.is_closed():
            raise RuntimeError(_ANOTHER_LOOP)
        self._loop.call_soon_threadsafe(function)

    def check_loop(self) -> None:
        """Check that the running event loop is the one of the earlier calls.

        Raises:
            RuntimeError: The running event loop is a different one.
        """
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise RuntimeError(_ANOTHER_LOOP)

    def _watch_timers(self) -> None:
        deadline = self._segmenter.deadline()
        if deadline is None or self._timer is not None:
            return  # a later chunk never expires before the watched one
        pause = max(0.0, deadline - self._now_ms() / 1000)
        self._timer = asyncio.get_running_loop().call_later(pause, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.submit(self._segmenter.expired(self._now_ms()))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        return self._task

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Mark a decision, which may include a paid-for call, as in progress."""
        self._is_deciding = True
        try:
            yield
        finally:
            self._is_deciding = False

    async def _work(self) -> None:
        while self._pending and not self._is_stopped:
            await self._linger()
            is_parked = bool(self._pending) and self._pending[0].is_parked
            self._waits_for_room = not is_parked
            async with self._one_at_a_time, self._room_for_next(is_parked=is_parked):
                self._waits_for_room = False
                if self._pending:
                    with self._deciding():
                        await self._decide_on(self._next_batch())

    async def _linger(self) -> None:
        config = self._config
        if config.linger > 0 and config.coalesce:
            pause = max(config.linger, min(self._decisions.pace, config.longest_linger))
            if self._is_first_text() and config.first_after is not None:
                waited = (self._now_ms() - self._pending[0].segment.at_ms) / 1000
                pause = max(0.0, config.first_after - waited)
            try:
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            except TimeoutError:
                pass
        self._hurry.clear()

    def _room_for_next(self, *, is_parked: bool) -> AbstractAsyncContextManager[None]:
        if is_parked:
            return nullcontext()
        is_judged = self._config.policy in JUDGED and not self._is_first_text()
        role = LLMRole.BUFFER_AGENT if is_judged else LLMRole.SUMMARIZER
        return self._room(role, self._urgency)

    def _urgency(self) -> tuple[float, ...]:
        """Return the urgency of the next call: alerts, first summaries, then the longest wait."""
        left = self.left()
        longest = -len(self._pending) or -1  # the first in the queue, else the last in the buffer
        return (
            not any([segment.is_alert for segment in left]),
            bool(self._decisions.history.summaries),
            left[longest].at_ms if left else 0,
        )

    def _next_batch(self) -> list[_Arrival]:
        """Take the first arrivals that are decided on together from the queue."""
        is_parked = self._pending[0].is_parked
        batch = list(takewhile(lambda each: each.is_parked is is_parked, self._pending))
        if not self._config.coalesce:
            del batch[1:]
        del self._pending[: len(batch)]
        return batch

    async def _decide_on(self, batch: list[_Arrival]) -> None:
        summary = None
        try:
            segments = [arrival.segment for arrival in batch]
            if batch[0].is_parked:
                self._buffer_agent.hold(segments)
            else:
                summary = await self._decisions.consider(segments, self._unasked(batch))
        except Exception as error:  # noqa: BLE001 - raised to the callers that wait, or by `close`
            waiters = [each.waiter for each in batch if each.waiter and not each.waiter.done()]
            for waiter in waiters:
                waiter.set_exception(error)
            if not waiters:
                self.failure = self.failure or error
        finally:
            for arrival in batch:
                arrival.settle(summary)

    def _unasked(self, batch: Sequence[_Arrival]) -> TriggerReason | None:
        """Return why text is summarized without being judged; None if it is judged."""
        config = self._config
        if not config.coalesce:
            return None
        due = self._buffer_agent.due([arrival.segment for arrival in batch])
        if due is not TriggerReason.NONE:
            return due
        if any(arrival.waiter for arrival in batch):
            return None
        if self._is_first_text():
            return TriggerReason.FIRST_TEXT
        waited = self._now_ms() - batch[0].segment.at_ms
        if config.behind_after is not None and waited > 1000 * config.behind_after:
            return TriggerReason.BEHIND
        return None

    def _is_first_text(self) -> bool:
        config = self._config
        # A failed attempt counts: the next text is judged, not sent with all earlier text.
        is_first = not self._decisions.log.summaries
        return config.coalesce and config.first_after is not None and is_first

    def _may_begin(self) -> bool:
        """Return whether the first text now has enough words for a summary."""
        if self._hurry.is_set() or not self._is_first_text():
            return False
        # Stops at `min_words`: much text may wait while the first summary is written.
        counts = (count_words(arrival.segment.text) for arrival in self._pending)
        return any(words >= self._config.gate.min_words for words in accumulate(counts))
