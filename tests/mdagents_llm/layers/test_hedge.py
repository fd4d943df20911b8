"""A second attempt beside one that is slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from mdagents.runs.config import RunConfig
from mdagents.runs.identity import identity
from mdagents.runs.options import read_config, read_options
from mdagents_llm.chat import CallLabels, ChatMessage, ChatReply, ChatRequest, OnText, TokenUsage
from mdagents_llm.clock import Clock
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import ConfigError, ErrorKind, ProviderError, StorageError
from mdagents_llm.layers.attempt import Attempt
from mdagents_llm.layers.gate import Connections, Gate
from mdagents_llm.layers.hedge import Hedge
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.llm_registry import ModelRegistry
from tests.fake_provider import FakeProvider, Hold
from tests.support.function_model import text_reply

REQUEST = ChatRequest(
    messages=(ChatMessage("user", "A or B?"),), max_tokens=500, labels=CallLabels(role="expert")
)


def failure(kind: ErrorKind = ErrorKind.SERVER, retry_after: float | None = None) -> ProviderError:
    return ProviderError(kind.value, kind=kind, retry_after=retry_after)


@dataclass
class Sent:
    """A call that has reached the model and waits for what the test lets it come to."""

    on_text: OnText | None
    end: asyncio.Future[ChatReply] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def reply(self, text: str) -> None:
        self.end.set_result(text_reply(text))

    def fail(self, error: Exception) -> None:
        self.end.set_exception(error)

    def stream(self, text: str) -> None:
        assert self.on_text is not None
        self.on_text(text)


class Endpoint:
    """A model whose calls a test brings to an end."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.under_way = 0
        self.clean_up: asyncio.Event | None = None
        """Awaited by calls that are cancelled."""

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        call = Sent(on_text)
        self.sent.append(call)
        self.under_way += 1
        try:
            return await call.end
        except asyncio.CancelledError:
            if self.clean_up is not None:
                await self.clean_up.wait()
            raise
        finally:
            self.under_way -= 1


class Delay:
    """The delay before a second attempt, which ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self._over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.begun.append(seconds)
        await self._over.wait()

    def end(self) -> None:
        self._over.set()


@dataclass
class Bench:
    """A hedged model, with all layers between it and its endpoint."""

    limit: int = 16
    endpoint: Endpoint = field(default_factory=Endpoint)
    delay: Delay = field(default_factory=Delay)
    rows: list[CallRow] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = Clock()
        self.connections = Connections(self.limit, clock.monotonic)
        attempt = Attempt(
            self.endpoint,
            Ledger(self.rows.append),
            provider="p",
            model="m",
            price=lambda _: None,
            clock=clock,
        )
        self.model = Hedge(Gate(attempt, self.connections, clock.monotonic), 8.0, sleep=self.delay)

    async def ask(self, *, background: bool = False) -> asyncio.Future[ChatReply]:
        request = replace(REQUEST, labels=replace(REQUEST.labels, background=background))
        call = asyncio.ensure_future(self.model.generate(request, self.texts.append))
        await settle()
        return call

    async def ask_twice(self) -> tuple[asyncio.Future[ChatReply], Sent, Sent]:
        """A call of which both attempts are under way."""
        call = await self.ask()
        await self.end_delay()
        first, second = self.endpoint.sent
        return call, first, second

    async def end_delay(self) -> None:
        self.delay.end()
        await settle()

    @property
    def outcomes(self) -> list[str]:
        """Collects the ledger's rows, and checks that nothing is left behind."""
        assert self.endpoint.under_way == 0
        assert (self.connections.in_flight, self.connections.waiting) == (0, 0)
        return [row.outcome for row in self.rows]


async def settle() -> None:
    """Let everything run that can run."""
    for _ in range(20):
        await asyncio.sleep(0)


