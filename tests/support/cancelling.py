"""Cancels something that is awaited, at a moment that chance chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any


async def cancel_sometime(work: Coroutine[Any, Any, Any], chance: Random, steps: int) -> bool:
    """Begin with `work`, cancel it after a while, and wait for its end.

    Args:
        work: What is cancelled.
        chance: Decides when.
        steps: The most turns of the event loop until then.

    Returns:
        Whether it was ended by that, and not before.
    """
    task = asyncio.ensure_future(work)
    for _ in range(chance.randrange(steps)):
        if task.done():
            break
        # Some awaits wait for a thread or a socket, which several turns of the loop outrun.
        await asyncio.sleep(0 if chance.random() < 0.5 else 0.0005)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False
