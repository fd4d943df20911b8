"""How many calls are under way, and when the next one may start."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from mdagents_llm.chat import CallLabels, ChatMessage, ChatReply, ChatRequest
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.layers.gate import Connections, Gate, Rate
from mdagents_llm.layers.retry import Retry, RetryPolicy
from tests.support.function_model import FunctionModel, text_reply

REQUEST = ChatRequest(messages=(ChatMessage("user", "x" * 400),), max_tokens=50)


class Seconds:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Held:
    """A model whose replies a test releases one by one."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.under_way: list[str] = []
        self._of_role: list[tuple[str, asyncio.Future[None]]] = []
        self.replies: list[asyncio.Future[None]] = []

    async def generate(self, request: ChatRequest, on_text: object = None) -> ChatReply:
        role = request.labels.role
        self.arrived.append(role)
        self.under_way.append(role)
        reply = asyncio.get_running_loop().create_future()
        self.replies.append(reply)
        self._of_role.append((role, reply))
        await reply
        self.under_way.remove(role)
        return text_reply("done")

    def release_role(self, role: str) -> None:
        """The first call of a role that is under way ends."""
        place = next(n for n, (of, _) in enumerate(self._of_role) if of == role)
        _, reply = self._of_role.pop(place)
        self.replies.remove(reply)
        reply.set_result(None)

    def release(self) -> None:
        self.replies.pop(0).set_result(None)

    def forget_cancelled(self) -> None:
        self.replies = [reply for reply in self.replies if not reply.cancelled()]


async def settle() -> None:
    """Let everything run that can run."""
    for _ in range(20):
        await asyncio.sleep(0)


def asked(gate: Gate, role: str = "expert") -> asyncio.Future[ChatReply]:
    labels = CallLabels(role=role, background=role == "summarizer")
    request = replace(REQUEST, labels=labels)
    return asyncio.ensure_future(gate.generate(request))


async def test_calls_are_held_back_and_a_cancelled_one_gives_way() -> None:
    connections, model = Connections(2, Seconds()), Held()
    gate = Gate(model, connections, Seconds())
    calls = [asked(gate) for _ in range(5)]
    await settle()
    assert (connections.in_flight, connections.waiting) == (2, 3)
    calls[4].cancel()
    calls[0].cancel()
    await settle()
    assert (connections.in_flight, connections.waiting) == (2, 1)
    model.forget_cancelled()
    for _ in range(3):
        model.release()
        await settle()
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(reply, ChatReply) for reply in done) == 3
    assert (connections.in_flight, connections.waiting) == (0, 0)


async def all_replies(model: Held, calls: list[asyncio.Future[ChatReply]]) -> None:
    while model.replies:
        model.release()
        await settle()
    await asyncio.gather(*calls)


async def test_every_fifth_connection_is_for_background_calls_while_a_team_waits() -> None:
    model = Held()
    gate = Gate(model, Connections(1, Seconds()), Seconds())
    calls = [asked(gate) for _ in range(12)] + [asked(gate, "summarizer") for _ in range(4)]
    await settle()
    await all_replies(model, calls)
    team, summary = ["expert"] * 4, ["summarizer"]
    assert model.arrived == [*team, *summary, *team, *summary, *team, *summary, *summary]


async def test_background_calls_get_all_that_no_team_waits_for() -> None:
    model = Held()
    connections = Connections(4, Seconds())
    gate = Gate(model, connections, Seconds())
    calls = [asked(gate, "summarizer") for _ in range(3)] + [asked(gate)]
    await settle()
    assert connections.in_flight == 4
    await all_replies(model, calls)


async def test_slow_background_calls_do_not_pile_up_while_a_team_waits() -> None:
    model = Held()
    connections = Connections(10, Seconds())
    gate = Gate(model, connections, Seconds())
    team = [asked(gate) for _ in range(60)]
    slow = [asked(gate, "summarizer") for _ in range(30)]
    await settle()
    for _ in range(40):  # only calls of the team end
        model.release_role("expert")
        await settle()
    assert model.under_way.count("summarizer") == 2, "a fifth"
    assert model.under_way.count("expert") == 8
    while model.under_way:
        model.release_role(model.under_way[0])
        await settle()
    await asyncio.gather(*team, *slow)
    assert connections.in_flight == 0


