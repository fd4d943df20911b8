"""An event loop without real waits: when nothing is left to do, the clock jumps ahead."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

START_MS = 1_766_600_000_000
"""When a loop begins, in ms since 1970 UTC."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Sleeps and timeouts take no time, but happen in their order and at their moment."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        return self.now


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "deadlock: a task waits for what will never happen"
            self._loop.now += timeout
        return ready


def now_ms() -> int:
    """The time of the running loop, in ms since 1970 UTC."""
    return START_MS + round(1000 * asyncio.get_running_loop().time())


def virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run an async test in a loop of virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(test(*args, **kwargs))

    return run
