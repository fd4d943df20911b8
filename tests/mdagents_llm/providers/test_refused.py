"""How endpoints say that they do not take what says how much to think."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import ProviderError
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import ModelInfo, Thinking, load_model_configs
from mdagents_llm.providers.anthropic_messages import _with_budget
from mdagents_llm.providers.gemini import _thinking
from mdagents_llm.providers.refusals import is_refused
from mdagents_llm.providers.refused import Refused
from tests.mdagents_llm.providers.shapes import (
    ANSWER,
    REQUEST,
    RETRIED,
    SPECS,
    USAGE,
    Shape,
    completion,
    delta,
    served,
    stream,
    what_comes,
)

OPENAI, ANTHROPIC, GEMINI = ("reasoning_effort",), ("thinking", "effort"), ("thinking_config",)


@pytest.mark.parametrize(
    ("sent", "refused", "words"),
    [
        (OPENAI, OPENAI, "reasoning_effort must be one of `none` or `default`"),  # pi#1745
        (OPENAI, OPENAI, '"llama3.1:8b" does not support thinking'),  # openclaude#1371
        (OPENAI, OPENAI, "Model x does not support parameter reasoningEffort."),  # litellm#16265
        (OPENAI, OPENAI, 'think value "max" is not supported for this model'),  # ollama#12561
        (OPENAI, OPENAI, "Reasoning is mandatory for this endpoint and cannot be disabled."),
        (OPENAI, OPENAI, "Unrecognized request argument supplied: reasoning_effort"),
        (OPENAI, (), "This model's maximum context length is 4096 tokens"),
        (OPENAI, (), "temperature is not supported with this model"),
        (ANTHROPIC, ("thinking",), "adaptive thinking is not supported on this model"),
        (ANTHROPIC, ("effort",), "This model does not support the effort parameter."),
        (ANTHROPIC, ("thinking",), "`max_tokens` must be greater than `thinking.budget_tokens`."),
        (GEMINI, GEMINI, "Budget 0 is invalid. This model only works in thinking mode."),
        (GEMINI, GEMINI, "Thinking level MINIMAL is not supported for this model."),
    ],
)
def test_words_that_refuse_to_be_told_how_to_think(
    sent: tuple[str, ...], refused: tuple[str, ...], words: str
) -> None:
    assert tuple(name for name in sent if is_refused(name, 400, words)) == refused


SYSTEM_REFUSED = {
    "developer instruction": "Developer instruction is not enabled for models/x",  # new-api#989
    "system role": "System role not supported",  # vllm#2964
    "value of a role": "Unsupported value: 'messages[0].role' does not support 'system' with this "
    "model.",  # baml#2109
    # autogen#1037
    "alternation": "Conversation roles must alternate user/assistant/user/assistant/...",
    # opencode#5034
    "roles": "Only user, assistant and tool roles are supported, got system.",
}
OF_GEMINI = {
    "candidates": [{"content": {"parts": [{"text": ANSWER}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}
OF_RESPONSES = {
    "output": [{"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}],
    "status": "completed",
}
WHOLE = {"openai": completion(), "gemini": OF_GEMINI, "responses": OF_RESPONSES}


@pytest.mark.parametrize("words", SYSTEM_REFUSED.values(), ids=SYSTEM_REFUSED)
@pytest.mark.parametrize("wire", WHOLE)
async def test_a_refused_system_prompt_begins_the_first_turn(
    wire: str, words: str, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    param = "messages[0].role" if "role'" in words else None
    error = {"code": "unsupported_value", "message": words, "param": param}
    shape = Shape(wire, "", {"error": error}, "", 400, then=True)
    provider, name, path = SPECS[wire]
    asks = ChatMessage("user", "Which one?")
    request = ChatRequest((ChatMessage("system", "Be short."), asks), 200)
    async with served(shape, WHOLE[wire]) as (address, asked):
        keys = Environment(dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY"), "test-key"))
        spec = ModelSpec(
            provider, name, f"{address}{path}", api="responses" if wire == "responses" else ""
        )
        async with aclosing(ModelRegistry(make_runtime(environment=keys))) as registry:
            model = registry.model(spec)
            for _ in range(2):
                assert (await model.generate(request)).text == ANSWER
    assert len(asked) == 3
    assert [row.outcome for row in rows] == ["setting_refused", "ok", "ok"]
    turns = [body.get("messages") or body.get("input") or body["contents"] for body in asked]
    for body, turn in zip(asked[1:], turns[1:], strict=True):
        (only,) = turn
        assert only["role"] == "user"
        assert "Be short.\\n\\nWhich one?" in json.dumps(only)
        assert "systemInstruction" not in body


@pytest.mark.parametrize(
    ("messages", "taken"),
    [
        ((), ("Be short.\n\n",)),
        ((ChatMessage("assistant", "A"),), ("Be short.\n\n", "A")),
        ((ChatMessage("user", "Q", (1,), (), 1),), ("Be short.\n\nQ",)),
    ],
)
def test_a_prompt_without_a_system_role(
    messages: tuple[ChatMessage, ...], taken: tuple[str, ...]
) -> None:
    prompt = (ChatMessage("system", "Be short."), *messages)
    refused = Refused()
    assert refused.taken(prompt) is prompt
    with pytest.raises(ProviderError, match="System role"):
        refused.raise_for(["system"], "host", 400, "System role not supported")
    assert refused.taken(messages) is messages
    first, *rest = refused.taken(prompt)
    assert (first.content, *(one.content for one in rest)) == taken
    assert first.role == "user"
    assert all(end == len(first.content) for end in (*first.shared, first.pictures_at or 11))


@pytest.mark.parametrize(
    ("words", "about"),
    [
        ("The system is not available", ""),
        ("temperature is not supported by this system", ""),
        ("System role not supported", "temperature"),
        ("The system prompt is too long", ""),
    ],
)
def test_words_that_refuse_no_system_prompt(words: str, about: str) -> None:
    assert not is_refused("system", 400, words, about)


@pytest.mark.parametrize(
    ("status", "words", "refused"),
    [
        (500, "Conversation roles must alternate user/assistant/user/assistant/...", True),
        (500, "Only user and assistant roles are supported! at row 1, column 2", True),
        (503, "System role not supported", False),
        # opencode#5034, vllm#6862: of turns, not of the system prompt
        (500, "After the optional system message, conversation roles must alternate user", False),
    ],
)
def test_errors_of_chat_templates(status: int, words: str, refused: bool) -> None:
    assert is_refused("system", status, words) is refused
    assert not is_refused("temperature", status, words)


@pytest.mark.parametrize(
    ("is_one", "words"),
    [
        (
            True,
            "Unsupported value: 'stream' does not support true with this model.",
        ),  # litellm#7693
        (True, "Your organization must be verified to stream this model."),  # crush#422
        (True, "Unrecognized request argument supplied: stream"),
        (True, "got an unexpected keyword argument 'stream'"),
        (True, 'json: unknown field "stream"'),
        (True, "stream: Extra inputs are not permitted"),
        (True, "Streaming is not supported for this model"),
        (True, "Stream error: streaming is not available"),
        (True, "Streaming failed: not supported for this model"),
        (True, "stream: unexpected value; permitted: False"),  # pydantic 1
        (True, "unknown_parameter: stream"),
        (True, "The parameter stream is unrecognized"),
        (True, "Unknown args: stream"),
        (False, "Stream error: unexpected EOF"),  # maple-proxy#47
        (False, "stream disconnected before completion: unknown"),
        (False, "Stream ended unexpectedly"),
        (False, "Received an unexpected response while streaming"),
        (False, "Stream error: unknown field `x`"),
        (False, "An unknown problem while streaming"),
    ],
)
def test_words_that_refuse_a_stream(is_one: bool, words: str) -> None:
    assert is_refused("stream", 400, words) == is_one


@pytest.mark.parametrize("setting", ["seed", "stream_options", "reasoning_effort"])
@pytest.mark.parametrize("words", ["unknown_parameter: {}", "UnknownParameter {}", "{}: unknown"])
def test_words_that_do_not_know_a_setting(setting: str, words: str) -> None:
    assert is_refused(setting, 400, words.format(setting))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("max_tokens", "max_tokens must be greater than 0"),
        ("seed", "max_tokens must be greater than 0, seed ok"),
        ("response_format", "response_format: messages length must be greater than 0"),
        ("temperature", "temperature: Input should be less than or equal to 1"),  # talemate#102
        ("temperature", "temperature must be greater than or equal to 0"),
        ("temperature", "temperature must be in range [0, 2]"),
        ("reasoning", "An unexpected error occurred during reasoning"),
        ("seed", "seed 1: unexpected EOF"),
    ],
)
def test_words_that_refuse_another_value(setting: str, words: str) -> None:
    assert not is_refused(setting, 422, words)


@pytest.mark.parametrize(
    ("wire", "begun"),
    [
        ("openai", delta('{"an')),
        ("openai", {"choices": [{"delta": {"reasoning_content": "Hm"}}]}),
        (
            "anthropic",
            {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"an'}},
        ),
    ],
)
async def test_an_error_after_the_first_text_refuses_no_setting(
    wire: str, begun: Any, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    words = "stream, seed and temperature are not supported"
    error = {"type": "error", "error": {"message": words}}
    shape = Shape(wire, RETRIED, stream(begun, error), "ours", streams=True)
    comes, what, asked = await what_comes(shape, make_runtime)
    assert comes == RETRIED, str(what)
    assert {row.outcome for row in rows} == {"server_error"}
    assert all(one == asked[0] for one in asked)


@pytest.mark.parametrize("typed", ["", "1"])
async def test_an_endpoint_that_only_streams_is_asked_for_streams_by_all_calls(
    typed: str, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    asked: list[bool] = []

    async def answer(request: web.Request) -> web.Response:
        is_streamed = bool((await request.json()).get("stream"))
        asked.append(is_streamed)
        await asyncio.sleep(0.05)  # so that the calls overlap
        if not is_streamed or len(asked) == 1:  # ragflow#5912
            words = "Streaming is not available" if is_streamed else "only support stream mode"
            return web.json_response({"error": {"message": words}}, status=400)
        body = stream(delta(ANSWER), delta(None, "stop", usage=USAGE))
        return web.Response(body=body.encode(), headers={"content-type": "text/event-stream"})

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    keys = {"OPENAI_API_KEY": "test-key", "LLM_TYPED_CALLS": typed}
    runtime = make_runtime(environment=Environment(keys))
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        async with aclosing(ModelRegistry(runtime)) as registry:
            model = registry.model(ModelSpec("openai", "some-model", address))
            first = await model.generate(REQUEST, lambda text: None)
            assert asked == [True, False, True]
            others = await asyncio.gather(*(model.generate(REQUEST) for _ in range(3)))
        async with aclosing(ModelRegistry(runtime)) as registry:
            model = registry.model(ModelSpec("openai", "some-model", address))
            others += await asyncio.gather(*(model.generate(REQUEST) for _ in range(3)))
    finally:
        await runner.cleanup()
    assert [json.loads(reply.text) for reply in (first, *others)] == [json.loads(ANSWER)] * 7
    outcomes = [row.outcome for row in rows]
    assert outcomes[:2] == ["stream_refused", "setting_refused"]
    assert set(outcomes) == {"stream_refused", "setting_refused", "ok"}


@pytest.mark.parametrize(
    ("budget", "limit", "sent"),
    [
        (16_384, 17_384, (16_384, 17_384)),
        (16_384, 4_000, (3_000, 4_000)),
        (1_024, 571, (1_024, 2_024)),
    ],
)
def test_a_budget_is_below_the_limit(budget: int, limit: int, sent: tuple[int, int]) -> None:
    body = _with_budget({"type": "enabled", "budget_tokens": budget}, limit, 1_000)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": sent[0]}
    assert body["max_tokens"] == sent[1]


@pytest.mark.parametrize(
    ("model", "effort", "budget"),
    [
        ("gemini-2.5-pro", "none", 128),
        ("gemini-2.5-flash", "none", 0),
        ("gemini-2.5-flash-lite", "none", 0),
        ("gemini-2.5-flash-lite", "minimal", 1_024),
    ],
)
def test_a_budget_of_gemini_is_one_that_the_model_takes(
    model: str, effort: str, budget: int
) -> None:
    config = _thinking(model, ModelInfo(thinking=Thinking(effort)))
    assert config is not None
    assert config.thinking_budget == budget


def test_a_limit_of_the_user_holds_whatever_the_room() -> None:
    info = load_model_configs().info("openai", "gpt-5").asked_to(Thinking("high", max_tokens=4_000))
    assert info.limit(ChatRequest((ChatMessage("user", "?"),), 100, headroom=99_000)) == 4_000
