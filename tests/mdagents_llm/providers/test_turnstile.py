"""Replies that arrive together enter in groups, and none is held back for good."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing

import httpx2
import pytest

from mdagents_llm.providers.picture_body import Pieces
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.turnstile import Turnstile
from mdagents_llm.wire import Endpoint
from tests.fake_provider import FakeProvider

GROUP = 16
BODY: Pieces = [b'{"model": "m", "messages": [{"role": "user", "content": "?"}]}']


def at(provider: FakeProvider) -> tuple[Endpoint, httpx2.URL]:
    """Return the endpoint of the provider, and the URL of its chat completions."""
    endpoint = Endpoint(provider.openai_base_url, "k", attempt_timeout=20)
    return endpoint, httpx2.URL(f"{endpoint.base_url}/chat/completions")


async def steps(count: int) -> None:
    """Give way to all other tasks a number of times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_group_has_finished_before_the_next_enters() -> None:
    turnstile, inside, most, finished = Turnstile(), 0, 0, []

    async def use(number: int) -> None:
        nonlocal inside, most
        await turnstile.enter()
        inside += 1
        most = max(most, inside)
        await steps(1 + number % 10)
        inside -= 1
        finished.append(number)

    await asyncio.gather(*map(use, range(200)))
    assert most == GROUP
    assert [number // GROUP for number in finished] == [number // GROUP for number in range(200)]


async def test_few_replies_enter_at_once() -> None:
    turnstile = Turnstile()
    for _ in range(5):
        entering = [asyncio.ensure_future(turnstile.enter()) for _ in range(GROUP)]
        await steps(1)
        assert all(task.done() for task in entering)
        await steps(2 * GROUP)


@pytest.mark.parametrize("seed", range(20))
async def test_replies_cancelled_at_random_moments_hold_back_no_other(seed: int) -> None:
    draw, turnstile, entered = random.Random(seed), Turnstile(), set()

    async def use(number: int) -> None:
        await steps(draw.randrange(30))
        await turnstile.enter()
        entered.add(number)

    using = [asyncio.ensure_future(use(number)) for number in range(150)]
    cancelled = set(draw.sample(range(150), draw.choice([1, 50, 149])))
    for number in cancelled:
        await steps(draw.randrange(3))
        using[number].cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(*using, return_exceptions=True)
    assert entered >= set(range(150)) - cancelled
    async with asyncio.timeout(10):
        await turnstile.enter()


async def test_next_requests_are_sent_while_replies_wait(provider: FakeProvider) -> None:
    events = []

    async def ask_twice(pool: Pool) -> None:
        for _ in range(2):
            events.append("sent")
            response = await pool.post(url, {"content-type": "application/json"}, BODY)
            events.append("arrived")
            assert b"choices" in b"".join([piece async for piece in response.stream])
            await response.aclose()
            await steps(5)  # as in a team, until the next request

    def wait_for_replies() -> None:
        while provider.in_flight:
            time.sleep(0.01)

    endpoint, url = at(provider)
    hold = provider.hold()
    async with aclosing(Pool(endpoint)) as pool:
        asking = [asyncio.ensure_future(ask_twice(pool)) for _ in range(60)]
        await asyncio.to_thread(hold.wait, 60)
        hold.release()
        wait_for_replies()  # while nothing is read, so that all of them arrive at once
        await asyncio.gather(*asking)
    assert events.index("sent", 60) <= 60 + GROUP


async def test_a_request_cancelled_while_its_reply_waits_frees_its_connection(
    provider: FakeProvider,
) -> None:
    endpoint, url = at(provider)
    async with aclosing(Pool(endpoint)) as pool:
        for moment in range(0, 60, 4):
            posts = [asyncio.ensure_future(pool.post(url, {}, BODY)) for _ in range(40)]
            await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
            await steps(moment)
            for post in posts:
                post.cancel()
            for response in await asyncio.gather(*posts, return_exceptions=True):
                if not isinstance(response, BaseException):
                    await response.aclose()
        response = await pool.post(url, {"content-type": "application/json"}, BODY)
        assert response.status_code == 200
        await response.aclose()