async def test_an_idle_slot_of_a_shared_machine_is_not_given_away() -> None:
    model = Held()
    connections = Connections(2, Seconds(), share_one_machine=True)
    gate = Gate(model, connections, Seconds())
    summaries = [asked(gate, "summarizer") for _ in range(3)]
    await settle()
    assert model.under_way == ["summarizer"] * 2, "no team is at work"
    while model.under_way:
        model.release_role("summarizer")
        await settle()
    team = asked(gate)
    summaries.append(asked(gate, "summarizer"))
    await settle()
    assert model.under_way == ["expert"], "the other slot would slow it down"
    for _ in range(4):
        following = asked(gate)
        model.release_role("expert")
        await settle()
        await team
        team = following
    assert sorted(model.under_way) == ["expert", "summarizer"], "its turn after four of a team"
    while model.under_way:
        model.release_role(model.under_way[0])
        await settle()
    await asyncio.gather(team, *summaries)
    assert (connections.in_flight, connections.waiting) == (0, 0)


async def test_a_connection_is_not_held_for_a_call_to_another_endpoint() -> None:
    one, other = Connections(1, Seconds()), Connections(1, Seconds())
    model = Held()
    gate = Gate(model, other, Seconds())
    async with one.reserve(lambda: (0.0,)):
        assert one.in_flight == 1
        call = asked(gate, "summarizer")
        await settle()
        assert (one.in_flight, other.in_flight) == (0, 1)
        await all_replies(model, [call])
    assert (one.in_flight, other.in_flight) == (0, 0)


async def test_the_most_urgent_background_call_is_let_in_first() -> None:
    connections = Connections(1, Seconds())
    urgencies = {"later": 2.0, "never mind": 3.0, "soon": 1.0}
    let_in: list[str] = []

    async def work(name: str) -> None:
        async with connections.reserve(lambda: (urgencies[name],)):
            let_in.append(name)

    await connections.acquire(background=False)
    tasks = [asyncio.ensure_future(work(name)) for name in urgencies]
    await settle()
    urgencies["never mind"] = 0.0  # something has happened there meanwhile
    connections.release(background=False)
    await asyncio.gather(*tasks)
    assert let_in == ["never mind", "soon", "later"]
    assert connections.in_flight == 0


async def test_the_next_background_call_takes_a_reserved_connection_over() -> None:
    model = Held()
    connections = Connections(1, Seconds())
    gate = Gate(model, connections, Seconds())
    async with connections.reserve(lambda: (0.0,)):
        first = asked(gate, "summarizer")
        await settle()
        assert (connections.in_flight, connections.waiting) == (1, 0)
        second = asked(gate, "summarizer")
        await settle()
        assert (connections.in_flight, connections.waiting) == (1, 1)
        await all_replies(model, [first, second])
    assert connections.in_flight == 0, "it was taken over, and is not given back twice"


def overloaded(retry_after: float | None = None) -> ProviderError:
    return ProviderError("429", kind=ErrorKind.RATE_LIMIT, status=429, retry_after=retry_after)


def test_a_single_429_slows_nobody_else_down() -> None:
    clock = Seconds()
    connections = Connections(16, clock)
    for error in [None, overloaded(5.0), None, None, None, overloaded(5.0), None, None]:
        connections.note(error, started=clock.now)
    assert connections.allowed == 16
    assert connections.cooling() == 0


def test_a_429_here_and_there_is_no_storm() -> None:
    clock = Seconds()
    connections = Connections(16, clock)
    for number in range(300):  # at random, five of ten in a row are likely among so many
        bad = number % 5 == 0 or number % 30 < 4
        connections.note(overloaded(1.0) if bad else None, started=clock.now)
    assert connections.allowed == 16
    assert connections.cooling() == 0


def test_a_storm_halves_once_per_round_trip_and_cools_down_for_all() -> None:
    clock = Seconds()
    connections = Connections(16, clock)
    sent = clock.now
    clock.now += 1
    for _ in range(16):  # all that were under way when the storm broke
        connections.note(overloaded(3.0), started=sent)
    assert connections.allowed == 8
    assert connections.cooling() == pytest.approx(3.0)
    clock.now += 4
    for _ in range(50):
        connections.note(overloaded(), started=clock.now)
    assert connections.allowed == 4, "never under a quarter"


