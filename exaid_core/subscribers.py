"""Delivers summaries to subscribers, none of which can harm or delay EXAID or another one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable

from exaid_core.health import Monitor
from exaid_core.schema.agent_summary import AgentSummary

_TIME_TO_STOP = 1.0  # seconds; subscribers that do not stop by then are abandoned

Subscriber = Callable[[AgentSummary], Awaitable[object] | object]
"""A function that must not block, or an async function."""


class Subscribers:
    """Delivers summaries to subscribers, to each of them in order.

    A plain function is called at once. An async function is called when it has finished with the
    previous summary, and is awaited in the background.

    Args:
        monitor: Receives the exceptions of subscribers, which affect neither other subscribers nor
            later summaries.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._subscriptions: list[_Subscription] = []
        self._leaving: list[_Subscription] = []
        """Removed subscriptions that still have summaries to finish."""

    def add(self, subscriber: Subscriber) -> None:
        """Deliver each summary from now on to `subscriber`.

        Raises:
            TypeError: `subscriber` is not callable.
        """
        if not callable(subscriber):
            raise TypeError(f"a subscriber must be a function, not {type(subscriber).__name__}")
        self._subscriptions.append(_Subscription(subscriber, self._monitor))

    def remove(self, subscriber: Subscriber) -> None:
        """Deliver the summaries so far to `subscriber`, but no further ones.

        Raises:
            ValueError: `subscriber` is not subscribed.
        """
        subscribed = [each for each in self._subscriptions if each.subscriber == subscriber]
        if not subscribed:
            raise ValueError(f"{subscriber!r:.60} is no subscriber")
        self._subscriptions.remove(subscribed[0])
        self._leaving = [each for each in (*self._leaving, subscribed[0]) if each.task is not None]

    def tell(self, summary: AgentSummary) -> None:
        """Deliver a summary to all subscribers; never raises."""
        for subscription in tuple(self._subscriptions):
            subscription.tell(summary)

    async def finished(self) -> None:
        """Wait until async subscribers have finished, except for one that calls this itself."""
        while tasks := [task for task in self._tasks() if task is not asyncio.current_task()]:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        """Cancel async subscribers and report their unfinished summaries to the monitor."""
        tasks = [task for task in self._tasks() if task is not asyncio.current_task()]
        for subscription in (*self._subscriptions, *self._leaving):
            subscription.stop()
        if tasks:
            await asyncio.wait(tasks, timeout=_TIME_TO_STOP)

    def _tasks(self) -> list[asyncio.Future[object]]:
        subscriptions = (*self._subscriptions, *self._leaving)
        return [each.task for each in subscriptions if each.task is not None]


class _Subscription:
    def __init__(self, subscriber: Subscriber, monitor: Monitor) -> None:
        self.subscriber = subscriber
        self.task: asyncio.Future[object] | None = None
        """Running call of an async subscriber; None while it is idle."""
        self._monitor = monitor
        self._left: deque[AgentSummary] = deque()
        self._is_stopped = False

    def tell(self, summary: AgentSummary) -> None:
        self._left.append(summary)
        if self.task is None:
            self._go_on()

    def stop(self) -> None:
        self._is_stopped = True
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    def _go_on(self) -> None:
        while self._left and self.task is None:
            try:
                result = self.subscriber(self._left.popleft())
            except Exception as error:  # noqa: BLE001 - it is foreign code
                self._monitor.broke("subscriber", error)
                continue
            except asyncio.CancelledError:  # not ours: nothing was awaited
                self._monitor.broke("subscriber", TimeoutError("cancelled by itself"))
                continue
            if isawaitable(result):
                self.task = asyncio.ensure_future(result)
                self.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[object]) -> None:
        self.task = None
        if task.cancelled() and not self._is_stopped:
            self._monitor.broke("subscriber", TimeoutError("cancelled by itself"))
        elif not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._monitor.broke("subscriber", error)
        if self._is_stopped:
            if left := task.cancelled() + len(self._left):
                words = f"stopped before it was done; summaries left: {left}"
                self._monitor.broke("subscriber", TimeoutError(words))
            self._left.clear()
        self._go_on()
