"""An endpoint whose limits are shared with other processes."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random

import pytest

from mdagents_llm.layers.gate import Connections
from tests.support.virtual_time import virtual_time

RPM = 600.0


@virtual_time
async def test_a_share_of_nothing_lets_nothing_in_and_calls_under_way_finish() -> None:
    connections = Connections(4, asyncio.get_running_loop().time)
    await connections.acquire(background=False)
    connections.share(0, 4)
    waiting = asyncio.ensure_future(connections.acquire(background=False))
    await asyncio.sleep(5)
    connections.release(background=False)
    await asyncio.sleep(5)
    assert not waiting.done()
    connections.share(1, 4)
    await waiting
    assert (connections.in_flight, connections.allowed) == (1, 1)


@virtual_time
async def test_another_process_was_told_to_wait() -> None:
    loop = asyncio.get_running_loop()
    connections = Connections(4, loop.time)
    connections.cool_down(3.0)
    await connections.acquire(background=False)
    assert loop.time() >= 3.0
    connections.cool_down(-1.0)
    assert connections.cooling() == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_rates_never_add_up_to_more_than_the_limit(seed: int) -> None:
    @virtual_time
    async def run() -> list[float]:
        loop, chance, sent = asyncio.get_running_loop(), Random(seed), []
        processes = [Connections(100, loop.time, requests_per_minute=RPM) for _ in range(3)]
        for process in processes:
            process.share(0, 100)

        async def call(process: Connections) -> None:
            while True:
                await process.acquire(background=False)
                sent.append(loop.time())
                process.release(background=False)

        calls = [asyncio.ensure_future(call(process)) for process in processes for _ in range(3)]
        for _ in range(120):
            left = 100
            for process in chance.sample(processes, 3):
                part = chance.randint(0, left)
                process.share(part, 100)
                left -= part
            await asyncio.sleep(1)
        for one in calls:
            one.cancel()
        return sent

    recent: deque[float] = deque()
    for moment in run():
        recent.append(moment)
        while recent[0] <= moment - 60:
            recent.popleft()
        assert len(recent) <= RPM + RPM / 60 + 3
