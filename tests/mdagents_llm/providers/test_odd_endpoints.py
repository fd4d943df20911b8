"""Endpoints that do not keep to the protocol: an oddity is an error of one call, never a crash."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any, Literal

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.structured import Structured
from mdagents_llm.ledger import UNUSABLE, CallRow, Price, Totals
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.openai_batches import OpenAIBatches
from mdagents_llm.providers.openai_chat import OpenAIChat
from mdagents_llm.providers.waits import retry_after_seconds, seconds_of_duration

REQUEST = ChatRequest(messages=(ChatMessage("user", "Hi"),), max_tokens=50)
GOOD: dict[str, Any] = {
    "model": "m",
    "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}


def chat(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> OpenAIChat:
    """A model behind an endpoint that answers everything with `body`."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.Response(
            status, content=content, headers={"content-type": "application/json", **(headers or {})}
        )

    client = AsyncOpenAI(
        base_url="http://endpoint.test/v1",
        api_key="odd-secret",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(answer)),
    )
    return OpenAIChat(client, "m", ModelInfo())


def in_a_batch(body: dict[str, Any]) -> ChatReply:
    """Read a body as the result of a batch."""
    batches = OpenAIBatches(AsyncOpenAI(api_key="k"), chat(body))
    return batches.read({"response": {"status_code": 200, "body": body}}, REQUEST)


def with_choice(**choice: Any) -> dict[str, Any]:
    return GOOD | {"choices": [GOOD["choices"][0] | choice]}


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        None,
        {},
        GOOD | {"choices": ["hi"]},
        GOOD | {"choices": None},
        with_choice(message={"content": [{"type": "text"}]}),
        with_choice(message="hello"),
        with_choice(message={"content": ""}, finish_reason=None),
        b"<html>busy</html>",
        b"",
        b"\xff\xfe",
    ],
    ids=str,
)
async def test_a_body_of_another_shape_is_a_broken_body(body: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        await chat(body).generate(REQUEST)
    assert caught.value.kind is ErrorKind.BAD_BODY
    assert caught.value.retryable


@pytest.mark.parametrize(
    "usage",
    [
        "many",
        ["many"],
        {"prompt_tokens": None, "completion_tokens": 2},
        {"prompt_tokens": "3", "completion_tokens": 2},
        {"prompt_tokens": 3, "completion_tokens": float("inf")},
        {"total_tokens": 60},
    ],
    ids=str,
)
async def test_a_reply_is_not_lost_for_its_usage(usage: Any) -> None:
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    assert reply.text == "hello"
    assert reply.usage_estimated
    assert reply.usage.total_tokens > 0


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 50.0, "completion_tokens": 9.6}, TokenUsage(50, 10)),
        ({"input_tokens": 50, "output_tokens": 10}, TokenUsage(50, 10)),  # pi#2326
        (
            {
                "prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60,
                "input_tokens": 0, "output_tokens": 0, "input_tokens_details": None,
            },
            TokenUsage(50, 10),
        ),
        (
            {
                "input_tokens": 50, "output_tokens": 10, "prompt_tokens": 0,
                "input_tokens_details": {"cached_tokens": 7},
            },
            TokenUsage(50, 10, cached_input_tokens=7),
        ),
        (  # Perplexity (open-webui-cost-tracker#6)
            {
                "prompt_tokens": 108, "completion_tokens": 3256, "total_tokens": 3364,
                "reasoning_tokens": 73_248,
            },
            TokenUsage(108, 76_504, reasoning_tokens=73_248),
        ),
        (
            {
                "prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60,
                "reasoning_tokens": 4,
            },
            TokenUsage(50, 10, reasoning_tokens=4),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 12,
                "reasoning_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": 22,
            },
            TokenUsage(10, 12, reasoning_tokens=12),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": 5,
                "completion_tokens_details": [1],
            },
            TokenUsage(10, 5),
        ),
        (  # litellm#11364
            {
                "total_tokens": 103_925, "prompt_tokens": 98_805, "completion_tokens": 5120,
                "prompt_tokens_details": {
                    "cached_tokens": 66_360, "cache_creation_tokens": 32_435,
                },
                "cache_read_input_tokens": 66_360, "cache_creation_input_tokens": 32_435,
            },
            TokenUsage(98_805, 5120, cached_input_tokens=66_360, cache_write_tokens=32_435),
        ),
        (
            {
                "prompt_tokens": 50, "completion_tokens": 10,
                "prompt_tokens_details": {"cache_creation_tokens": 40},
            },
            TokenUsage(50, 10, cache_write_tokens=40),
        ),
        (
            {
                "prompt_tokens": 50, "completion_tokens": 10,
                "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20,
            },
            TokenUsage(50, 10, cached_input_tokens=30, cache_write_tokens=20),
        ),
        (  # litellm#5285: the prompt without them
            {
                "completion_tokens": 7, "prompt_tokens": 194, "total_tokens": 201,
                "cache_creation_input_tokens": 9474, "cache_read_input_tokens": 0,
            },
            TokenUsage(9668, 7, cache_write_tokens=9474),
        ),
        (
            {
                "completion_tokens": 7, "prompt_tokens": 194, "total_tokens": 9675,
                "cache_creation_input_tokens": 74, "cache_read_input_tokens": 9400,
            },
            TokenUsage(9668, 7, cached_input_tokens=9400, cache_write_tokens=74),
        ),
        (
            {"prompt_tokens": 50, "completion_tokens": 10, "cache_read_input_tokens": "some"},
            TokenUsage(50, 10),
        ),
        (
            {"prompt_tokens": 50, "completion_tokens": 10, "cache_creation_input_tokens": -1},
            TokenUsage(50, 10),
        ),
    ],
    ids=str,
)  # fmt: skip
async def test_tokens_are_booked_as_they_are_reported(
    usage: dict[str, object], read: TokenUsage
) -> None:
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    assert (reply.usage, reply.usage_estimated) == (read, False)


