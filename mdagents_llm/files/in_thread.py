"""Calls functions that wait for the disk in a thread, several of them at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class InThread:
    """Calls functions in a thread, in order. Calls that wait are handed over together.

    A file system makes whoever creates a file wait while it syncs another one; in the event loop,
    this would delay all calls of a run.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._is_calling = False

    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Return the future result of a function, or the exception that it will raise.

        The function is called even if nobody waits for the result, or if it is cancelled.
        """
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        self._waiting.append((function, result))
        if not self._is_calling:
            self._is_calling = True
            calling = loop.create_task(self._call_all())
            _TASKS.add(calling)
            calling.add_done_callback(_TASKS.discard)
        return result

    async def _call_all(self) -> None:
        calls: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        try:
            while self._waiting:
                calls, self._waiting = self._waiting, []
                outcomes = await asyncio.to_thread(_outcomes, [function for function, _ in calls])
                for (_, result), (value, error) in zip(calls, outcomes, strict=True):
                    if result.done():
                        continue
                    if error is None:
                        result.set_result(value)
                    else:
                        result.set_exception(error)
        finally:
            self._is_calling = False
            for _, result in (*calls, *self._waiting):
                result.cancel()  # nobody waits in vain when the program ends; others are done
            self._waiting = []


_TASKS: set[asyncio.Task[None]] = set()
"""Tasks in progress, which the event loop itself refers to only weakly."""


def _outcomes(functions: list[Callable[[], Any]]) -> list[tuple[Any, Exception | None]]:
    outcomes: list[tuple[Any, Exception | None]] = []
    for function in functions:
        try:
            outcomes.append((function(), None))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            outcomes.append((None, error))
    return outcomes
