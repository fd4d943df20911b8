"""Webhooks against a real server: what arrives, what is tried again, and what is given up."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.webhook import SIGNATURE_HEADER, Webhook, WebhookError
from infra.errors import ConfigError

SECRET = "a-secret-between-us"
Answer = Callable[[web.Request], web.StreamResponse]


class Receiver:
    """A server that takes posts; `answers` are its answers in turn, then 200."""

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.requests: list[tuple[web.Request, bytes]] = []
        self.answers: Iterator[Answer | int | None] = iter(())
        self.hold: asyncio.Event | None = None
        self.url = ""

    async def take(self, request: web.Request) -> web.StreamResponse:
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


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/key-in-the-path"
    yield receiver
    await runner.cleanup()


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
    async with Webhook(receiver.url, case_id="case-7") as webhook:
        await webhook(summary(1))
    ((request, body),) = receiver.requests
    assert request.method == "POST"
    assert request.headers["Content-Type"] == "application/json"
    assert SIGNATURE_HEADER not in request.headers
    sent = json.loads(body)
    assert sent.pop("case_id") == "case-7"
    assert AgentSummary.model_validate(sent) == summary(1)


async def test_a_secret_signs_the_body(receiver: Receiver) -> None:
    async with Webhook(receiver.url, secret=SECRET) as webhook:
        await webhook(summary(1))
    ((request, body),) = receiver.requests
    expected = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE_HEADER] == f"sha256={expected}"
    assert SECRET not in str(request.headers)


async def test_summaries_arrive_in_order_one_at_a_time(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    async with Webhook(receiver.url) as webhook:
        for number in range(20):
            await webhook(summary(number))
        await asyncio.sleep(0.05)
        assert len(receiver.posts) == 1, "the others wait for the first"
        receiver.hold.set()
    assert receiver.numbers == list(range(20))


@pytest.mark.parametrize("trouble", [429, 500, 503, None])
async def test_what_may_pass_is_tried_again_before_the_next(
    receiver: Receiver, trouble: int | None
) -> None:
    receiver.answers = iter([trouble, trouble, 200])
    pauses, errors = Pauses(), list[Exception]()
    async with Webhook(receiver.url, sleep=pauses, on_error=errors.append) as webhook:
        await webhook(summary(1))
        await webhook(summary(2))
    assert receiver.numbers == [1, 1, 1, 2]
    assert len(pauses) == 2
    assert not errors


async def test_the_pauses_grow_and_have_a_cap(receiver: Receiver) -> None:
    receiver.answers = iter([500] * 99)
    pauses, errors = Pauses(), list[Exception]()
    async with Webhook(
        receiver.url,
        sleep=pauses,
        rng=Longest(),
        max_retries=8,
        timeout=1_000,
        on_error=errors.append,
    ) as webhook:
        await webhook(summary(1))
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert [str(error) for error in errors] == [
        f"{receiver.url.split('/')[2]}: a summary was not posted: status 500"
    ]


@pytest.mark.parametrize(
    ("value", "pauses"), [("7", [7.0]), ("0", [0.0]), ("nan", [0.0]), ("-3", [0.0])]
)
async def test_the_pause_that_the_endpoint_asks_for_is_kept(
    receiver: Receiver, value: str, pauses: list[float]
) -> None:
    receiver.answers = iter([lambda _: web.Response(status=429, headers={"Retry-After": value})])
    slept = Pauses()
    async with Webhook(receiver.url, sleep=slept) as webhook:
        await webhook(summary(1))
    assert slept == pauses
    assert receiver.numbers == [1, 1]


@pytest.mark.parametrize("value", ["61", "inf", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_who_asks_for_more_time_than_there_is_gets_no_second_post(
    receiver: Receiver, value: str
) -> None:
    receiver.answers = iter([lambda _: web.Response(status=503, headers={"Retry-After": value})])
    pauses, errors = Pauses(), list[Exception]()
    async with Webhook(receiver.url, sleep=pauses, on_error=errors.append) as webhook:
        await webhook(summary(1))
        await webhook(summary(2))
    assert receiver.numbers == [1, 2], "and the next one has its turn"
    assert pauses == []
    assert "status 503" in str(errors)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 413])
async def test_what_will_not_pass_is_given_up_at_once(receiver: Receiver, status: int) -> None:
    receiver.answers = iter([status])
    errors: list[Exception] = []
    async with Webhook(receiver.url, on_error=errors.append) as webhook:
        await webhook(summary(1))
        await webhook(summary(2))
    assert receiver.numbers == [1, 2]
    assert len(errors) == 1
    assert f"status {status}" in str(errors[0])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "http://elsewhere.example/"})

    receiver.answers = iter([elsewhere])
    errors: list[Exception] = []
    async with Webhook(receiver.url, on_error=errors.append) as webhook:
        await webhook(summary(1))
    assert len(receiver.posts) == 1
    assert f"{status}, a redirect" in str(errors)


async def test_an_endpoint_that_does_not_answer_costs_a_bounded_time(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    errors: list[Exception] = []
    async with Webhook(
        receiver.url,
        attempt_timeout=0.02,
        max_retries=2,
        sleep=Pauses(),
        on_error=errors.append,
    ) as webhook:
        await webhook(summary(1))
    assert receiver.numbers == [1, 1, 1]
    assert "no answer in 0.02 s" in str(errors)


async def test_all_attempts_together_have_a_time_limit(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    errors: list[Exception] = []
    async with Webhook(receiver.url, timeout=0.05, on_error=errors.append) as webhook:
        await webhook(summary(1))
    assert receiver.numbers == [1]
    assert "no answer in 0.05 s" in str(errors)


async def test_a_dead_port_is_tried_again_and_given_up() -> None:
    pauses, errors = Pauses(), list[Exception]()
    async with Webhook(
        "http://127.0.0.1:1/key-in-the-path", sleep=pauses, on_error=errors.append
    ) as webhook:
        await webhook(summary(1))
    assert len(pauses) == 5
    assert "127.0.0.1:1: a summary was not posted: " in str(errors[0])
    assert "key-in-the-path" not in str(errors)


async def test_too_many_waiting_summaries_are_refused(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    async with Webhook(receiver.url, max_waiting=3) as webhook:
        for number in range(3):
            await webhook(summary(number))
        with pytest.raises(WebhookError, match="3 summaries wait for it already"):
            await webhook(summary(3))
        receiver.hold.set()
    assert receiver.numbers == [0, 1, 2]


async def test_closing_waits_for_a_time_and_tells_what_is_lost(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    errors: list[Exception] = []
    webhook = Webhook(receiver.url, on_error=errors.append)
    await webhook.aclose()  # nothing was posted yet; closing twice is fine
    webhook = Webhook(receiver.url, on_error=errors.append)
    for number in range(3):
        await webhook(summary(number))
    await webhook.aclose(0.05)
    assert "closed before 3 were posted" in str(errors)
    assert not others(), "nothing is at work any more"
    with pytest.raises(WebhookError, match="is closed"):
        await webhook(summary(3))
    await webhook.aclose()
    assert len(errors) == 1


async def test_it_goes_on_after_a_pause_without_summaries(receiver: Receiver) -> None:
    async with Webhook(receiver.url) as webhook:
        for number in range(3):
            await webhook(summary(number))
            await asyncio.wait(others())
            assert receiver.numbers == list(range(number + 1)), "and nothing is left open"


async def test_nothing_of_it_is_logged(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = iter([500, None, 404, 200])
    with caplog.at_level(logging.DEBUG):
        async with Webhook(receiver.url, secret=SECRET, sleep=Pauses()) as webhook:
            await webhook(summary(1))
            await webhook(summary(2))
    (record,) = [one for one in caplog.records if one.name == "exaid_core"]
    assert record.getMessage().endswith("a summary was not posted: status 404")
    for word in ("key-in-the-path", SECRET, "Step", "sha256"):
        assert word not in caplog.text
        assert word not in repr(webhook)


async def test_what_answers_no_http_is_told_of_without_the_url(receiver: Receiver) -> None:
    def nonsense(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.write(b"HTTP/9 nonsense\r\n\r\n")
        request.transport.close()
        return web.Response()

    receiver.answers = iter([nonsense])
    errors: list[Exception] = []
    async with Webhook(receiver.url, max_retries=0, on_error=errors.append) as webhook:
        await webhook(summary(1))
    assert "a summary was not posted: " in str(errors[0])
    assert "key-in-the-path" not in f"{errors[0]!r}{errors[0].__cause__!r}{errors[0].__context__!r}"


@pytest.mark.parametrize("ticks", range(0, 40, 2))
async def test_a_summary_that_comes_while_it_falls_asleep_is_posted(
    receiver: Receiver, ticks: int
) -> None:
    webhook = Webhook(receiver.url)
    await webhook(summary(0))
    while not receiver.posts:  # noqa: ASYNC110 - each step of the loop counts here
        await asyncio.sleep(0)
    for _ in range(ticks):
        await asyncio.sleep(0)
    await webhook(summary(1))
    await asyncio.wait(others())
    assert receiver.numbers == [0, 1]
    await webhook.aclose()


async def test_what_was_cancelled_under_way_is_posted_at_the_end(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    errors: list[Exception] = []
    async with Webhook(receiver.url, on_error=errors.append) as webhook:
        await webhook(summary(0))
        await webhook(summary(1))
        while not receiver.posts:  # noqa: ASYNC110 - of a server
            await asyncio.sleep(0.001)
        for task in others():
            task.cancel()
        receiver.hold.set()
    assert receiver.numbers == [0, 0, 1]
    assert not errors


def test_a_program_that_ends_without_closing_it_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def program() -> None:
        webhook = Webhook("http://127.0.0.1:1")
        await webhook(summary(1))
        await asyncio.sleep(0)

    asyncio.run(program())
    assert caplog.messages == ["127.0.0.1:1: stopped with 1 summaries to post"]


async def test_an_on_error_that_raises_stops_nothing(receiver: Receiver) -> None:
    def broken(error: Exception) -> None:
        raise RuntimeError("no")

    receiver.answers = iter([404])
    async with Webhook(receiver.url, on_error=broken) as webhook:
        await webhook(summary(1))
        await webhook(summary(2))
    assert receiver.numbers == [1, 2]


@pytest.mark.parametrize(
    "url",
    ["", "example.org/x", "ftp://example.org", "https://", "http://:80/", "http://h:port/", "http://["],
)  # fmt: skip
def test_a_url_that_cannot_be_posted_to_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="the URL of a webhook"):
        Webhook(url)


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="must not be empty"):
        Webhook("https://example.org", secret="")


async def test_another_event_loop_is_told_apart(receiver: Receiver) -> None:
    receiver.hold = asyncio.Event()
    async with Webhook(receiver.url) as webhook:
        await webhook(summary(1))
        told: list[str] = []

        def in_a_thread() -> None:
            try:
                asyncio.run(webhook(summary(2)))
            except RuntimeError as error:
                told.append(str(error))

        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
        assert "another event loop" in told[0]
        receiver.hold.set()
    assert receiver.numbers == [1]


def others() -> set[asyncio.Task[Any]]:
    """Tasks of webhooks: all but the test's own and the server's handlers."""
    return {
        task
        for task in asyncio.all_tasks()
        if "Webhook" in getattr(task.get_coro(), "__qualname__", "")
    }


@pytest.mark.parametrize("seed", range(25))
async def test_cancelled_at_any_moment_it_loses_nothing_silently(
    receiver: Receiver, seed: int
) -> None:
    """Whatever is cancelled, each summary arrives, in order, or is told to be lost."""
    rng = random.Random(seed)

    async def nap() -> None:
        await asyncio.sleep(rng.choice([0, 0, 0.001, 0.004]))

    errors: list[Exception] = []
    receiver.answers = iter(rng.choice([200, 200, 500, None]) for _ in range(15))
    webhook = Webhook(receiver.url, sleep=Pauses(), max_retries=99, on_error=errors.append)
    for number in range(10):
        await webhook(summary(number))
        await nap()
        if rng.random() < 0.4:
            for task in others():
                task.cancel()
            await nap()
    if rng.random() < 0.3:
        closing = asyncio.create_task(webhook.aclose())
        await nap()
        closing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closing
    else:
        await webhook.aclose(rng.choice([0.0, 0.002, None]))
    assert not others()
    lost = sum(int(str(error).split("before ")[1].split()[0]) for error in errors)
    assert len(errors) <= 1
    numbers = receiver.numbers
    assert all(before <= after <= before + 1 for before, after in pairwise(numbers))
    arrived = len(set(numbers))
    # The one under way when it was closed may have arrived all the same.
    assert 10 - lost <= arrived <= 10 - lost + 1