OF_CACHES: dict[str, tuple[dict[str, object], TokenUsage]] = {
    "both in the total alone (Portkey gateway#1754)": (
        {
            "prompt_tokens": 1000, "completion_tokens": 19, "total_tokens": 3219,
            "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 200,
        },
        TokenUsage(3200, 19, cached_input_tokens=2000, cache_write_tokens=200),
    ),
    "what was read (Portkey gateway#1211)": (
        {
            "prompt_tokens": 368, "completion_tokens": 19, "total_tokens": 10_923,
            "cache_read_input_tokens": 10_536, "cache_creation_input_tokens": 0,
        },
        TokenUsage(10_904, 19, cached_input_tokens=10_536),
    ),
    "less than the prompt was read (ours, after gateway#1211)": (
        {
            "prompt_tokens": 3680, "completion_tokens": 19, "total_tokens": 5699,
            "cache_read_input_tokens": 2000,
        },
        TokenUsage(5680, 19, cached_input_tokens=2000),
    ),
    "less than the prompt was written (ours)": (
        {
            "prompt_tokens": 3000, "completion_tokens": 100, "total_tokens": 5100,
            "cache_creation_input_tokens": 2000, "cache_read_input_tokens": 0,
        },
        TokenUsage(5000, 100, cache_write_tokens=2000),
    ),
    "what was written alone is outside the prompt (ours)": (
        {
            "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1250,
            "cache_read_input_tokens": 900, "cache_creation_input_tokens": 200,
            "prompt_tokens_details": {"cached_tokens": 900},
        },
        TokenUsage(1200, 50, cached_input_tokens=900, cache_write_tokens=200),
    ),
    "what was read is nowhere in the sums (ours, after term-llm#424)": (
        {
            "prompt_tokens": 18, "completion_tokens": 9, "total_tokens": 427,
            "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 400,
        },
        TokenUsage(2418, 9, cached_input_tokens=2000, cache_write_tokens=400),
    ),
    "in the details alone (livekit agents#6663)": (
        {
            "prompt_tokens": 4, "completion_tokens": 100, "total_tokens": 5104,
            "prompt_tokens_details": {"cached_tokens": 5000},
        },
        TokenUsage(5004, 100, cached_input_tokens=5000),
    ),
    "beside the completion's reasoning (ours)": (
        {
            "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 3350,
            "cache_read_input_tokens": 2000,
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
        TokenUsage(3000, 350, cached_input_tokens=2000, reasoning_tokens=300),
    ),
    "as much reasoning as was read (ours)": (
        {
            "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1350,
            "prompt_tokens_details": {"cached_tokens": 300},
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
        TokenUsage(1000, 350, cached_input_tokens=300, reasoning_tokens=300),
    ),
    "inside the prompt (gen-code#234)": (
        {
            "prompt_tokens": 4641, "completion_tokens": 50, "total_tokens": 4691,
            "prompt_tokens_details": {"cached_tokens": 4608},
        },
        TokenUsage(4641, 50, cached_input_tokens=4608),
    ),
    "both inside the input (opencode#44229)": (
        {
            "input_tokens": 2600, "output_tokens": 50, "total_tokens": 2650,
            "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400},
        },
        TokenUsage(2600, 50, cached_input_tokens=2000, cache_write_tokens=400),
    ),
    "inside the prompt, and reasoning in the total (ours)": (
        {
            "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1180,
            "prompt_tokens_details": {"cached_tokens": 900},
        },
        TokenUsage(1000, 180, cached_input_tokens=900, reasoning_tokens=130),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("usage", "read"), OF_CACHES.values(), ids=OF_CACHES)
async def test_cached_tokens_are_input_once(usage: dict[str, object], read: TokenUsage) -> None:
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    assert (reply.usage, reply.usage_estimated) == (read, False)


@pytest.mark.parametrize("completion", [20, 200])
async def test_reasoning_in_the_total_alone_is_no_prompt(completion: int) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 100}}
    usage = {"prompt_tokens": 0, "completion_tokens": completion, **details}
    reply = await chat(GOOD | {"usage": usage | {"total_tokens": completion + 100}}).generate(
        REQUEST
    )
    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (completion + 100, 100)
    assert reply.usage_estimated


@pytest.mark.parametrize(
    ("more", "cost"),
    [
        ({"cost": 0.0021, "cost_details": {"upstream_inference_cost": 0.002}}, 0.0021),  # pi#3132
        ({"cost": 0}, 0.0),
        (  # forgecode#1641
            {"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.036}}, 0.036
        ),
        ({"cost": 0, "is_byok": True}, None),
        ({"cost": {"total_cost": 0.4, "currency": "USD"}}, 0.4),
        ({"cost": {"total_cost": 0.4, "currency": "EUR"}}, None),
        ({"cost": 0.003, "currency": "CNY"}, None),
        ({"cost": 0.003, "currency": None}, 0.003),
        ({"cost_in_usd_ticks": 37_756_000}, 0.0037756),
        ({"cost": -1}, None),
        ({"cost": 10**400}, None),
        ({"cost_in_usd_ticks": 10**400}, None),
        ({"cost": float("inf")}, None),
        ({"cost": "0.1"}, None),
        ({"cost": True}, None),
        ({}, None),
    ],
    ids=str,
)  # fmt: skip
async def test_a_reported_cost_is_booked_before_a_list_price(
    more: dict[str, object], cost: float | None
) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 10, **more}
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    row = partial(
        CallRow.of, REQUEST, reply, provider="p", model="m", started_at="2026-01-01T00:00:00+00:00"
    )
    assert row(price=lambda _: None).cost_usd == cost
    assert row(price=lambda _: Price(1, 1)).cost_usd == 60 / 1e6
    listed = Price(1, 1, is_listed=True)
    assert row(price=lambda _: listed).cost_usd == (cost or 60 / 1e6)
    halved = listed.in_batches(0.5, 0.5)  # but what an endpoint reports is what it charges
    assert row(price=lambda _: halved).cost_usd == (cost or 30 / 1e6)


@pytest.mark.parametrize("name", ["cached_tokens", "prompt_cache_hit_tokens"])
async def test_cached_tokens_beside_the_details(name: str) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, name: 64}  # vercel/ai#12352
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    assert reply.usage == TokenUsage(100, 20, cached_input_tokens=64)


