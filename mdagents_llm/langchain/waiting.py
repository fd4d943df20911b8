"""An event loop in a background thread that runs coroutines for synchronous callers."""

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
    """Run a coroutine in the background loop and return its result.

    Any thread may call this, even one that runs a loop itself, which then blocks. All callers use
    the same loop, so that their calls share connections. An interrupt cancels the coroutine.

    Raises:
        RuntimeError: The caller is the background thread itself, which would deadlock.
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
    except BaseException:  # Ctrl-C, for example: nobody waits for the result any more
        future.cancel()
        raise


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine in the background loop without waiting for it, from any thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="LangChain calls", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # a child process has the loop, but not its thread
    os.register_at_fork(after_in_child=_loop.cache_clear)
