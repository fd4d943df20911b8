"""Functions that wait for the disk are called in a thread, in order."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from mdagents_llm.files import in_thread
from mdagents_llm.files.in_thread import InThread


async def test_functions_are_called_in_order_in_a_thread() -> None:
    disk, order, threads = InThread(), list[int](), set[int]()

    def note(number: int) -> int:
        order.append(number)
        threads.add(threading.get_ident())
        return number * number

    results = await asyncio.gather(*(disk.call(partial(note, n)) for n in range(100)))
    assert results == [n * n for n in range(100)]
    assert order == list(range(100))
    assert threading.get_ident() not in threads


async def test_an_error_is_raised_to_its_caller_alone() -> None:
    disk = InThread()

    def fail() -> None:
        raise OSError("full")

    outcomes = await asyncio.gather(
        disk.call(lambda: 1), disk.call(fail), disk.call(lambda: 2), return_exceptions=True
    )
    assert outcomes[0] == 1
    assert isinstance(outcomes[1], OSError)
    assert outcomes[2] == 2


async def test_nobody_waits_in_vain_when_the_program_ends() -> None:
    disk, going = InThread(), threading.Event()
    waiting = [disk.call(going.wait) for _ in range(3)]
    await asyncio.sleep(0)
    (calling,) = in_thread._TASKS  # noqa: SLF001 - as `asyncio.run` cancels it at its end
    late = disk.call(going.is_set)
    await asyncio.sleep(0)
    calling.cancel()
    going.set()
    outcomes = await asyncio.gather(*waiting, late, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    assert await disk.call(going.is_set)


async def test_a_function_is_called_although_its_caller_was_cancelled() -> None:
    disk, called = InThread(), threading.Event()
    going = threading.Event()
    first = disk.call(going.wait)
    second = disk.call(called.set)
    await asyncio.sleep(0)
    second.cancel()
    going.set()
    await first
    with pytest.raises(asyncio.CancelledError):
        await second
    assert await disk.call(called.is_set)