async def ended(call: asyncio.Future[ChatReply]) -> ChatReply:
    """The result of a call; a call that goes on fails the test, where awaiting it would hang."""
    await settle()
    assert call.done()
    return await call


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_a_reply_in_time_is_asked_for_once(bench: Bench) -> None:
    call = await bench.ask()
    assert bench.delay.begun == [8.0]
    bench.endpoint.sent[0].reply("soon")
    assert (await ended(call)).text == "soon"
    await bench.end_delay()
    assert bench.outcomes == ["ok"]


@pytest.mark.parametrize("winner", [0, 1])
async def test_the_first_reply_wins_and_the_other_attempt_is_aborted(
    bench: Bench, winner: int
) -> None:
    call, *sent = await bench.ask_twice()
    sent[winner].reply("done")
    assert (await ended(call)).text == "done"
    assert bench.outcomes == ["ok", "aborted"], "the loser ends before the reply is given on"
    assert len(bench.endpoint.sent) == 2


async def test_both_attempts_are_booked_as_the_same_attempt_of_the_same_call(bench: Bench) -> None:
    call, _, second = await bench.ask_twice()
    second.reply("done")
    await ended(call)
    assert [(row.attempt, row.role) for row in bench.rows] == [(1, "expert")] * 2


async def test_an_attempt_that_streams_is_not_slow(bench: Bench) -> None:
    call = await bench.ask()
    bench.endpoint.sent[0].stream("Once ")
    await bench.end_delay()
    assert len(bench.endpoint.sent) == 1
    bench.endpoint.sent[0].stream("upon a time")
    bench.endpoint.sent[0].reply("Once upon a time")
    await ended(call)
    assert bench.texts == ["Once ", "upon a time"]
    assert bench.outcomes == ["ok"]


@pytest.mark.parametrize("leader", [0, 1])
async def test_the_first_text_takes_the_lead_and_ends_the_other_attempt(
    bench: Bench, leader: int
) -> None:
    call, *sent = await bench.ask_twice()
    sent[leader].stream("mine")
    sent[1 - leader].stream("too late")
    await settle()
    assert sent[1 - leader].end.cancelled()
    assert bench.endpoint.under_way == 1
    sent[leader].reply("mine")
    assert (await ended(call)).text == "mine"
    assert bench.texts == ["mine"]
    assert bench.outcomes == ["aborted", "ok"]


async def test_a_reply_at_the_moment_of_the_others_first_text_is_not_taken(bench: Bench) -> None:
    call, first, second = await bench.ask_twice()
    second.reply("without text")
    first.stream("mine")
    await settle()
    assert not call.done()
    first.reply("mine")
    assert (await ended(call)).text == "mine"
    assert bench.texts == ["mine"]


async def test_text_after_the_others_reply_is_not_heard(bench: Bench) -> None:
    call, first, second = await bench.ask_twice()
    late = first.on_text
    second.reply("done")
    assert (await ended(call)).text == "done"
    assert late is not None
    late("too late")
    assert bench.texts == []


async def test_two_replies_at_the_same_moment_are_one_reply_and_two_bookings(bench: Bench) -> None:
    call, first, second = await bench.ask_twice()
    first.reply("one")
    second.reply("two")
    assert (await ended(call)).text == "one"
    assert bench.outcomes in (["ok", "ok"], ["ok", "aborted"])


async def test_a_stream_that_breaks_off_has_nobody_to_take_over(bench: Bench) -> None:
    call, _, second = await bench.ask_twice()
    second.stream("half")
    error = failure()
    second.fail(error)
    with pytest.raises(ProviderError) as caught:
        await ended(call)
    assert caught.value is error
    assert bench.outcomes == ["aborted", "server_error"]


async def test_an_error_before_the_delay_is_over_is_left_to_retry(bench: Bench) -> None:
    call = await bench.ask()
    error = failure(ErrorKind.RATE_LIMIT, retry_after=3.0)
    bench.endpoint.sent[0].fail(error)
    with pytest.raises(ProviderError) as caught:
        await ended(call)
    assert caught.value is error
    assert error.retry_after == 3.0
    await bench.end_delay()
    assert bench.outcomes == ["rate_limit"]


