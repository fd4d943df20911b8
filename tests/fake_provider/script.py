"""What a test has told the fake provider to do: replies for some requests, faults, and holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from tests.fake_provider.chat_api import SeenRequest
from tests.fake_provider.faults import Fault

Predicate = Callable[[SeenRequest], bool]
Match = Predicate | str | None
"""Which requests are meant: a predicate, a text that a message contains, or None for all."""
Scripted = str | dict[str, Any]
"""A reply: text as it is, or fields of a structured reply, which the filler completes."""
Reply = Scripted | Callable[[SeenRequest], Scripted]


def predicate_of(match: Match) -> Predicate:
    """Return a predicate for any form of `Match`."""
    if match is None:
        return lambda request: True
    if isinstance(match, str):
        return lambda request: match in request.text
    return match


Effect = TypeVar("Effect", Reply, Fault)


@dataclass
class Rule(Generic[Effect]):
    """A scripted reply, or a fault, for the next requests that match.

    Attributes:
        predicate: Which requests it is for.
        effect: The reply, a function that makes it, or the fault.
        left: How many more requests it is for; None: all.
    """

    predicate: Predicate
    effect: Effect
    left: int | None

    def strikes(self, request: SeenRequest) -> bool:
        """Tell whether the request is one of those, and count it if so."""
        if self.left == 0 or not self.predicate(request):
            return False
        if self.left is not None:
            self.left -= 1
        return True


class Hold:
    """Keeps matching requests waiting until the test releases them.

    With it a test can look at requests in flight without sleeping. Use it as a context manager, or
    call `release`. From a coroutine, wait by `await asyncio.to_thread(hold.wait, 3)`.
    """

    def __init__(self, predicate: Predicate, loop: asyncio.AbstractEventLoop) -> None:
        self._predicate = predicate
        self._loop = loop
        self._released = asyncio.Event()
        self._arrived = threading.Condition()
        self._count = 0
        self.waiting = 0
        """Number of requests that are waiting now, without those whose client has left."""

    def wait(self, count: int = 1, timeout: float = 60.0) -> None:
        """Block until `count` requests have arrived, those that have gone away included.

        Raises:
            TimeoutError: They did not within `timeout` seconds.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._count >= count, timeout):
                raise TimeoutError(f"{self._count} of {count} held requests after {timeout} s")

    def release(self) -> None:
        """Let go of all that waits; later requests pass at once."""
        self._loop.call_soon_threadsafe(self._released.set)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    async def keep(self, request: SeenRequest) -> None:
        """Wait for the release if the request is one of those held. (The server calls this.)"""
        if self._released.is_set() or not self._predicate(request):
            return
        with self._arrived:
            self._count += 1
            self.waiting += 1
            self._arrived.notify_all()
        try:
            await self._released.wait()
        finally:
            self.waiting -= 1
