"""Replies that arrive together are admitted in groups, and none is held back for good."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from mdagents_llm.chat import ChatReply, ChatRequest, OnText
from mdagents_llm.clock import Clock
from mdagents_llm.errors import ErrorKind, LimitExceeded, ProviderError, StorageError
from mdagents_llm.layers.attempt import Attempt
from mdagents_llm.layers.gate import Connections, Gate
from mdagents_llm.layers.hedge import Hedge
from mdagents_llm.layers.turnstile import Turnstile, turnstile_of
from mdagents_llm.ledger import CallRow, Ledger
from tests.mdagents_llm.layers.test_layers import REQUEST, in_turn
from tests.support.function_model import text_reply

GROUP = 16


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


async def test_a_waiter_cancelled_in_any_state_holds_back_no_other() -> None:
    """States in which semaphores lost a place: cpython 90155, asyncio 270 and 393, anyio 947."""
    was_cancelled = []
    for moment in range(2 * GROUP):
        turnstile = Turnstile()
        entering = [asyncio.ensure_future(turnstile.enter()) for _ in range(3 * GROUP)]
        first = entering[GROUP]  # of the second group
        await steps(moment)
        was_cancelled.append(first.cancel())  # before it waits, while it does, when it is admitted
        async with asyncio.timeout(10):
            await asyncio.gather(*entering, return_exceptions=True)
        assert [task.cancelled() for task in entering].count(True) == was_cancelled[-1]
    assert was_cancelled[0]
    assert not was_cancelled[-1]


async def test_turns_that_take_long_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, now = asyncio.get_running_loop(), 100.0
    monkeypatch.setattr(loop, "time", lambda: now)
    turnstile = Turnstile()
    entering = [asyncio.ensure_future(turnstile.enter()) for _ in range(5 * GROUP)]
    await steps(2)
    for group in range(1, 6):
        assert sum(task.done() for task in entering) == group * GROUP
        now += 0.03
        await steps(2)


async def test_all_are_admitted_once_one_has_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, now = asyncio.get_running_loop(), 100.0
    monkeypatch.setattr(loop, "time", lambda: now)
    turnstile = Turnstile()
    entering = [asyncio.ensure_future(turnstile.enter()) for _ in range(200)]
    await steps(2)
    now += 0.3
    await steps(3)
    assert all(task.done() for task in entering)


def attempting(replies: int, ledger: Ledger, clock: Clock | None = None) -> Attempt:
    """Return a model that replies at once."""
    model = in_turn(*[text_reply("x")] * replies)
    clock = clock or Clock()
    return Attempt(model, ledger, provider="p", model="m", price=lambda _: None, clock=clock)


async def test_next_requests_are_sent_while_replies_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 100.0)  # no turn takes long
    events, model = [], attempting(60, Ledger(lambda _: None))

    async def ask() -> None:
        await model.generate(REQUEST)
        events.append("replied")
        await steps(5)  # as in a team, until the next request
        events.append("sends")

    await asyncio.gather(*(ask() for _ in range(60)))
    assert events.index("sends") == GROUP


async def test_the_latency_of_a_reply_is_that_of_the_endpoint() -> None:
    rows: list[CallRow] = []
    now = 0.0
    clock = Clock(monotonic=lambda: now)
    model = attempting(60, Ledger(rows.append), clock)

    async def ask() -> float:
        nonlocal now
        reply = await model.generate(REQUEST)
        now += 1.0  # which the processor takes to use it
        return reply.latency

    assert set(await asyncio.gather(*(ask() for _ in range(60)))) == {0.0}
    assert {row.latency for row in rows} == {0.0}


async def test_a_reply_that_is_cancelled_while_it_waits_is_booked() -> None:
    rows: list[CallRow] = []
    model = attempting(60, Ledger(rows.append))
    asking = [asyncio.ensure_future(model.generate(REQUEST)) for _ in range(60)]
    await steps(2)
    for task in asking:
        task.cancel()
    ended = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(end, asyncio.CancelledError) for end in ended) == 60 - GROUP
    assert len(rows) == 60
    assert all(row.replied and row.usage.total_tokens > 0 for row in rows)


def test_a_model_is_used_in_one_event_loop_after_another() -> None:
    model = attempting(200, Ledger(lambda _: None))

    async def ask() -> None:
        async with asyncio.timeout(10):
            await asyncio.gather(*(model.generate(REQUEST) for _ in range(40)))

    for _ in range(5):
        asyncio.run(ask())


class Sending:
    """A model that takes what a function does to send a request."""

    def __init__(self, send: Callable[[], Awaitable[None]]) -> None:
        self._send = send

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        await self._send()
        return text_reply("x")


def gated(
    send: Callable[[], Awaitable[None]],
    ledger: Ledger,
    connections: Connections,
    may_send: Callable[[], None] | None = None,
) -> Gate:
    """Return a model behind the connections of its endpoint, whose attempts are booked."""
    attempt = Attempt(
        Sending(send), ledger, provider="p", model="m", price=lambda _: None, clock=Clock()
    )
    return Gate(attempt, connections, Clock().monotonic, may_send=may_send)


async def test_the_next_call_is_sent_before_a_reply_is_booked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 100.0)  # no turn takes long
    events: list[str] = []
    connections = Connections(GROUP + 1, Clock().monotonic)

    async def send() -> None:
        events.append("sent")
        await asyncio.sleep(0 if events.count("sent") <= connections.limit else 3600)

    gate = gated(send, Ledger(lambda _: events.append("booked")), connections)
    asking = [asyncio.ensure_future(gate.generate(REQUEST)) for _ in range(3 * GROUP)]
    await steps(4)
    assert events.count("booked") == GROUP  # the last reply waits for the second group
    assert events.count("sent") == 2 * connections.limit
    assert connections.in_flight == connections.limit
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert connections.in_flight == 0


async def test_a_hedge_does_not_take_the_connection_of_a_reply_that_waits() -> None:
    sent = 0

    async def send() -> None:
        nonlocal sent
        sent += 1
        await steps(6)  # meanwhile, the second attempt waits for the connection

    async def at_once(_: float) -> None:
        await steps(1)

    connections = Connections(1, Clock().monotonic)
    hedge = Hedge(gated(send, Ledger(), connections), 1.0, sleep=at_once)
    asking = asyncio.ensure_future(hedge.generate(REQUEST))
    await steps(4)
    turnstile = turnstile_of(asyncio.get_running_loop())
    entering = [asyncio.ensure_future(turnstile.enter()) for _ in range(3 * GROUP)]
    await asyncio.gather(asking, *entering)
    assert sent == 1
    assert (connections.in_flight, connections.waiting) == (0, 0)


async def test_a_limit_is_exceeded_by_no_more_than_the_calls_in_progress() -> None:
    booked: list[CallRow] = []
    connections, limit = Connections(3 * GROUP, Clock().monotonic), 2 * GROUP + 5

    def check() -> None:
        if len(booked) >= limit:
            raise LimitExceeded(f"{limit} calls")

    async def send() -> None:
        await asyncio.sleep(0)  # all replies arrive at the same moment

    gate = gated(send, Ledger(booked.append), connections, check)
    asking = [asyncio.ensure_future(gate.generate(REQUEST)) for _ in range(20 * GROUP)]
    ended = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(end, LimitExceeded) for end in ended) == len(asking) - len(booked)
    assert limit <= len(booked) < limit + connections.limit
    assert connections.in_flight == 0


@pytest.mark.parametrize("is_limited", [False, True])
@pytest.mark.parametrize("seed", range(20))
async def test_each_connection_is_returned_once_whatever_ends_a_call(
    seed: int, is_limited: bool
) -> None:
    draw, most = random.Random(seed), 0
    connections = Connections(7, Clock().monotonic)

    async def send() -> None:
        nonlocal most
        most = max(most, connections.in_flight)
        await steps(draw.randrange(5))
        if draw.random() < 0.2:
            raise ProviderError("no reply", kind=ErrorKind.SERVER)

    def book(row: CallRow) -> None:
        if draw.random() < 0.2:
            raise StorageError("the disk is full")

    gate = gated(send, Ledger(book), connections, (lambda: None) if is_limited else None)
    asking = [asyncio.ensure_future(gate.generate(REQUEST)) for _ in range(80)]
    for number in draw.sample(range(80), 30):
        await steps(draw.randrange(4))
        asking[number].cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(*asking, return_exceptions=True)
    assert (connections.in_flight, connections.waiting, most) == (0, 0, 7)
