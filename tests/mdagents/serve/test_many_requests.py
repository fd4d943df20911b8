"""Many requests at once: sums, the queue, and clients that leave."""

from __future__ import annotations

import asyncio
import base64
import io
import random
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from PIL import Image

from mdagents.records.sample import SampleRecord
from mdagents.runs.config import RunConfig
from mdagents.serve.errors import ApiError
from mdagents.serve.requests import read_chat
from mdagents.serve.service import open_service
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import MODEL, OPTIONS, QUESTION, Served, serving, until
from tests.support.sweeps import seeds


def body(number: int, **more: Any) -> dict[str, Any]:
    prompt = f"{QUESTION} (case {number})\n{OPTIONS}"
    return {"model": MODEL, "messages": [{"role": "user", "content": prompt}]} | more


def by_case(served: Served) -> dict[str, tuple[int, int, int, int]]:
    """Case -> (input, output, cached input, reasoning) tokens of its rows."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
    for row in served.rows():
        for place, name in enumerate(names):
            sums[row["case_id"]][place] += row[name]
    return {case: (one[0], one[1], one[2], one[3]) for case, one in sums.items()}


def tokens(row: dict[str, Any]) -> tuple[int, int]:
    return row["input_tokens"], row["output_tokens"]


def test_usage_is_the_ledger_and_the_ledger_is_the_providers_count(provider: FakeProvider) -> None:
    with serving(max_connections=4) as served:
        teams = ["basic", "zero_shot", "cot", "debate"]

        def ask(number: int) -> dict[str, object]:
            response = served.post(json=body(number, model=f"mdagents/{teams[number % 4]}"))
            assert response.status_code == 200
            made: dict[str, object] = response.json()
            return made

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(ask, range(16)))
        sums = by_case(served)
        assert served.metric("mdagents_tokens_total") == sum(map(sum, sums.values()))
        assert served.metric("mdagents_request_seconds_count") == 16
    assert len(sums) == 16
    for answer in answers:
        usage, details = answer["usage"], answer["mdagents"]
        assert isinstance(usage, dict)
        assert isinstance(details, dict)
        assert sums[details["case_id"]] == (
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
            usage["completion_tokens_details"]["reasoning_tokens"],
        )
    assert sum(one[0] for one in sums.values()) == provider.totals.input
    assert sum(one[1] for one in sums.values()) == provider.totals.output


def test_a_full_server_says_when_to_come_back(provider: FakeProvider) -> None:
    with serving(max_samples=1, queue=1) as served, ThreadPoolExecutor(2) as threads:
        with provider.hold() as hold:
            first = threads.submit(served.post, json=body(1))
            hold.wait(1)
            second = threads.submit(served.post, json=body(2))
            until(lambda: served.metric("mdagents_requests_queued") == 1)
            third = served.post(json=body(3))
            health = served.get("/health").json()
        assert third.status_code == 429
        assert third.json()["error"]["code"] == "queue_full"
        assert 1 <= int(third.headers["retry-after"]) <= 60
        assert health == {"status": "ok", "in_progress": 2, "places": 1}
        assert first.result().status_code == second.result().status_code == 200
        assert served.post(json=body(3)).status_code == 200


async def test_questions_whose_pictures_are_checked_take_places(provider: FakeProvider) -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(file, "PNG")
    picture = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    text = {"type": "text", "text": f"{QUESTION}\n{OPTIONS}"}
    parts = [text, {"type": "image_url", "image_url": {"url": picture}}]
    ask = read_chat({"model": "zero_shot", "messages": [{"role": "user", "content": parts}]})
    environment = parse_environment(read_variables())
    config = RunConfig(model="gpt-4o-mini", cache="off", max_retries=0, max_samples=1)
    opened = open_service(config, ["basic"], environment, Clock(), most_queued=2, say=print)
    async with opened as service:

        def start() -> asyncio.Task[SampleRecord]:
            return service.start(ask, lambda _: None)

        accepted = [start() for _ in range(3)]
        with pytest.raises(ApiError, match="1 questions are in progress and 2 wait") as full:
            start()
        assert full.value.code == "queue_full"
        accepted.pop().cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        accepted.append(start())
        with pytest.raises(ApiError, match="2 wait"):
            start()
        await asyncio.gather(*accepted)
        assert service.in_progress == 0
        await start()


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_its_team(provider: FakeProvider, stream: bool) -> None:
    with serving(max_samples=1) as served:
        hold = provider.hold(lambda request: request.index > 0)

        async def leave() -> None:
            async with httpx2.AsyncClient(verify=False) as client:
                url = f"{served.url}/v1/chat/completions"
                asking = asyncio.ensure_future(client.post(url, json=body(1, stream=stream)))
                await asyncio.to_thread(hold.wait, 1)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

        asyncio.run(leave())
        until(lambda: served.service.in_progress == 0)
        until(lambda: hold.waiting == 0)  # the provider has seen the client leave
        hold.release()
        finished = [row for row in served.rows() if row["outcome"] == "ok"]
        assert sum(row["input_tokens"] for row in finished) == provider.totals.input > 0
        assert {row["outcome"] for row in served.rows()} == {"ok", "aborted"}
        assert served.records() == []
        left = 'mdagents_requests_total{status="499",team="basic"} 1.0'
        until(lambda: left in served.get("/metrics").text)
        assert served.post(json=body(2)).status_code == 200
        (case,) = {row["case_id"] for row in served.rows()[-1:]}
        calls = [call for call in provider.calls if "(case 2)" in call.text]
        assert len(calls) == len([row for row in served.rows() if row["case_id"] == case])


@pytest.mark.sweep
def test_clients_that_leave_at_random_moments(provider: FakeProvider) -> None:
    """The ledger agrees with the provider, and no place is lost."""
    provider.latency = 0.01
    chosen = seeds(8)
    with serving(max_samples=4, max_connections=4) as served:

        async def ask(client: httpx2.AsyncClient, number: int, moments: random.Random) -> None:
            url = f"{served.url}/v1/{'responses' if number % 3 == 0 else 'chat/completions'}"
            sent = body(number, stream=bool(number % 2))
            if number % 3 == 0:
                sent["input"] = sent.pop("messages")
            asking = asyncio.ensure_future(client.post(url, json=sent, timeout=60))
            await asyncio.wait({asking}, timeout=moments.uniform(0, 0.4))
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

        async def all_of_them() -> None:
            async with httpx2.AsyncClient(verify=False) as client:
                for seed in chosen:
                    moments = random.Random(seed)
                    numbers = range(20 * seed, 20 * seed + 20)
                    await asyncio.gather(*(ask(client, number, moments) for number in numbers))

        asyncio.run(all_of_them())
        until(lambda: served.service.in_progress == 0)
        assert served.metric("mdagents_requests_in_flight") == 0
        assert served.metric("mdagents_requests_queued") == 0
        rows = served.rows()
        booked = Counter(tokens(row) for row in rows if row["outcome"] == "ok")
        billed = Counter(
            (call.usage.input, call.usage.output) for call in provider.calls if call.billed
        )
        aborted = sum(row["outcome"] == "aborted" for row in rows)
        assert booked <= billed
        # A reply may be on its way when the call is given up.
        assert billed.total() - booked.total() <= aborted
        assert aborted > 0
        assert {row["outcome"] for row in rows} <= {"ok", "aborted"}
        with ThreadPoolExecutor(4) as threads:
            numbers = range(1000, 1004)
            asked = [threads.submit(served.post, json=body(number)) for number in numbers]
            assert [one.result().status_code for one in asked] == [200] * 4
    assert threading.active_count() < 20
