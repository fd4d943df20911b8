"""Coroutines that run to completion even when their caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that must run to completion, and return its result.

    A cancellation is raised only after the coroutine has ended. A second cancellation is raised at
    once, and does not stop the coroutine.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
