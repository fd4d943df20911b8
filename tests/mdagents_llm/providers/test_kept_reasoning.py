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
}


@pytest.mark.parametrize("name", REPLIES)
async def test_it_is_apart_from_the_text(name: str, make_runtime: Callable[..., Runtime]) -> None:
    _, reply, _ = await what_comes(REPLIES[name], make_runtime)
    assert isinstance(reply, ChatReply)
    assert reply.reasoning == THOUGHT
    assert THOUGHT not in reply.text


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