@pytest.mark.parametrize("failed", [0, 1])
async def test_when_one_fails_the_other_goes_on(bench: Bench, failed: int) -> None:
    call, *sent = await bench.ask_twice()
    sent[failed].fail(failure())
    await settle()
    assert not call.done()
    sent[1 - failed].reply("done")
    assert (await ended(call)).text == "done"
    assert bench.outcomes == ["server_error", "ok"]


@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize(
    ("pauses", "pause"),
    [((None, None), None), ((1.0, 4.0), 4.0), ((4.0, 1.0), 4.0), ((None, 0.0), 0.0)],
)
async def test_when_both_fail_the_error_is_the_firsts_and_the_pause_the_longer_one(
    bench: Bench, earlier: int, pauses: tuple[float | None, float | None], pause: float | None
) -> None:
    call, *sent = await bench.ask_twice()
    errors = [failure(retry_after=pauses[0]), failure(ErrorKind.OVERLOADED, pauses[1])]
    for index in (earlier, 1 - earlier):
        sent[index].fail(errors[index])
        await settle()
    with pytest.raises(ProviderError) as caught:
        await ended(call)
    assert caught.value is errors[0]
    assert caught.value.retry_after == pause
    assert sorted(bench.outcomes) == ["overloaded", "server_error"]


@pytest.mark.parametrize("broken", [0, 1])
async def test_what_is_no_fault_of_the_endpoint_ends_both(bench: Bench, broken: int) -> None:
    call, *sent = await bench.ask_twice()
    error = StorageError("the disk is full")
    error.__cause__ = OSError(28)
    sent[broken].fail(error)
    with pytest.raises(StorageError) as caught:
        await ended(call)
    assert caught.value is error
    assert isinstance(error.__cause__, OSError)
    assert bench.outcomes == ["aborted", "aborted"]


async def test_cancelling_the_call_cancels_both_and_waits_for_them(bench: Bench) -> None:
    call, *_ = await bench.ask_twice()
    bench.endpoint.clean_up = asyncio.Event()
    call.cancel()
    await settle()
    assert not call.done()
    bench.endpoint.clean_up.set()
    with pytest.raises(asyncio.CancelledError):
        await ended(call)
    assert bench.outcomes == ["aborted", "aborted"]


async def test_cancelling_the_call_during_the_delay_leaves_nothing_behind(bench: Bench) -> None:
    call = await bench.ask()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ended(call)
    await bench.end_delay()
    assert bench.outcomes == ["aborted"]


async def test_time_in_the_queue_does_not_count() -> None:
    bench = Bench(limit=1)
    other, call = await bench.ask(), await bench.ask()
    assert bench.delay.begun == [8.0], "of the call that has the connection"
    bench.endpoint.sent[0].reply("one")
    await settle()
    assert bench.delay.begun == [8.0, 8.0]
    bench.endpoint.sent[1].reply("two")
    assert [(await ended(other)).text, (await ended(call)).text] == ["one", "two"]
    assert bench.outcomes == ["ok", "ok"]


async def test_the_second_attempt_waits_for_a_connection_of_its_own() -> None:
    bench = Bench(limit=1)
    call = await bench.ask()
    await bench.end_delay()
    assert (len(bench.endpoint.sent), bench.connections.waiting) == (1, 1)
    bench.endpoint.sent[0].reply("done")
    assert (await ended(call)).text == "done"
    assert bench.outcomes == ["ok"]


async def test_a_second_attempt_in_the_queue_is_given_up_when_the_first_fails() -> None:
    bench = Bench(limit=1)
    call = await bench.ask()
    await bench.end_delay()
    bench.endpoint.sent[0].fail(failure(ErrorKind.RATE_LIMIT, retry_after=3.0))
    with pytest.raises(ProviderError, match="rate_limit"):
        await ended(call)
    assert bench.outcomes == ["rate_limit"], "what it was told to wait is waited"