@pytest.mark.parametrize(
    "details", [{"cached_tokens": 999}, {"cached_tokens": -1}, {"cached_tokens": "some"}]
)
async def test_malformed_details_of_a_usage_are_left_out(details: dict[str, object]) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "prompt_tokens_details": details}
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    assert (reply.usage, reply.usage_estimated) == (TokenUsage(50, 10), False)


@pytest.mark.parametrize(
    "choice",
    [
        {"finish_reason": "error"},
        {"finish_reason": "abort"},
        {"message": "hello"},
        {"message": {"content": ""}, "finish_reason": None},
        {"error": {"message": "the model aborted"}},
    ],
    ids=str,
)
async def test_an_unusable_reply_with_a_usage_is_paid(choice: dict[str, object]) -> None:
    body = with_choice(**choice) | {"usage": {"prompt_tokens": 50, "completion_tokens": 10}}
    with pytest.raises(ProviderError) as caught:
        await chat(body).generate(REQUEST)
    assert caught.value.reply is not None
    assert caught.value.reply.usage == TokenUsage(50, 10)
    row = CallRow.of(
        REQUEST, caught.value.reply, provider="p", model="m", price=lambda _: Price(1, 1),
        started_at="2026-01-01T00:00:00+00:00", failure=caught.value.kind.value,
    )  # fmt: skip
    assert (row.outcome, row.replied) == (UNUSABLE, True)
    assert Totals.of(row).usage.total_tokens == 60
    with pytest.raises(ProviderError) as of_batch:
        in_a_batch(body)
    assert of_batch.value.reply == caught.value.reply


