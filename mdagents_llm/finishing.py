"""Work that comes to its end also when what waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Await work that must not be left in the middle, and return what it returns.

    A cancellation comes after its end. A second one does not wait, and does not stop the work.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
