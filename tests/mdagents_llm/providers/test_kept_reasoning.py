"""Hidden reasoning that an endpoint shows, as it is read on each wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mdagents_llm.chat import ChatReply
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import Thinking
from tests.mdagents_llm.providers.shapes import (
    ANSWER,
    ANSWERED,
    UNREADABLE,
    Shape,
    completion,
    delta,
    served,
    stream,
    what_comes,
)
from tests.mdagents_llm.providers.test_provider_contract import REQUEST

THOUGHT = "The rash is annular."
OF_ANTHROPIC = {
    "id": "x",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 100, "output_tokens": 20},
}


def of_gemini(*parts: str | dict[str, Any]) -> dict[str, Any]:
    content = {"parts": [{"text": part} if isinstance(part, str) else part for part in parts]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20},
    }


def events(*all_: dict[str, Any]) -> str:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in all_)


REPLIES = {
    "reasoning_content": Shape(
        "openai", ANSWERED, completion({"content": ANSWER, "reasoning_content": THOUGHT}), ""
    ),
    "the same in two fields": Shape(
        "openai",
        ANSWERED,
        completion({"content": ANSWER, "reasoning_content": THOUGHT, "reasoning": THOUGHT}),
        "",
    ),
    "tags": Shape(
        "openai", ANSWERED, completion({"content": f"<think>{THOUGHT}</think>{ANSWER}"}), ""
    ),
    "streamed": Shape(
        "openai",
        ANSWERED,
        stream(
            {"model": "m", "choices": [{"delta": {"reasoning": THOUGHT[:9]}}]},
            {"model": "m", "choices": [{"delta": {"reasoning": THOUGHT[9:]}}]},
            delta(ANSWER, finish="stop"),
        ),
        "",
        streams=True,
    ),
    "streamed as parts": Shape(
        "openai",
        ANSWERED,
        stream(
            {"choices": [{"delta": {"reasoning": [{"type": "text", "text": THOUGHT[:9]}]}}]},
            {"choices": [{"delta": {"reasoning": {"text": THOUGHT[9:]}}}]},
            {"choices": [{"delta": {"reasoning": {"signature": "abc"}}}]},
            delta(ANSWER, finish="stop"),
        ),
        "",
        streams=True,
    ),
    "parts": Shape(
        "openai",
        ANSWERED,
        completion(
            {"content": ANSWER, "reasoning_content": [{"type": "thinking", "thinking": THOUGHT}]}
        ),
        "",
    ),
    "responses": Shape(
        "responses",
        ANSWERED,
        {
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
                {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]},
            ],
            "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
        },
        "",
    ),
    "anthropic": Shape(
        "anthropic",
        ANSWERED,
        OF_ANTHROPIC
        | {
            "content": [
                {"type": "thinking", "thinking": THOUGHT, "signature": "x"},
                {"type": "text", "text": ANSWER},
            ]
        },
        "",
    ),
    "anthropic, streamed": Shape(
        "anthropic",
        ANSWERED,
        events(
            {"type": "message_start", "message": OF_ANTHROPIC},
            {
                "type": "content_block_delta",
                "delta": {"type": "thinking_delta", "thinking": THOUGHT},
            },
            {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "x"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ANSWER}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ),
        "",
        streams=True,
    ),
    "gemini": Shape(
        "gemini",
        ANSWERED,
        {
            "candidates": [
                {
                    "content": {"parts": [{"text": THOUGHT, "thought": True}, {"text": ANSWER}]},
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20},
        },
        "",
    ),
    "tags, anthropic": Shape(
        "anthropic",
        ANSWERED,
        OF_ANTHROPIC | {"content": [{"type": "text", "text": f"<think>{THOUGHT}</think>{ANSWER}"}]},
        "anthropic-sdk-python#1109",
    ),
    "no opening tag, anthropic": Shape(
        "anthropic",
        ANSWERED,
        OF_ANTHROPIC | {"content": [{"type": "text", "text": f"{THOUGHT}</think>{ANSWER}"}]},
        "OmniRoute#5245",
    ),
    "tags, gemini": Shape(
        "gemini", ANSWERED, of_gemini(f"<thought>{THOUGHT}</thought>{ANSWER}"), "gemini-cli#26631"
    ),
    "tags beside a thought, gemini": Shape(
        "gemini",
        ANSWERED,
        of_gemini({"text": THOUGHT[9:], "thought": True}, f"<think>{THOUGHT[:9]}</think>{ANSWER}"),
        "ours",
    ),
}
IN_TAGS = ("<thin", "king>", THOUGHT[:9], THOUGHT[9:], "</thinking>", ANSWER[:4], ANSWER[4:])
STREAMED = {
    "openai": Shape(
        "openai", ANSWERED, stream(*map(delta, IN_TAGS), delta(finish="stop")), "", streams=True
    ),
    "responses": Shape(
        "responses",
        ANSWERED,
        events(
            *({"type": "response.output_text.delta", "delta": piece} for piece in IN_TAGS),
            {"type": "response.completed", "response": {"status": "completed"}},
        ),
        "",
        streams=True,
    ),
    "anthropic": Shape(
        "anthropic",
        ANSWERED,
        events(
            {"type": "message_start", "message": OF_ANTHROPIC},
            *(
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}}
                for piece in IN_TAGS
            ),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        ),
        "CLIProxyAPI#1777",
        streams=True,
    ),
    "gemini": Shape(
        "gemini", ANSWERED, stream(*map(of_gemini, IN_TAGS), done=False), "pi#391", streams=True
    ),
}
"""Streams with reasoning in tags."""


@pytest.mark.parametrize("name", REPLIES)
async def test_it_is_apart_from_the_text(name: str, make_runtime: Callable[..., Runtime]) -> None:
    _, reply, _ = await what_comes(REPLIES[name], make_runtime)
    assert isinstance(reply, ChatReply)
    assert reply.reasoning == THOUGHT
    assert THOUGHT not in reply.text


@pytest.mark.parametrize("shape", STREAMED.values(), ids=STREAMED)
async def test_it_is_never_shown(shape: Shape, make_runtime: Callable[..., Runtime]) -> None:
    shown: list[str | None] = []
    _, reply, _ = await what_comes(shape, make_runtime, shown=shown)
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.reasoning) == (ANSWER, THOUGHT)
    assert shown == [ANSWER[:4], ANSWER[4:]]


@pytest.mark.parametrize("wire", ["anthropic", "gemini"])
@pytest.mark.parametrize(
    ("stop", "said", "is_larger"),
    [
        (("end_turn", "STOP"), "its text was in reasoning tags", False),
        (("max_tokens", "MAX_TOKENS"), "--reasoning-tokens", True),
    ],
    ids=["never closed", "cut off"],
)
async def test_a_reply_of_nothing_else_has_no_text(
    wire: str,
    stop: tuple[str, str],
    said: str,
    is_larger: bool,
    make_runtime: Callable[..., Runtime],
) -> None:
    text = '<think>Probably {"answer": "A"}, because'
    content = [{"type": "text", "text": text}]
    body: dict[str, Any] = {**OF_ANTHROPIC, "content": content, "stop_reason": stop[0]}
    if wire == "gemini":
        body = of_gemini(text)
        body["candidates"][0]["finishReason"] = stop[1]
    comes, error, asked = await what_comes(Shape(wire, "", body, "ours"), make_runtime)
    assert comes == UNREADABLE
    assert said in str(error)
    first, second = (
        one["max_tokens"] if wire == "anthropic" else one["generationConfig"]["maxOutputTokens"]
        for one in asked
    )
    assert (second > first) == is_larger


@pytest.mark.parametrize("streams", [False, True])
async def test_the_input_of_a_tool_has_no_tags(
    streams: bool, make_runtime: Callable[..., Runtime]
) -> None:
    given = {"answer": "B", "why": f"<think>{THOUGHT}"}
    tool = {"type": "tool_use", "name": "Opinion", "input": given}
    text = json.dumps(given)
    body: object = OF_ANTHROPIC | {"content": [tool]}
    if streams:
        pieces = [
            {"type": "content_block_delta", "delta": {"partial_json": piece}}
            for piece in (text[:25], text[25:])
        ]
        last = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
        body = events({"type": "message_start", "message": OF_ANTHROPIC}, *pieces, last)
    shape = Shape("anthropic", ANSWERED, body, "ours", streams=streams)
    _, reply, _ = await what_comes(shape, make_runtime)
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.reasoning) == (text, "")


async def test_a_summary_that_is_refused_is_left_out_and_the_effort_stays(
    make_runtime: Callable[..., Runtime],
) -> None:
    # https://github.com/continuedev/continue/issues/9697
    words = (
        "Your organization must be verified to generate reasoning summaries. Please go to: "
        "https://platform.openai.com/settings/organization/general and click on Verify "
        "Organization."
    )
    refusal = {"error": {"message": words, "param": "reasoning.summary"}}
    shape = Shape("responses", ANSWERED, refusal, "", 400, then=True)
    async with served(shape, REPLIES["responses"].body) as (address, asked):
        registry = ModelRegistry(make_runtime())
        thinking = Thinking("low", is_shown=True)
        spec = ModelSpec("vllm", "any", f"{address}/v1", thinking=thinking, api="responses")
        try:
            await registry.model(spec).generate(REQUEST)
        finally:
            await registry.aclose()
    assert [one["reasoning"] for one in asked] == [
        {"effort": "low", "summary": "auto"},
        {"effort": "low"},
    ]
