"""EXAID for programs without an event loop, and for threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from exaid_core.exaid import EXAID
from exaid_core.health import Health
from exaid_core.run_log import RunLog
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.subscribers import Subscriber
from exaid_core.trace.events import TraceEvent

T = TypeVar("T")


class SyncExaid:
    """An `EXAID` on an event loop of its own, in a thread; its methods wait and return.

    Any number of threads may call them at the same time. Subscribers are called in its thread.

        with SyncExaid() as exaid:
            summary = exaid.received_trace("Cardiology", "Troponin is raised.")

    Args:
        settings: The arguments of `EXAID`.

    Raises:
        ConfigError: As `EXAID` does, like its other errors.
    """

    def __init__(self, **settings: Any) -> None:
        self._exaid = EXAID(**settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="EXAID", daemon=True)
        self._submitting, self._ending = threading.Lock(), threading.Lock()
        self._is_closed = False
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(None if error is None else 0)

    def on_event(self, event: TraceEvent) -> None:
        """See `EXAID.on_event`."""
        with self._submitting:
            if not self._is_closed:
                self._loop.call_soon_threadsafe(self._exaid.on_event, event)

    def received_trace(self, agent_id: str, text: str) -> AgentSummary | None:
        """See `EXAID.received_trace`."""
        return self._wait_for(self._exaid.received_trace(agent_id, text))

    def on_new_token(self, agent_id: str, token: str) -> AgentSummary | None:
        """See `EXAID.on_new_token`."""
        return self._wait_for(self._exaid.on_new_token(agent_id, token))

    def flush_agent(self, agent_id: str) -> None:
        """See `EXAID.flush_agent`."""
        self._wait_for(self._exaid.flush_agent(agent_id))

    def finalize(self) -> AgentSummary | None:
        """See `EXAID.finalize`."""
        return self._wait_for(self._exaid.finalize())

    def subscribe(self, subscriber: Subscriber) -> None:
        """See `EXAID.subscribe`."""
        self._call(partial(self._exaid.subscribe, subscriber))

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """See `EXAID.unsubscribe`."""
        self._call(partial(self._exaid.unsubscribe, subscriber))

    def latest_summary(self) -> AgentSummary | str:
        """See `EXAID.latest_summary`."""
        return self._call(self._exaid.latest_summary)

    def get_all_summaries(self) -> list[AgentSummary]:
        """See `EXAID.get_all_summaries`."""
        return self._call(self._exaid.get_all_summaries)

    def get_summaries_by_agent(self, agent_id: str) -> list[AgentSummary]:
        """See `EXAID.get_summaries_by_agent`."""
        return self._call(partial(self._exaid.get_summaries_by_agent, agent_id))

    def get_agent_trace_count(self, agent_id: str) -> int:
        """See `EXAID.get_agent_trace_count`."""
        return self._call(partial(self._exaid.get_agent_trace_count, agent_id))

    def tail_loss(self) -> float:
        """See `EXAID.tail_loss`."""
        return self._call(self._exaid.tail_loss)

    def missed_alerts(self) -> int:
        """See `EXAID.missed_alerts`."""
        return self._call(self._exaid.missed_alerts)

    @property
    def health(self) -> Health:
        """See `EXAID.health`."""
        return self._exaid.health

    @property
    def log(self) -> RunLog:
        """See `EXAID.log`; to be read when this is closed, since its thread writes it."""
        return self._exaid.log

    def close(self, seconds: float | None = None) -> None:
        """See `EXAID.close`; ends the thread. What was summarised can be asked for afterwards.

        Calls of other threads that are under way return, or are cancelled after the time.
        """
        with self._ending:
            if self._is_closed:
                return
            try:
                self._wait_for(self._exaid.close(seconds))
            finally:
                with self._submitting:
                    self._is_closed = True
                asyncio.run_coroutine_threadsafe(_cancel_the_others(), self._loop).result()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()

    def _call(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        # After the end nothing changes any more; a subscriber is on the thread already.
        if self._is_closed or threading.current_thread() is self._thread:
            return function()
        return self._wait_for(call())

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        problem = ""
        if threading.current_thread() is self._thread:
            problem = "a subscriber of a SyncExaid cannot wait for it: it is called by its thread"
        with self._submitting:
            if self._is_closed:
                problem = "this SyncExaid is closed: make another one for further text"
            if not problem:
                future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        if problem:
            coroutine.close()
            raise RuntimeError(problem)
        try:
            return future.result()
        except BaseException:  # Ctrl-C, for example: nobody waits for it any more
            future.cancel()
            raise


async def _cancel_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
