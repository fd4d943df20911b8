"""The fake provider as a server: many requests at once, its log, HTTP."""

from __future__ import annotations

import asyncio

import httpx2
import openai
import pytest

from tests.fake_provider import FakeProvider, FaultPlan, Usage, peak_in_flight
from tests.fake_provider.conftest import Ask


@pytest.mark.sweep
async def test_two_hundred_requests_in_flight(provider: FakeProvider, ask_openai: Ask) -> None:
    with provider.hold("patient") as hold:
        tasks = [asyncio.ensure_future(ask_openai(f"patient {number}")) for number in range(200)]
        await asyncio.to_thread(hold.wait, 200)
        assert provider.in_flight == 200
        assert not any(task.done() for task in tasks)
        assert (await ask_openai("not held")).choices
    await asyncio.gather(*tasks)
    assert provider.in_flight == 0
    assert provider.max_in_flight == 201
    assert peak_in_flight(call for call in provider.calls if "patient" in call.text) == 200
    assert [call.index for call in provider.calls] == list(range(201))


def test_waiting_for_what_does_not_come_times_out(provider: FakeProvider) -> None:
    with provider.hold() as hold, pytest.raises(TimeoutError, match="0 of 1"):
        hold.wait(timeout=0.01)
    with pytest.raises(TimeoutError, match="0 of 1"):
        provider.wait_for_calls(1, timeout=0.01)


async def test_a_client_that_hangs_up_is_noted(provider: FakeProvider, ask_openai: Ask) -> None:
    hold = provider.hold()
    task = asyncio.ensure_future(ask_openai())
    await asyncio.to_thread(hold.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(provider.wait_for_calls, 1)
    hold.release()
    await ask_openai()
    assert [call.outcome for call in provider.calls] == ["client_gone", "ok"]
    assert provider.in_flight == 0
    assert provider.totals == provider.calls[1].usage


async def test_stopping_breaks_what_is_in_flight(provider: FakeProvider, ask_openai: Ask) -> None:
    hold = provider.hold()
    task = asyncio.ensure_future(ask_openai())
    await asyncio.to_thread(hold.wait)
    await asyncio.to_thread(provider.stop)
    with pytest.raises(openai.APIConnectionError):
        await task
    with pytest.raises(openai.APIConnectionError):
        await ask_openai()


@pytest.mark.sweep
async def test_totals_are_the_sum_of_what_clients_were_told(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    provider.seed = 3
    provider.faults = FaultPlan({"429": 0.3, "truncated_body": 0.2, "cut_off": 0.2})
    told = Usage()
    for number in range(40):
        try:
            usage = (await ask_openai(f"question {number}")).usage
        except openai.APIError:
            continue
        told += Usage(usage.prompt_tokens, usage.completion_tokens)
    assert provider.totals == told
    assert provider.outcomes.keys() == {"ok", "429", "cut_off", "truncated_body"}
    assert sum(provider.outcomes.values()) == len(provider.calls) == 40
    provider.reset()
    assert (provider.calls, provider.totals, provider.outcomes) == ([], Usage(), {})


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"model": "m"}',
        b'{"model": "m", "messages": []}',
        b'{"model": "m", "messages": ["text"]}',
        b'{"messages": [{"role": "user", "content": ""}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": ""}], "response_format": "json"}',
    ],
)
def test_requests_that_openai_would_refuse(provider: FakeProvider, body: bytes) -> None:
    reply = httpx2.post(f"{provider.openai_base_url}/chat/completions", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert (provider.outcomes, provider.in_flight) == ({"bad_request": 1}, 0)


@pytest.mark.parametrize(
    "body",
    [
        b'{"contents": []}',
        b'{"contents": [{"parts": [{"text": "?"}]}],'
        b' "generationConfig": {"responseJsonSchema": {"type": "object"}}}',
    ],
)
def test_requests_that_gemini_would_refuse(provider: FakeProvider, body: bytes) -> None:
    url = f"{provider.gemini_base_url}/v1beta/models/m:generateContent"
    reply = httpx2.post(url, content=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