async def test_a_withheld_reply_with_a_usage_is_paid() -> None:
    error = {"code": "content_filter", "message": "The response was filtered"}
    body = with_choice(error=error) | {"usage": {"prompt_tokens": 50, "completion_tokens": 10}}
    for reply in (await chat(body).generate(REQUEST), in_a_batch(body)):
        assert (reply.stop_reason, reply.usage) == (StopReason.REFUSAL, TokenUsage(50, 10))


async def test_a_whole_reply_may_lack_its_finish_reason() -> None:
    for body in (with_choice(finish_reason=None), without_finish()):
        reply = await chat(body).generate(REQUEST)
        assert (reply.text, reply.stop_reason) == ("hello", StopReason.STOP)


def without_finish() -> dict[str, Any]:
    body = with_choice()
    del body["choices"][0]["finish_reason"]
    return body


async def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    body = json.dumps(with_choice(message={"content": "bad \ud83d end \ud83d\ude00"})).encode()
    reply = await chat(body).generate(REQUEST)
    assert reply.text == "bad \ufffd end \N{GRINNING FACE}"


@pytest.mark.parametrize(
    "reason",
    [
        "error",
        "abort",
        "insufficient_system_resource",
        "time_limit",  # watsonx: TextChatResultChoice
        "not_finished",
        "malformed_model_output",  # inspect_ai#2941
        "malformed_tool_use",
        "network_error",
        "upstream_error: 502",  # this and the next ones: ours
        "Timeout",
        "aborted",
        "canceled",
        "interrupted",
        "server-error",
    ],
)
async def test_a_reply_that_was_broken_off_is_none(reason: str) -> None:
    with pytest.raises(ProviderError, match=f"finish reason {reason}") as caught:
        await chat(with_choice(finish_reason=reason)).generate(REQUEST)
    assert caught.value.retryable


@pytest.mark.parametrize(
    "reason",
    [
        "model_length",
        "token_limit",  # watsonx: TextGenResponseFieldsResultsItem
        "MAX_TOKENS",  # qwen-code#9884
        "max_new_tokens",  # this and the next ones: ours
        "max-length",
        "incomplete",  # of a gateway to the Responses API, whose limit ends most of these
        {"type": "length", "length": 5},
    ],
)
async def test_another_name_for_the_limit(reason: object) -> None:
    reply = await chat(with_choice(finish_reason=reason)).generate(REQUEST)
    assert reply.stop_reason is StopReason.LENGTH


@pytest.mark.parametrize(
    "reason", ["end_turn", "eos_token", "stop_sequence", "unknown", "tool_calls", {"type": "stop"}]
)
async def test_another_name_for_the_end(reason: object) -> None:
    reply = await chat(with_choice(finish_reason=reason)).generate(REQUEST)
    assert (reply.text, reply.stop_reason) == ("hello", StopReason.STOP)