async def test_a_call_that_nobody_waits_for_is_made_once(bench: Bench) -> None:
    call = await bench.ask(background=True)
    await bench.end_delay()
    assert bench.delay.begun == []
    bench.endpoint.sent[0].stream("done")
    bench.endpoint.sent[0].reply("done")
    await ended(call)
    assert bench.texts == ["done"]
    assert bench.outcomes == ["ok"]


async def test_without_a_listener_the_endpoint_is_not_asked_to_stream(bench: Bench) -> None:
    call = asyncio.ensure_future(bench.model.generate(REQUEST))
    await settle()
    await bench.end_delay()
    assert [sent.on_text for sent in bench.endpoint.sent] == [None, None]
    bench.endpoint.sent[1].reply("done")
    assert (await ended(call)).text == "done"


@pytest.fixture
def hanging(provider: FakeProvider) -> Iterator[Hold]:
    """Keeps the first request that reaches the provider."""
    with provider.hold(lambda request: request.index == 0) as hold:
        yield hold


@pytest.fixture
async def hedging(
    hanging: Hold, make_runtime: Callable[..., Runtime]
) -> AsyncIterator[ModelRegistry]:
    """Makes a second attempt as soon as the first hangs at the provider."""

    async def until_it_hangs(seconds: float) -> None:
        await asyncio.to_thread(hanging.wait)

    registry = ModelRegistry(make_runtime(hedge_after=8.0, sleep=until_it_hangs))
    yield registry
    await registry.aclose()


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
async def test_a_hang_is_overtaken_over_http(
    provider: FakeProvider,
    hedging: ModelRegistry,
    openai_spec: ModelSpec,
    rows: list[CallRow],
    streaming: bool,
) -> None:
    texts: list[str | None] = []
    reply = await hedging.model(openai_spec).generate(REQUEST, texts.append if streaming else None)
    assert reply.text
    assert "".join(filter(None, texts)) == (reply.text if streaming else "")
    booked = {row.outcome: row.usage for row in rows}
    assert booked == {"ok": reply.usage, "aborted": TokenUsage()}
    (connections,) = hedging.connections.values()
    assert (connections.in_flight, connections.waiting) == (0, 0)
    await asyncio.to_thread(provider.wait_for_calls, 2)
    assert provider.outcomes == {"ok": 1, "client_gone": 1}


@pytest.mark.parametrize("background", [False, True])
async def test_the_registry_hedges_what_somebody_waits_for(
    make_runtime: Callable[..., Runtime], openai_spec: ModelSpec, background: bool
) -> None:
    delay = Delay()
    registry = ModelRegistry(make_runtime(hedge_after=8.0, sleep=delay))
    request = replace(REQUEST, labels=CallLabels(background=background))
    await registry.model(openai_spec).generate(request)
    assert delay.begun == ([] if background else [8.0])
    await registry.aclose()


def config(*arguments: str) -> RunConfig:
    return read_config(read_options(arguments, {}))


def test_hedging_is_off_by_default_and_changes_no_result() -> None:
    usual, hedged = config(), config("--hedge-after", "20")
    assert (usual.hedge_after, hedged.hedge_after) == (None, 20.0)
    assert identity(usual, {}, "") == identity(hedged, {}, "")
    assert usual.flags() == hedged.flags()


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ("0", "--hedge-after is 0 but must be more than 0"),
        ("-1", "--hedge-after is -1 but must be more than 0"),
        ("nan", "--hedge-after is nan but must be more than 0"),
        ("120", "--hedge-after is 120 but must be less than --attempt-timeout (120)"),
    ],
)
def test_a_delay_that_makes_no_sense_is_refused(seconds: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config("--hedge-after", seconds)
    assert message in str(caught.value)
