"""What endpoints really send, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mdagents_llm.chat import ChatReply, TokenUsage
from mdagents_llm.endpoints import Runtime
from mdagents_llm.errors import ErrorKind
from mdagents_llm.ledger import CallRow
from mdagents_llm.providers.http_errors import status_error
from tests.conftest import SHARED
from tests.mdagents_llm.providers.published_shapes import FRAMES, SHAPES
from tests.mdagents_llm.providers.shapes import (
    ANSWER,
    ANSWERED,
    DOWN,
    REFUSED,
    RETRIED,
    UNREADABLE,
    USAGE,
    Opinion,
    Shape,
    completion,
    delta,
    stream,
    what_comes,
)

NOT_COUNTED = {
    "no usage", "negative usage", "usage true", "absurd usage", "usage of null",
    "a line separator in the text of an unrequested stream",
}  # fmt: skip
"""Shapes without a usable token usage."""


@pytest.mark.parametrize("name", [*SHAPES, *FRAMES])
async def test_what_endpoints_really_send(
    name: str, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    shape = (SHAPES | FRAMES)[name]
    comes, what, asked = await what_comes(shape, make_runtime)
    assert comes == shape.comes, str(what)
    if comes == ANSWERED:
        assert isinstance(what, ChatReply)
        assert isinstance(what.parsed, Opinion)
        assert what.parsed.answer == "B"
        assert what.usage.total_tokens > 0
        assert what.usage_estimated == (name in NOT_COUNTED)
        assert len(asked) == 1 + shape.then
    if comes == REFUSED:
        assert len(asked) == 1
        assert [row.outcome for row in rows] == ["refused"]
    if comes == DOWN:
        assert len(asked) == 1
    if comes in (RETRIED, DOWN):
        assert "ok" not in {row.outcome for row in rows}
    assert all(row.model.isprintable() for row in rows)
    assert all(row.usage.input_tokens >= 0 for row in rows)


@pytest.mark.parametrize(
    "name",
    [name for name, shape in SHAPES.items() if shape.comes in (REFUSED, RETRIED, DOWN)],
)
async def test_errors_mean_the_same_by_the_typed_way_of_an_sdk(
    name: str, make_runtime: Callable[..., Runtime]
) -> None:
    comes, what, _ = await what_comes(SHAPES[name], make_runtime, LLM_TYPED_CALLS="1")
    assert comes == SHAPES[name].comes, str(what)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached. Please try again in 14.036s. Visit …", 14.036),  # codex#10055
        ("Rate limit is exceeded. Try again in 17 seconds.", 17),  # codex#3764
        ("on requests per day (RPD): Limit 200. Please try again in 7m12s.", 432),  # codex#797
        ("Please try again in 9m38.016s.", 578.016),  # continue#10920
        ("Please retry after 45 seconds", 45),  # paperless-gpt#814
        ("Please retry after 86400 seconds.", 86_400),  # TinyLLM#17
        ("Your quota will reset after 5h59m59s.", 21_599),  # claude-relay-service#746
        ("Please try again in 300ms.", 0.3),
        ("Please wait 8 hours 24 minutes and try again", 30_240),  # vscode-copilot-release#3210
        ("Please wait for 1 hour and 5 minutes.", 3_900),
        ("We waited 30 seconds for a worker.", None),
        ("Please wait 3 steps.", None),
        ("Please try again later, in 5 steps.", None),
        ("Try again in a minute.", None),
        (f"Try again in {'9' * 400} seconds", None),
        ("Try again in 5 \u017f", None),
    ],
)
def test_a_wait_in_words(words: str, seconds: float | None) -> None:
    found = status_error("host", 429, words).retry_after
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        # llama.cpp#20761: the reply follows the place.
        (500, "Failed to parse input at pos 0: if high, retry in 2 hours", ErrorKind.SERVER),
        (500, "Failed to parse input at pos 0: Metformin once-per-day", ErrorKind.SERVER),
        (504, "upstream request timeout: stream reset after 900s", ErrorKind.SERVER),
        (500, "GPU memory usage limit exceeded", ErrorKind.SERVER),
        (400, "max_tokens exceeds the token usage limit", ErrorKind.BAD_REQUEST),
        (400, "The account of the patient was wrong", ErrorKind.BAD_REQUEST),
        (400, "image model input: the size does not exist", ErrorKind.BAD_REQUEST),
        (412, "Precondition failed", ErrorKind.BAD_REQUEST),
        (400, "Unsupported model parameter: top_k", ErrorKind.BAD_REQUEST),
        (400, "maximum context length 8192, HR 40 per minute", ErrorKind.CONTEXT_LENGTH),
    ],
)
def test_words_that_look_like_a_limit(status: int, words: str, kind: ErrorKind) -> None:
    error = status_error("host", status, words)
    assert (error.kind, error.retry_after) == (kind, None)


async def test_thoughts_that_are_only_in_the_total_are_output(
    make_runtime: Callable[..., Runtime],
) -> None:
    _, reply, _ = await what_comes(SHAPES["thoughts in the total"], make_runtime)
    assert isinstance(reply, ChatReply)
    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (425, 405)


ZEROS = dict.fromkeys(USAGE, 0)
REPORTS: dict[str, list[dict[str, object]]] = {
    "zeros first (CLIProxyAPI#4053)": [{"usage": ZEROS}, {"usage": USAGE}],
    "zeros last (ggcode#1286)": [{"usage": USAGE}, {"usage": ZEROS}],
    "null last": [{"usage": USAGE}, {"usage": dict.fromkeys(USAGE)}],
    "input and output apart (ggcode#1286)": [
        {"usage": {"prompt_tokens": 100, "completion_tokens": 0, "total_tokens": 100}},
        {"usage": {"prompt_tokens": 0, "completion_tokens": 20, "total_tokens": 20}},
    ],
    "a count that grows": [
        {"usage": {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}},
        {"usage": USAGE},
    ],
    "in a choice (pi#2017)": [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}
    ],
}


@pytest.mark.parametrize("reports", REPORTS.values(), ids=REPORTS)
async def test_a_later_report_of_tokens_erases_none(
    reports: list[dict[str, object]], make_runtime: Callable[..., Runtime]
) -> None:
    first, *more = [{"choices": []} | report for report in reports]
    body = stream(first, delta(ANSWER), delta(None, "stop"), *more)
    _, reply, _ = await what_comes(Shape("openai", ANSWERED, body, "", streams=True), make_runtime)
    assert isinstance(reply, ChatReply)
    assert (reply.usage, reply.usage_estimated) == (TokenUsage(100, 20), False)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ([(100, 70, 50, 170)], TokenUsage(100, 70, reasoning_tokens=50)),  # llm-gemini#75
        ([(100, 20, 50, 170)], TokenUsage(100, 70, reasoning_tokens=50)),
        ([(100, 20, 50, 120)], TokenUsage(100, 70, reasoning_tokens=50)),
        ([(100, 9, 0, 109), (100, 20, 0, 120)], TokenUsage(100, 20)),
        ([(100, 20, 0, 120), (0, 0, 0, 0)], TokenUsage(100, 20)),
    ],
)
async def test_tokens_of_gemini(
    counts: list[tuple[int, ...]], usage: TokenUsage, make_runtime: Callable[..., Runtime]
) -> None:
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    part = {"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP"}
    texts = [[part], *([] for _ in counts[1:])]
    chunks = [
        {"candidates": text, "usageMetadata": dict(zip(names, numbers, strict=True))}
        for text, numbers in zip(texts, counts, strict=True)
    ]
    body = stream(*chunks, done=False)
    _, reply, _ = await what_comes(Shape("gemini", ANSWERED, body, "", streams=True), make_runtime)
    assert isinstance(reply, ChatReply)
    assert (reply.usage, reply.usage_estimated) == (usage, False)


CACHED, WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"


@pytest.mark.parametrize(
    ("start", "last", "usage"),
    [
        # bifrost#5510: the prompt first, then its split
        (
            {"input_tokens": 8849},
            {"input_tokens": 18, CACHED: 8831, WRITTEN: 0},
            TokenUsage(8849, 426, cached_input_tokens=8831),
        ),
        (
            {"input_tokens": 8834},
            {"input_tokens": 0, CACHED: 8834, WRITTEN: 0},
            TokenUsage(8834, 426, cached_input_tokens=8834),
        ),
        # The cache is reported late, and the input is not repeated.
        (
            {"input_tokens": 10},
            {"input_tokens": 0, CACHED: 5000},
            TokenUsage(5010, 426, cached_input_tokens=5000),
        ),
        (
            {"input_tokens": 8834},
            {"input_tokens": 0, CACHED: 0, WRITTEN: 8834},
            TokenUsage(8834, 426, cache_write_tokens=8834),
        ),
        # the input repeated as 0
        ({"input_tokens": 8834}, {"input_tokens": 0}, TokenUsage(8834, 426)),
        ({"input_tokens": 8834}, {"input_tokens": 0, CACHED: 0}, TokenUsage(8834, 426)),
        (
            {"input_tokens": 18, CACHED: 8831},
            {"input_tokens": 0, CACHED: 8831},
            TokenUsage(8849, 426, cached_input_tokens=8831),
        ),
    ],
)
async def test_a_prompt_in_the_cache_is_counted_once(
    start: dict[str, int],
    last: dict[str, int],
    usage: TokenUsage,
    make_runtime: Callable[..., Runtime],
) -> None:
    events = (
        {"type": "message_start", "message": {"usage": {**start, "output_tokens": 0}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ANSWER}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {**last, "output_tokens": 426},
        },
    )
    shape = Shape("anthropic", ANSWERED, stream(*events, done=False), "", streams=True)
    _, reply, _ = await what_comes(shape, make_runtime)
    assert isinstance(reply, ChatReply)
    assert (reply.usage, reply.usage_estimated) == (usage, False)


FULL = {
    "prompt_tokens": 100,
    "completion_tokens": 100_000,
    "total_tokens": 100_100,
    "completion_tokens_details": {"reasoning_tokens": 100_000},
}
OF_GEMINI = {"promptTokenCount": 100, "thoughtsTokenCount": 100_000, "totalTokenCount": 100_100}
AT_THEIR_LIMIT = {
    "no choices": Shape("openai", "", {"choices": [], "usage": FULL}, "litellm#38301"),
    "no text": Shape("openai", "", completion({"content": ""}, usage=FULL), "ours"),
    "no text, streamed": Shape(
        "openai", "", stream(delta(finish="stop", usage=FULL)), "ours", streams=True
    ),
    "no choices, streamed": Shape(
        "openai", "", stream({"choices": [], "usage": FULL}), "ours", streams=True
    ),
    "anthropic": Shape(
        "anthropic",
        "",
        {
            "content": [{"type": "thinking", "thinking": "Probably"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 100_000},
        },
        "ours",
    ),
    "gemini": Shape("gemini", "", {"usageMetadata": OF_GEMINI}, "ours"),
}


@pytest.mark.parametrize("shape", AT_THEIR_LIMIT.values(), ids=AT_THEIR_LIMIT)
async def test_a_reply_that_used_up_its_limit_for_reasoning_gets_a_larger_one(
    shape: Shape, make_runtime: Callable[..., Runtime]
) -> None:
    comes, error, asked = await what_comes(shape, make_runtime)
    assert comes == UNREADABLE
    assert "--reasoning-tokens" in str(error)
    first, second = (one.get("generationConfig", one) for one in asked)
    assert any(second[name] > first[name] for name in first if "tokens" in name.lower())


async def test_fractions_of_tokens_are_rounded(make_runtime: Callable[..., Runtime]) -> None:
    usage = {"input_tokens": 120.2, "output_tokens": 35, "cache_read_input_tokens": 80.8}
    body = {"content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
    shape = Shape("anthropic", ANSWERED, body | {"usage": usage}, "new-api#1545")
    _, reply, _ = await what_comes(shape, make_runtime)
    assert isinstance(reply, ChatReply)
    assert reply.usage == TokenUsage(201, 35, cached_input_tokens=81)


async def test_a_reply_without_text_says_where_the_text_was(
    make_runtime: Callable[..., Runtime],
) -> None:
    _, error, _ = await what_comes(SHAPES["all text in reasoning_content"], make_runtime)
    assert "reasoning_content" in str(error)


PUBLISHED = SHARED / "endpoint_shapes" / "shapes.jsonl"
COMES = {
    "err_string_seed": ANSWERED, "detail_schema": ANSWERED, "or_wrapped_temp": ANSWERED,
    "xai_bio_first": ANSWERED, "invalid_prompt": REFUSED, "azure_filter": REFUSED,
    "list_content": ANSWERED, "list_content-stream": ANSWERED, "or_200_402": DOWN,
    "no_choices_key-stream": ANSWERED, "stream_unverified-stream": ANSWERED,
    "gemini_compat": ANSWERED, "no_usage": ANSWERED, "vllm_reasoning": UNREADABLE,
    "json_fence": ANSWERED, "html503": RETRIED, "an_blockedstream-stream": REFUSED,
    "an_529": RETRIED, "ge_tail_safety-stream": REFUSED, "ge_max": UNREADABLE,
}  # fmt: skip


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the shared data are not there")
@pytest.mark.parametrize("name", COMES)
async def test_the_shared_shapes(name: str, make_runtime: Callable[..., Runtime]) -> None:
    cases = map(json.loads, PUBLISHED.read_text("utf-8").splitlines())
    case = next(case for case in cases if case["id"] == name)
    shape = Shape(
        case["wire"], COMES[name], case["body"], case["source"], case["status"], case["stream"],
        then=case["status"] == 400 and COMES[name] == ANSWERED, headers=case["headers"],
    )  # fmt: skip
    comes, what, _ = await what_comes(shape, make_runtime)
    assert comes == shape.comes, str(what)


GEMINI_COUNTS = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
FAILED: dict[str, tuple[str, Any]] = {
    "chunk with choices": (
        "openai",
        {
            "error": {"message": "Provider disconnected", "code": 502},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            "usage": USAGE,
        },
    ),
    "choice": (
        "openai",
        {"choices": [{"delta": {}, "error": {"message": "gone", "code": 502}, "usage": USAGE}]},
    ),
    "response": (
        "responses",
        {
            "type": "response.failed",
            "response": {
                "status": "failed",
                "error": {"code": "server_error", "message": "The model failed"},
                "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
            },
        },
    ),
    "after the usage": ("gemini", {"error": {"code": 503, "message": "overloaded"}}),
}


@pytest.mark.parametrize("name", FAILED)
async def test_the_tokens_of_an_error_in_a_stream_are_booked(
    name: str, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    wire, error = FAILED[name]
    text = {"content": {"role": "model", "parts": [{"text": "The"}]}}
    begun = [{"candidates": [text], "usageMetadata": GEMINI_COUNTS}] if wire == "gemini" else []
    body = stream(*begun, error, done=False)
    comes, what, _ = await what_comes(Shape(wire, RETRIED, body, "", streams=True), make_runtime)
    assert comes == RETRIED, str(what)
    assert {row.usage for row in rows} == {TokenUsage(100, 20)}
    assert {row.outcome for row in rows} == {"unusable"}


async def test_a_filter_that_stops_a_stream_of_gemini_is_booked_with_its_tokens(
    make_runtime: Callable[..., Runtime],
) -> None:
    error = {"error": {"code": 400, "message": "The output was blocked by the safety filter"}}
    body = stream({"candidates": [], "usageMetadata": GEMINI_COUNTS}, error, done=False)
    shape = Shape("gemini", REFUSED, body, "ours", streams=True)
    comes, what, _ = await what_comes(shape, make_runtime)
    assert comes == REFUSED, str(what)
    assert getattr(what, "usage", None) == TokenUsage(100, 20)


ESTIMATED = 1
UNCOUNTED: dict[str, tuple[dict[str, int], tuple[int, int], bool]] = {
    "no prompt (ollama#5370)": (
        {"prompt_tokens": 0, "completion_tokens": 20, "total_tokens": 20},
        (ESTIMATED, 20),
        True,
    ),
    "the prompt in the total alone (ours)": (
        {"prompt_tokens": 0, "completion_tokens": 20, "total_tokens": 120},
        (100, 20),
        False,
    ),
    "no completion (ours)": (
        {"prompt_tokens": 100, "completion_tokens": 0, "total_tokens": 100},
        (100, ESTIMATED),
        True,
    ),
}


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        (name, wire)
        for name in UNCOUNTED
        for wire in ("openai", "anthropic", "gemini")
        if wire != "anthropic" or "total" not in name  # which its usage lacks
    ],
)
async def test_a_count_of_0_for_a_text_is_none(
    name: str, wire: str, make_runtime: Callable[..., Runtime]
) -> None:
    usage, counts, is_estimated = UNCOUNTED[name]
    prompt, output, total = usage.values()
    anthropic = {"input_tokens": prompt, "output_tokens": output}
    named = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
    gemini = {name: n for name, n in zip(named, usage.values(), strict=True) if n}
    part = {"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP"}
    text = {"content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
    bodies: dict[str, dict[str, object]] = {
        "openai": completion(usage=usage),
        "anthropic": text | {"usage": anthropic},
        "gemini": {"candidates": [part], "usageMetadata": gemini},
    }
    _, reply, _ = await what_comes(Shape(wire, ANSWERED, bodies[wire], ""), make_runtime)
    assert isinstance(reply, ChatReply)
    assert reply.usage_estimated == is_estimated
    assert reply.usage.total_tokens >= total
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    for count, expected in zip(
        (reply.usage.input_tokens, reply.usage.output_tokens), counts, strict=True
    ):
        assert expected in (ESTIMATED, count)


@pytest.mark.parametrize(
    ("finish", "text", "comes"),
    [
        ("MISSING_THOUGHT_SIGNATURE", ANSWER, ANSWERED),  # litellm#40864
        ("MISSING_THOUGHT_SIGNATURE", "", RETRIED),
        ("OTHER", "", RETRIED),  # envoyproxy/ai-gateway#2118
        ("OTHER", '{"ans', RETRIED),
        ("SAFETY", "", REFUSED),
        ("LANGUAGE", "", REFUSED),
        ("ESCALATION", "", REFUSED),
    ],
)
async def test_finish_reasons_of_gemini(
    finish: str, text: str, comes: str, make_runtime: Callable[..., Runtime]
) -> None:
    parts = [{"text": text}] if text else []
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish}
    body = {"candidates": [candidate], "usageMetadata": GEMINI_COUNTS}
    came, what, _ = await what_comes(Shape("gemini", comes, body, ""), make_runtime)
    assert came == comes, str(what)
