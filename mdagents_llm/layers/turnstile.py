"""Admits replies that arrive together in small groups."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

# Measured with 200 questions at once: 32 replies or 6 turns were slower, 24 turns no faster.
_GROUP = 16  # replies
_TURNS = 12  # turns of the event loop
_LONGEST_TURNS = 0.025  # seconds, for turns that are long because of other work
_LONGEST_WAIT = 0.25  # seconds, for replies that each take much CPU time


class Turnstile:
    """Admits 16 replies, and the next 16 after 12 turns of the event loop or 25 ms.

    An event loop gives each task one step in turn. If 200 replies arrive together, all of them are
    processed step by step, and all next requests are sent after the last step. The endpoint then
    idles for as long as 200 replies take, and its replies arrive together again. In groups, the
    next requests are sent while most replies still wait: those that wait for a connection at once,
    since a reply returns its connection before it enters, the others as their groups finish.

    Once a reply has waited for 0.25 s, all that wait are admitted.
    """

    def __init__(self) -> None:
        self._left = _GROUP
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()  # (since, admitted)
        self._is_turning = False

    async def enter(self) -> None:
        """Wait to be admitted, in order of arrival."""
        loop = asyncio.get_running_loop()
        if not self._is_turning:
            self._begin(loop)
        if self._left > 0:
            self._left -= 1
            return
        admitted = loop.create_future()
        self._waiting.append((loop.time(), admitted))
        await admitted

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_turning = True
        loop.call_soon(self._turn, loop, _TURNS, loop.time() + _LONGEST_TURNS)

    def _turn(self, loop: asyncio.AbstractEventLoop, turns: int, latest: float) -> None:
        """Admit the next group after a number of turns; stop if no reply waits."""
        now = loop.time()
        if turns > 1 and now < latest:
            loop.call_soon(self._turn, loop, turns - 1, latest)
            return
        self._left = _GROUP
        if not self._waiting:
            self._is_turning = False
            return
        if now - self._waiting[0][0] > _LONGEST_WAIT:
            self._left = max(_GROUP, len(self._waiting))
        while self._waiting and self._left > 0:
            _, admitted = self._waiting.popleft()
            if not admitted.done():  # else it was cancelled
                admitted.set_result(None)
                self._left -= 1
        self._begin(loop)


_turnstiles: WeakKeyDictionary[asyncio.AbstractEventLoop, Turnstile] = WeakKeyDictionary()


def turnstile_of(loop: asyncio.AbstractEventLoop) -> Turnstile:
    """Return the turnstile that all replies to an event loop share."""
    turnstile = _turnstiles.get(loop)
    if turnstile is None:
        turnstile = _turnstiles[loop] = Turnstile()
    return turnstile