def test_successes_let_it_grow_again_up_to_the_ceiling() -> None:
    clock = Seconds()
    connections = Connections(8, clock)
    for _ in range(15):
        connections.note(overloaded(0.0), started=clock.now)
    assert connections.allowed == 4
    for _ in range(4 + 1):
        connections.note(None, started=clock.now)
    assert connections.allowed == 5, "one more per round trip"
    for _ in range(100):
        connections.note(None, started=clock.now)
    assert connections.allowed == 8


async def test_nothing_starts_while_the_endpoint_cools_down() -> None:
    loop = asyncio.get_running_loop()
    connections, model = Connections(4, loop.time), Held()
    gate = Gate(model, connections, loop.time)
    for _ in range(15):
        connections.note(overloaded(0.05), started=loop.time())
    call = asked(gate)
    await settle()
    assert model.arrived == []
    started = loop.time()
    while not model.arrived:
        await asyncio.wait([call], timeout=0.01)
    assert loop.time() - started < 2
    model.release()
    await call


def test_a_rate_per_minute_with_a_second_of_burst() -> None:
    rate = Rate(60.0)
    rate.use(1, now=0.0)
    assert rate.wait(now=0.0) == 0
    rate.use(1, now=0.0)
    assert rate.wait(now=0.0) == pytest.approx(1.0)
    assert rate.wait(now=0.4) == pytest.approx(0.6)
    rate.use(100, now=2.0)
    assert rate.wait(now=2.0) == pytest.approx(99.0)
    rate.use(-90, now=2.0)
    assert rate.wait(now=2.0) == pytest.approx(9.0)


def test_tokens_are_counted_as_the_endpoint_counts_them() -> None:
    clock = Seconds()
    connections = Connections(4, clock, tokens_per_minute=600.0)
    connections.correct(estimated=100, used=130)
    connections.correct(estimated=100, used=100)
    assert connections.pause() == pytest.approx(30 / 10 - 1)


async def test_a_reply_counts_with_its_tokens_and_lets_the_connections_grow() -> None:
    clock = Seconds()
    connections = Connections(8, clock, tokens_per_minute=600.0)
    for _ in range(15):
        connections.note(overloaded(0.0), started=clock.now)
    clock.now += 1
    gate = Gate(FunctionModel(lambda _: "done"), connections, clock)
    for _ in range(5):
        clock.now += 60  # for the rate
        await gate.generate(REQUEST)
    assert connections.allowed == 5
    assert connections.pause() == pytest.approx(15 / 10 - 1), "10 + 5 tokens, not the estimate"


async def test_requests_per_minute_hold_calls_back() -> None:
    clock = Seconds()
    connections = Connections(100, clock, requests_per_minute=60.0)
    model = Held()
    calls = [asked(Gate(model, connections, clock)) for _ in range(10)]
    await settle()
    assert len(model.arrived) == 2, "one, and one second's worth of burst"
    clock.now += 3.0
    model.release()
    await settle()
    assert len(model.arrived) == 4
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


Answer = Callable[[ChatRequest], str]


def failing(*errors: ErrorKind | None) -> FunctionModel:
    left = iter(errors)

    def answer(request: ChatRequest) -> str:
        kind = next(left)
        if kind is not None:
            raise ProviderError(f"it is {kind}", kind=kind)
        return "fine"

    return FunctionModel(answer)


async def outcomes(model: FunctionModel, calls: int) -> list[str]:
    once = RetryPolicy(max_retries=0)
    retry = Retry(model, once, name="openai/gpt", rng=random.Random(0), monotonic=time.monotonic)
    result = []
    for _ in range(calls):
        try:
            result.append((await retry.generate(REQUEST)).text)
        except EndpointDown as error:
            result.append(str(error))
        except ProviderError:
            result.append("error")
    return result


AUTH, QUOTA, SERVER = ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SERVER


async def test_a_model_that_never_replied_is_given_up_at_once() -> None:
    assert await outcomes(failing(AUTH), 1) == ["openai/gpt is out of reach: it is auth"]


async def test_a_model_that_replied_is_given_up_after_three_in_a_row() -> None:
    model = failing(None, QUOTA, QUOTA, None, QUOTA, QUOTA, QUOTA)
    *before, last = await outcomes(model, 7)
    assert before == ["fine", "error", "error", "fine", "error", "error"]
    assert last == "openai/gpt is out of reach: it is quota"


async def test_what_can_get_better_never_breaks_a_run() -> None:
    assert await outcomes(failing(*[SERVER] * 20), 20) == ["error"] * 20