@pytest.mark.parametrize(
    ("total", "output", "hidden"), [(135, 103, 94), (41, 9, 9), (None, 103, 94)]
)
async def test_reasoning_that_is_counted_beside_the_completion_is_output(
    total: int | None, output: int, hidden: int
) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 94}}
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total, **details}
    reply = await chat(GOOD | {"usage": usage}).generate(REQUEST)
    assert reply.usage.output_tokens == output
    assert reply.usage.reasoning_tokens == hidden


class Choice(BaseModel):
    reasoning: str
    answer: Literal["A", "B"]


async def test_half_a_surrogate_pair_inside_the_json_becomes_one_too() -> None:
    content = '{"reasoning": "bad \\ud83d", "answer": "A"}'
    body = json.dumps(with_choice(message={"content": content})).encode()
    request = ChatRequest(messages=REQUEST.messages, max_tokens=50, schema=Choice)
    reply = await Structured(chat(body)).generate(request)
    assert reply.parsed == Choice(reasoning="bad \ufffd", answer="A")


@pytest.mark.parametrize(
    "message", ["Invalid token 'odd-secret' given", "api_key: odd-secret", "Bearer odd-secret"]
)
async def test_the_key_is_in_no_message(message: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await chat({"error": {"message": message}}, status=400).generate(REQUEST)
    assert "odd-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["key sk-abcdefghijk", "hf_abcdefghijk", "Bearer eyJhbGciOi.x", "AIzaSyAbcdefgh"]
)
def test_what_looks_like_a_key_is_masked(text: str) -> None:
    assert "***" in masked_line(text)


@pytest.mark.parametrize(
    "start",
    [
        *("nvapi-", "xai-", "fw_", "tgp_v1_", "pplx-", "csk-", "r8_", "dapi", "AKIA"),
        *("https://host/v1?api_key=", "https://host/v1?key="),
    ],
)
def test_a_key_of_the_endpoint_behind_a_gateway_is_masked(start: str) -> None:
    assert masked_line(f"Upstream refused {start}0Ab9cD8eF7gH6") == f"Upstream refused {start}***"


@pytest.mark.parametrize(
    "text",
    [
        *("API_KEY_INVALID", "the model xai-grok-4-fast", "Map inapis", "dapivirine", "fw_version"),
        "Invalid model 'pplx-70b-online'",
    ],
)
def test_what_is_no_key_is_shown(text: str) -> None:
    assert masked_line(text) == text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "9"}, 9.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "60s"}, 60.0),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": "1000000000"}, 0.0),  # a time of 2001
        ({"x-ratelimit-reset": "9"}, None),
        ({}, None),
    ],
)
def test_the_wait_of_a_header(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset": "{time}"}, 40),
        ({"x-ratelimit-reset": "{time}000"}, 40),
        ({"x-ratelimit-reset": "1000000000"}, 0),  # in 2001
        ({"x-ratelimit-reset": "40"}, 40),
        ({"x-ratelimit-reset": "86400"}, None),  # of a day's limit, perhaps, and not of this one
        ({"x-ratelimit-reset": "86400", "x-ratelimit-remaining": "0"}, 86_400),
        ({"x-ratelimit-reset": "1m30s", "x-ratelimit-remaining": "0"}, 90),
        ({"x-ratelimit-reset": "40", "x-ratelimit-remaining": "7"}, None),
        ({"x-ratelimit-reset": "40", "retry-after": "2"}, 2),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"retry-after": "{time}"}, 40),  # cloud_controller_ng#2544
    ],
)
@pytest.mark.parametrize("is_in_body", [False, True])
async def test_the_reset_of_a_rate_limit(
    headers: dict[str, str], seconds: float | None, is_in_body: bool
) -> None:
    """OpenRouter puts the headers into its body (openclaude#936, smolagents#361)."""
    error: dict[str, Any] = {"message": "Rate limit exceeded", "code": 429}
    reset = int(time.time()) + 40
    headers = {name: value.format(time=reset) for name, value in headers.items()}
    if is_in_body:
        error["metadata"] = {"headers": {name.title(): value for name, value in headers.items()}}
    model = chat({"error": error}, 429, {} if is_in_body else headers)
    with pytest.raises(ProviderError) as caught:
        await model.generate(REQUEST)
    assert caught.value.kind is ErrorKind.RATE_LIMIT
    wait = caught.value.retry_after
    assert wait == (None if seconds is None else pytest.approx(seconds, abs=30))


