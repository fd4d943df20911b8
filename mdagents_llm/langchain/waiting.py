"""An event loop in a thread, on which callers without one of their own wait for a coroutine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the thread's loop and return what it returns.

    Any thread may wait, also one that runs a loop itself, which then stands still. All wait on the
    same loop, so that their calls share connections. What interrupts the wait ends the coroutine.

    Raises:
        RuntimeError: The loop's own thread asks, which could not wait for itself.
    """
    try:
        is_there = asyncio.get_running_loop() is _loop()
    except RuntimeError:
        is_there = False
    if is_there:
        coroutine.close()
        raise RuntimeError("a model that is called synchronously cannot call so itself: await it")
    future = start(coroutine)
    try:
        return future.result()
    except BaseException:  # Ctrl-C, for example: nobody waits for it any more
        future.cancel()
        raise


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine in the thread's loop without waiting for it, from any thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="LangChain calls", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # a child process has the loop, but not its thread
    os.register_at_fork(after_in_child=_loop.cache_clear)
