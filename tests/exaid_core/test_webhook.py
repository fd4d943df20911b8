"""Webhooks against a real server: what arrives, what is tried again, and what is given up."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import hmac
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self

import pytest
from aiohttp import web

from exaid_core.health import Failure
from exaid_core.schema.agent_summary import AgentSummary, SummaryDraft
from exaid_core.sync import SyncExaid
from exaid_core.webhook import ID_HEADER, SIGNATURE_HEADER, Webhook, WebhookError
from mdagents_llm.chat import ChatReply, ChatRequest
from mdagents_llm.errors import ConfigError
from tests.exaid_core.models import SHIFT, TOO_LONG, Slow, make_exaid, model, reply
from tests.support.function_model import FunctionModel
from tests.support.sweeps import seeds

SECRET = "a-secret-between-us"
Answer = Callable[[web.Request], web.StreamResponse]


class Receiver:
    """A server that takes posts; `answers` are its answers in turn, then 200."""

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.requests: list[tuple[web.Request, bytes]] = []
        self.answers: Iterator[Answer | int | None] = iter(())
        self.hold: asyncio.Event | None = None
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._runner.cleanup()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._runner.addresses[0][1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/key-in-the-path"

    async def _take(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request, body))
        self.posts.append(json.loads(body))
        if self.hold is not None:
            await self.hold.wait()
        answer = next(self.answers, 200)
        if answer is None:  # the connection is lost
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.Response(status=answer) if isinstance(answer, int) else answer(request)

    @property
    def numbers(self) -> list[int]:
        """Which summaries arrived, by the number in their text."""
        return [int(post["status_action"].split()[1]) for post in self.posts]

    @property
    def ids(self) -> list[str]:
        """The id of each post."""
        return [request.headers[ID_HEADER] for request, _ in self.requests]

    async def is_left(self) -> None:
        """Wait until no connection is open."""
        assert self._runner.server is not None
        async with asyncio.timeout(60):
            while self._runner.server.connections:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.001)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


class Pauses(list[float]):
    """Pauses that take no time."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


class Longest(random.Random):
    """Draws the most that can be drawn."""

    def uniform(self, a: float, b: float) -> float:
        return b


def summary(number: int) -> AgentSummary:
    return AgentSummary(status_action=f"Step {number} done.", agents=("doctor",))


async def test_a_summary_arrives_as_json(receiver: Receiver) -> None:
    await Webhook(receiver.url, case_id="case-7")(summary(1))
    ((request, body),) = receiver.requests
    assert request.method == "POST"
    assert request.headers["Content-Type"] == "application/json"
    assert SIGNATURE_HEADER not in request.headers
    sent = json.loads(body)
    assert sent.pop("case_id") == "case-7"
    assert AgentSummary.model_validate(sent) == summary(1)


async def test_half_a_character_does_not_keep_a_summary_from_arriving(receiver: Receiver) -> None:
    await Webhook(receiver.url)(AgentSummary(remarks=("half of \ud83d",)))
    assert receiver.posts[0]["remarks"] == ["half of \ufffd"]


async def test_a_secret_signs_the_body(receiver: Receiver) -> None:
    await Webhook(receiver.url, secret=SECRET)(summary(1))
    ((request, body),) = receiver.requests
    expected = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE_HEADER] == f"sha256={expected}"
    assert SECRET not in str(request.headers)


async def test_an_id_is_that_of_one_post_in_all_its_attempts(receiver: Receiver) -> None:
    """Parts of a long text have no sequence numbers, and two sessions may have one case id."""
    receiver.answers = iter([500, None, 200, 429, 200])
    for _ in range(2):
        webhook = Webhook(receiver.url, case_id="case-7", sleep=Pauses(), rng=random.Random(1))
        await webhook(summary(1))
        await webhook(summary(1))
    ids = receiver.ids
    assert len(ids) == 7
    assert all(ids)
    assert ids == [*[ids[0]] * 3, *[ids[3]] * 2, *ids[5:]]
    assert len(set(ids)) == 4


@pytest.mark.parametrize("trouble", [429, 500, 503, None])
async def test_what_may_pass_is_tried_again(receiver: Receiver, trouble: int | None) -> None:
    receiver.answers = iter([trouble, trouble, 200])
    pauses = Pauses()
    await Webhook(receiver.url, sleep=pauses)(summary(1))
    assert receiver.numbers == [1, 1, 1]
    assert len(pauses) == 2


