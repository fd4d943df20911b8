"""The time limit of a question, while the process is stopped and while it is not."""

from __future__ import annotations

import asyncio

import pytest

from mdagents.runs.solver import _time_limit
from mdagents_llm.errors import LimitExceeded
from tests.support.virtual_time import VirtualTimeLoop, virtual_time


def stop(seconds: float) -> None:
    """Let time pass in which the process does nothing."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.now += seconds


async def used_until_it_ends(limit: float, *stops: float) -> float:
    """Return the seconds that a question gets which is stopped after each 20 s of work."""
    worked = 0.0

    async def work() -> None:
        nonlocal worked
        async with _time_limit(limit):
            for seconds in (*stops, *[0.0] * 100):
                await asyncio.sleep(20)
                worked += 20
                stop(seconds)
                await asyncio.sleep(0)

    with pytest.raises(LimitExceeded, match="--sample-time-limit"):
        await work()
    return worked


@virtual_time
async def test_the_time_in_which_a_process_is_stopped_does_not_count() -> None:
    # sxyazi/yazi#105 and wakepy#470: Ctrl-Z, other commands, and then `fg`.
    assert await used_until_it_ends(90) == 80
    assert await used_until_it_ends(90, 30) == 80
    assert await used_until_it_ends(90, 3600, 0, 3600) == 80
    assert await used_until_it_ends(90, 9, 9) == 60, "a busy processor"


@virtual_time
async def test_a_stop_just_before_the_limit_does_not_end_the_question() -> None:
    async def work(rest: float) -> None:
        async with _time_limit(20.5):
            await asyncio.sleep(20.2)
            stop(3600)
            await asyncio.sleep(rest)

    await work(0.2)
    with pytest.raises(LimitExceeded):
        await work(0.6)


@virtual_time
async def test_a_question_without_a_limit_takes_its_time() -> None:
    async with _time_limit(None):
        await asyncio.sleep(1e6)


@virtual_time
async def test_nothing_is_left_of_a_limit_that_was_not_reached() -> None:
    async with _time_limit(5):
        await asyncio.sleep(4)
    await asyncio.sleep(1e4)
    assert asyncio.get_running_loop().time() == pytest.approx(10_004)
