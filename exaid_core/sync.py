"""EXAID for threads and for programs without an event loop."""

from __future__ import annotations

import asyncio
import os
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
    """A blocking interface to an `EXAID` that runs on its own event loop in a thread.

    Any number of threads may call its methods concurrently. Subscribers are called in its thread.

        with SyncExaid() as exaid:
            summary = exaid.received_trace("Cardiology", "Troponin is raised.")

    Args:
        settings: Arguments of `EXAID`.

    Raises:
        ConfigError: A model that the environment selects has no API key. Other errors are those of
            `EXAID`.
    """

    def __init__(self, **settings: Any) -> None:
        self._exaid = EXAID(**settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="EXAID", daemon=True)
        self._process = os.getpid()
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
        """Accept an event of a `TraceBus` and return at once: see `EXAID.on_event`.

        Raises:
            RuntimeError: This object was made before a fork of the process.
        """
        self._check_process()
        with self._submitting:
            if not self._is_closed:
                self._loop.call_soon_threadsafe(self._exaid.on_event, event)

    def received_trace(self, agent_id: str, text: str) -> AgentSummary | None:
        """Accept a trace as one segment and return its summary: see `EXAID.received_trace`."""
        return self._wait_for(self._exaid.received_trace(agent_id, text))

    def on_new_token(self, agent_id: str, token: str) -> AgentSummary | None:
        """Accept a token and return the summary of its chunk, if any: see `EXAID.on_new_token`."""
        return self._wait_for(self._exaid.on_new_token(agent_id, token))

    def flush_agent(self, agent_id: str) -> None:
        """Move the streamed text of an agent into the buffer: see `EXAID.flush_agent`."""
        self._wait_for(self._exaid.flush_agent(agent_id))

    def finalize(self) -> AgentSummary | None:
        """Flush all gates and summarize the rest of the text: see `EXAID.finalize`."""
        return self._wait_for(self._exaid.finalize())

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a function with each summary from now on: see `EXAID.subscribe`."""
        self._call(partial(self._exaid.subscribe, subscriber))

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop calling a subscriber: see `EXAID.unsubscribe`."""
        self._call(partial(self._exaid.unsubscribe, subscriber))

    def latest_summary(self) -> AgentSummary | str:
        """Return the latest summary, or `NO_SUMMARY` if there is none yet."""
        return self._call(self._exaid.latest_summary)

    def get_all_summaries(self) -> list[AgentSummary]:
        """Return all summaries, oldest first."""
        return self._call(self._exaid.get_all_summaries)

    def get_summaries_by_agent(self, agent_id: str) -> list[AgentSummary]:
        """Return the summaries that cover segments of the agent with exactly this id."""
        return self._call(partial(self._exaid.get_summaries_by_agent, agent_id))

    def get_agent_trace_count(self, agent_id: str) -> int:
        """Count the traces of an agent: calls of `received_trace`, and chunks of its stream."""
        return self._call(partial(self._exaid.get_agent_trace_count, agent_id))

    def tail_loss(self) -> float:
        """Return the share of the text that no summary covers, 0 to 1; 0 without text."""
        return self._call(self._exaid.tail_loss)

    def missed_alerts(self) -> int:
        """Count the segments with a critical alert that no summary covers."""
        return self._call(self._exaid.missed_alerts)

    @property
    def health(self) -> Health:
        """Health of the model calls so far."""
        return self._exaid.health

    @property
    def log(self) -> RunLog:
        """Run log of the case; read it after `close`, because the EXAID thread writes it."""
        return self._exaid.log

    def close(self, seconds: float | None = None) -> None:
        """Finalize within a time limit in seconds and end the thread: see `EXAID.close`.

        Summaries can still be read afterwards. Calls in progress in other threads return, or are
        canceled after the time limit.

        Raises:
            RuntimeError: A subscriber calls it, or this object was made before a fork of the
                process.
            Exception: See `EXAID.close`.
        """
        self._check_caller()
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

        # After closing, nothing changes any more; a subscriber already runs on the thread.
        if self._is_closed or threading.current_thread() is self._thread:
            return function()
        return self._wait_for(call())

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            self._check_caller()
            with self._submitting:
                if self._is_closed:
                    raise RuntimeError(
                        "this SyncExaid is closed: make another one for further text"
                    )
                future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise
        try:
            return future.result()
        except BaseException:  # such as Ctrl-C: nobody waits for the result any more
            future.cancel()
            raise

    def _check_caller(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a subscriber of a SyncExaid cannot wait for it: it is called by its thread"
            )
        self._check_process()

    def _check_process(self) -> None:
        if not self._is_closed and os.getpid() != self._process:  # a fork copies no threads
            raise RuntimeError("this SyncExaid was made before a fork: make one in each process")


async def _cancel_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