async def test_the_pauses_grow_and_have_a_cap(receiver: Receiver) -> None:
    receiver.answers = iter([500] * 99)
    pauses = Pauses()
    webhook = Webhook(receiver.url, sleep=pauses, rng=Longest(), max_retries=8, timeout=1_000)
    with pytest.raises(WebhookError) as given_up:
        await webhook(summary(1))
    assert str(given_up.value) == f"{receiver.host}: a summary was not posted: status 500"
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]


PAST = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("value", "pauses"),
    [
        ("7", [7, 7, 7, 7, 8]),
        ("1.5", [1.5, 1.5, 2, 4, 8]),
        *((value, [0.5, 1, 2, 4, 8]) for value in ("0", "-3", "0.1", PAST)),
    ],
)
async def test_the_longer_of_two_pauses_is_kept(
    receiver: Receiver, value: str, pauses: list[float]
) -> None:
    """The pause that the endpoint asks for, and that of the backoff."""

    def busy(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": value})

    receiver.answers = iter([busy] * 5)
    slept = Pauses()
    await Webhook(receiver.url, sleep=slept, rng=Longest())(summary(1))
    assert slept == pauses
    assert receiver.numbers == [1] * 6


async def test_milliseconds_of_zero_leave_the_backoff_as_well(receiver: Receiver) -> None:
    headers = {"retry-after-ms": "0", "Retry-After": "7"}
    receiver.answers = iter([lambda _: web.Response(status=503, headers=headers)])
    slept = Pauses()
    await Webhook(receiver.url, sleep=slept, rng=Longest())(summary(1))
    assert slept == [0.5]


@pytest.mark.parametrize("value", ["nan", "inf", "soon", ""])
async def test_a_pause_that_is_no_time_is_one_of_ours(receiver: Receiver, value: str) -> None:
    receiver.answers = iter([lambda _: web.Response(status=429, headers={"Retry-After": value})])
    slept = Pauses()
    await Webhook(receiver.url, sleep=slept, rng=Longest())(summary(1))
    assert slept == [0.5]
    assert receiver.numbers == [1, 1]


@pytest.mark.parametrize("value", ["61", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_who_asks_for_more_time_than_there_is_gets_no_second_post(
    receiver: Receiver, value: str
) -> None:
    receiver.answers = iter([lambda _: web.Response(status=503, headers={"Retry-After": value})])
    pauses = Pauses()
    with pytest.raises(WebhookError, match="status 503"):
        await Webhook(receiver.url, sleep=pauses)(summary(1))
    assert receiver.numbers == [1]
    assert pauses == []


@pytest.mark.parametrize("status", [400, 401, 404, 410, 413])
async def test_what_will_not_pass_is_given_up_at_once(receiver: Receiver, status: int) -> None:
    receiver.answers = iter([status])
    with pytest.raises(WebhookError, match=f"status {status}"):
        await Webhook(receiver.url)(summary(1))
    assert receiver.numbers == [1]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    receiver.answers = iter([elsewhere])
    with pytest.raises(WebhookError, match=f"{status}, a redirect"):
        await Webhook(receiver.url)(summary(1))
    assert len(receiver.posts) == 1


async def test_an_endpoint_that_does_not_answer_costs_a_bounded_time(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    webhook = Webhook(receiver.url, attempt_timeout=0.02, max_retries=2, sleep=Pauses())
    with pytest.raises(WebhookError, match=r"no answer in 0\.02 s$"):
        await webhook(summary(1))
    assert receiver.numbers == [1, 1, 1]


async def test_all_attempts_together_have_a_time_limit(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    with pytest.raises(WebhookError, match=r"no answer in 0\.05 s$"):
        await Webhook(receiver.url, timeout=0.05)(summary(1))
    assert receiver.numbers == [1]


async def test_a_dead_port_is_tried_again_and_given_up() -> None:
    pauses = Pauses()
    with pytest.raises(WebhookError) as given_up:
        await Webhook("http://127.0.0.1:1/key-in-the-path", sleep=pauses)(summary(1))
    assert len(pauses) == 5
    assert "127.0.0.1:1: a summary was not posted: " in str(given_up.value)
    assert "key-in-the-path" not in str(given_up.value)


async def test_a_host_that_cannot_be_a_name_is_given_up_at_once() -> None:
    pauses = Pauses()
    with pytest.raises(WebhookError, match=r"^a\.\.b: a summary was not posted: Unicode\w*Error$"):
        await Webhook("http://a..b/key-in-the-path", sleep=pauses)(summary(1))
    assert pauses == []


async def test_what_answers_no_http_is_told_of_without_the_url(receiver: Receiver) -> None:
    def nonsense(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.write(b"HTTP/9 nonsense\r\n\r\n")
        request.transport.close()
        return web.Response()

    receiver.answers = iter([nonsense])
    with pytest.raises(WebhookError, match=": a summary was not posted: ") as given_up:
        await Webhook(receiver.url, max_retries=0)(summary(1))
    error = given_up.value
    assert "key-in-the-path" not in f"{error!r}{error.__cause__!r}{error.__context__!r}"


@pytest.mark.parametrize(
    "url",
    ["", "example.org/x", "ftp://example.org", "https://", "http://:80/", "http://h:port/", "http://[",
     "https://h/\udcff", b"https://h/", None],
)  # fmt: skip
def test_a_url_that_cannot_be_posted_to_is_refused(url: Any) -> None:
    with pytest.raises(ConfigError, match="the URL of a webhook"):
        Webhook(url)


@pytest.mark.parametrize("secret", ["", b"key"])
def test_a_secret_that_cannot_be_used_is_refused(secret: Any) -> None:
    with pytest.raises(ConfigError, match="must be a text, not empty"):
        Webhook("https://example.org", secret=secret)


def test_a_secret_with_half_a_character_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="has half a character") as refused:
        Webhook("https://example.org", secret=f"{SECRET}\udcff")
    error = refused.value
    assert SECRET not in f"{error!r}{error.__cause__!r}"
    assert error.__suppress_context__
    Webhook("https://example.org", secret="geh\u00ebim \U0001f600")


# Proxies


@pytest.fixture
def proxied(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which the receiver is the proxy of all but one host."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("no_proxy", "direct.invalid")
    return monkeypatch


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("scheme", ["", "http://", "http://user:pass@"])
async def test_the_proxy_of_the_environment_is_used(
    receiver: Receiver, proxied: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    proxied.setenv(name, f"{scheme}{receiver.host}")
    await Webhook("http://receiver.invalid/summaries")(summary(1))
    ((request, _),) = receiver.requests
    assert str(request.url) == "http://receiver.invalid/summaries"
    assert ("Proxy-Authorization" in request.headers) is ("@" in scheme)


async def test_a_secure_post_goes_through_a_tunnel(proxied: pytest.MonkeyPatch) -> None:
    """The proxy learns of no path and no summary."""
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        proxied.setenv("https_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        webhook = Webhook("https://receiver.invalid/key-in-the-path", max_retries=0)
        with pytest.raises(WebhookError, match=r"^receiver\.invalid: .*: ClientHttpProxyError$"):
            await webhook(summary(1))
    (head,) = asked
    assert head.startswith(b"CONNECT receiver.invalid:443 ")
    assert b"key-in-the-path" not in head


async def test_no_other_host_is_asked_through_the_proxy(
    receiver: Receiver, proxied: pytest.MonkeyPatch
) -> None:
    proxied.setenv("http_proxy", f"http://{receiver.host}")
    with pytest.raises(WebhookError):
        await Webhook("http://direct.invalid/x", max_retries=0)(summary(1))
    proxied.setenv("https_proxy", "http://127.0.0.1:1")
    proxied.setenv("no_proxy", f"other.invalid,{receiver.host}")
    await Webhook(receiver.url)(summary(1))
    assert [str(request.url) for request, _ in receiver.requests] == [receiver.url]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://", "http://h:port"])
def test_a_proxy_that_cannot_be_used_is_refused(proxied: pytest.MonkeyPatch, proxy: str) -> None:
    proxied.setenv("all_proxy", proxy)
    with pytest.raises(ConfigError, match=r"^the proxy for the webhook at receiver\.invalid \("):
        Webhook("https://receiver.invalid/x")
    Webhook("https://direct.invalid/x")


# As a subscriber


def writer(count: int) -> FunctionModel:
    """A model that numbers its summaries."""
    return model(*(SummaryDraft(status_action=f"Step {n} done.") for n in range(count)))


async def test_summaries_arrive_in_order_and_one_that_is_given_up_is_told_of(
    receiver: Receiver,
) -> None:
    receiver.answers = iter([200, 200, 503, 404])
    failures: list[Failure] = []
    async with make_exaid(
        model(SHIFT),
        writer(6),
        on_summary=Webhook(receiver.url, sleep=Pauses()),
        on_error=failures.append,
    ) as exaid:
        for _ in range(6):
            await exaid.received_trace("doctor", "Fever.")
    assert receiver.numbers == [0, 1, 2, 2, 3, 4, 5]
    (failure,) = failures
    assert failure.source == "subscriber"
    assert isinstance(failure.error, WebhookError)
    assert failure.message.endswith("a summary was not posted: status 404")
    assert exaid.health.state == "ok", "its models work"


async def test_parts_of_a_text_and_sessions_of_a_case_have_ids_of_their_own(
    receiver: Receiver,
) -> None:
    def write(request: ChatRequest) -> ChatReply:
        if sum(len(message.content) for message in request.messages) > 9_000:
            raise TOO_LONG
        return reply(SummaryDraft(status_action="Step 1 done."))

    for _ in range(2):
        webhook = Webhook(receiver.url, case_id="case-7")
        async with make_exaid(model(SHIFT), FunctionModel(write), on_summary=webhook) as exaid:
            await exaid.received_trace("doctor", "He is in cardiac arrest. " + "No news. " * 2_000)
    keys = [str(post["source_seqs"]) for post in receiver.posts]
    assert keys.count("[]") > 2
    assert len(set(receiver.ids)) == len(keys)


async def test_one_at_a_time_is_posted_and_nobody_waits_for_it(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    async with make_exaid(model(SHIFT), writer(5), on_summary=Webhook(receiver.url)) as exaid:
        for _ in range(5):
            assert await exaid.received_trace("doctor", "Fever.") is not None
        await asyncio.sleep(0.05)
        assert receiver.numbers == [0], "the others wait for the first"
        receiver.hold.set()
    assert receiver.numbers == [0, 1, 2, 3, 4]


async def test_all_are_posted_when_the_block_of_a_sync_exaid_ends(receiver: Receiver) -> None:
    def use() -> list[int]:
        webhook = Webhook(receiver.url)
        with SyncExaid(
            buffer_llm=model(SHIFT), summarizer_llm=writer(5), on_summary=webhook
        ) as exaid:
            for _ in range(5):
                exaid.received_trace("doctor", "Fever.")
        return receiver.numbers

    assert await asyncio.to_thread(use) == [0, 1, 2, 3, 4]


async def test_an_endpoint_that_hangs_does_not_hold_up_the_end_for_longer_than_it_may(
    receiver: Receiver,
) -> None:
    receiver.hold = asyncio.Event()
    failures: list[Failure] = []
    webhook = Webhook(receiver.url)
    exaid = make_exaid(model(SHIFT), writer(3), on_summary=webhook, on_error=failures.append)
    for _ in range(3):
        await exaid.received_trace("doctor", "Fever.")
    await exaid.close(0.5)
    assert not posting()
    receiver.hold.set()
    await receiver.is_left()
    assert receiver.numbers == [0]
    assert "summaries left: 3" in failures[0].message


async def test_nothing_that_is_secret_is_logged(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = iter([500, None, 404, 200])
    webhook = Webhook(receiver.url, secret=SECRET, sleep=Pauses())
    failures: list[Failure] = []
    with caplog.at_level(logging.DEBUG):
        async with make_exaid(
            model(SHIFT), writer(2), on_summary=webhook, on_error=failures.append
        ) as exaid:
            for _ in range(2):
                await exaid.received_trace("doctor", "Fever.")
    assert "a subscriber of EXAID raised WebhookError" in caplog.text
    (failure,) = failures
    for word in ("key-in-the-path", SECRET, "Step", "sha256"):
        assert word not in caplog.text
        assert word not in f"{webhook!r}{failure!r}"


@pytest.mark.sweep
@pytest.mark.parametrize("seed", seeds(40))
async def test_cancelled_at_any_moment_nothing_is_left_and_nothing_posted_twice(
    receiver: Receiver, seed: int
) -> None:
    """A summary is posted again only where the answer to its last post allows it."""
    rng = random.Random(seed)
    answers = [rng.choice([200, 200, 404, 500, None]) for _ in range(60)]
    receiver.answers = iter(answers)
    exaid = make_exaid(
        Slow(model(SHIFT), lambda: rng.choice([0, 0.001])),
        writer(10),
        on_summary=Webhook(receiver.url, sleep=Pauses(), max_retries=2),
    )

    async def use() -> None:
        async with exaid:
            for _ in range(10):
                await exaid.received_trace("doctor", "Fever.")

    task = asyncio.create_task(use())
    await asyncio.sleep(rng.uniform(0, 0.05))
    for _ in range(rng.choice([0, 1, 40])):  # some moments are single steps of the loop
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not posting()
    await receiver.is_left()
    told = [summary.status_action for summary in exaid.get_all_summaries()]
    numbers = receiver.numbers
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(len(set(numbers))))
    assert len(set(numbers)) <= len(told)
    for number, following, answer in zip(numbers, numbers[1:], answers, strict=False):
        assert (following == number) <= (answer in (500, None))
        assert numbers.count(number) <= 3
    gc.collect()  # a connection that was not closed is a warning, and so an error


def posting() -> set[asyncio.Task[Any]]:
    """Tasks that post."""
    return {
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__qualname__", "") == "Webhook.__call__"
    }