@pytest.mark.parametrize(
    ("status", "told", "retried"),
    [
        (500, "false", False),  # pi#6586: a gateway has used up its own retries
        (504, "False", False),
        (500, "true", True),
        (500, "perhaps", True),
        (422, "true", True),
        (422, "false", False),
        (401, "true", False),  # a wrong key ends the run
        # gajae-code#2444: what is told after a limit need not be so.
        (429, "false", True),
        (529, "false", True),
    ],
)
async def test_the_endpoint_says_whether_to_retry(status: int, told: str, retried: bool) -> None:
    model = chat({"error": {"message": "busy"}}, status, {"x-should-retry": told})
    with pytest.raises(ProviderError) as caught:
        await model.generate(REQUEST)
    assert caught.value.retryable is retried


async def test_the_words_of_a_407_are_shown() -> None:
    model = chat({"error": {"message": "account is overdue"}}, 407)  # of a gateway, not a proxy
    with pytest.raises(ProviderError, match="407 account is overdue"):
        await model.generate(REQUEST)


async def test_a_wait_in_a_field_of_the_body() -> None:
    error = {"message": "User burst rate limit exceeded", "retry_after": 7}  # posthog#82310
    with pytest.raises(ProviderError) as caught:
        await chat({"error": error}, 429).generate(REQUEST)
    assert caught.value.retry_after == 7


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Token usage limit reached for this minute. Please retry in 20 seconds.", 20),
        ("TPM usage limit reached; retry after 12s", 12),
        ("TPM usage limit reached", None),
    ],
)
async def test_a_limit_that_is_over_soon_is_no_quota(message: str, seconds: float | None) -> None:
    with pytest.raises(ProviderError) as caught:
        await chat({"error": message}, 429).generate(REQUEST)
    assert (caught.value.kind, caught.value.retry_after) == (ErrorKind.RATE_LIMIT, seconds)


async def test_the_reset_of_a_rate_limit_says_nothing_of_another_error() -> None:
    with pytest.raises(ProviderError) as caught:
        await chat({"error": "busy"}, 503, {"x-ratelimit-reset": "3600"}).generate(REQUEST)
    assert caught.value.retry_after is None


@pytest.mark.parametrize(
    ("value", "seconds"), [("34.07s", 34.07), ("1s", 1.0), ("abc", None), (None, None), (3, 3.0)]
)
def test_the_wait_of_gemini(value: object, seconds: float | None) -> None:
    assert seconds_of_duration(value) == seconds


@pytest.mark.parametrize(
    "choice",
    [
        {"delta": {"content": "hello"}},  # nenya#19
        {"message": None, "delta": {"content": "hello"}},
        {"message": {"content": "hello"}, "delta": {}},  # cherry-studio#7658
    ],
    ids=str,
)
async def test_a_whole_reply_may_be_in_a_delta(choice: dict[str, object]) -> None:
    body = GOOD | {"choices": [{"finish_reason": "stop", **choice}]}
    assert (await chat(body).generate(REQUEST)).text == "hello"


@pytest.mark.parametrize(
    "error", [{"message": "", "type": "", "param": "", "code": None}, {"code": 0, "message": ""}]
)
async def test_an_error_of_empty_fields_beside_a_reply_is_none(error: dict[str, object]) -> None:
    for body in (GOOD | {"error": error}, with_choice(error=error)):
        assert (await chat(body).generate(REQUEST)).text == "hello"
    with pytest.raises(ProviderError):
        await chat(GOOD | {"error": error, "choices": []}).generate(REQUEST)
    with pytest.raises(ProviderError):
        await chat(with_choice(error=error, message=None)).generate(REQUEST)
