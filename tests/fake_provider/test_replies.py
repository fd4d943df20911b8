"""The fake provider, asked through the real SDKs: replies, streams, schemas, scripts, the log."""

from __future__ import annotations

import json
from typing import Any, Literal

import openai
import pytest
from google.genai import types
from pydantic import BaseModel, Field

from mdagents_llm.json_schema import reply_schema
from tests.fake_provider import MISSING, FakeProvider, FieldPath, SeenRequest, Usage
from tests.fake_provider.conftest import QUESTION, SYSTEM, Ask

PROMPT_TOKENS = -(-(len(SYSTEM) + len(QUESTION)) // 4)


class Expert(BaseModel):
    role: str
    reports_to: str | None


class Panel(BaseModel):
    experts: list[Expert] = Field(min_length=3, max_length=3)
    answer: Literal["A", "B", "C", "D"]
    confidence: float = Field(ge=0, le=1)
    reasoning: str


def text_of(completion: Any) -> str:
    return completion.choices[0].message.content or ""


# -- plain and streamed replies -----------------------------------------------------------------


async def test_openai_plain(provider: FakeProvider, ask_openai: Ask) -> None:
    completion = await ask_openai(temperature=0.7, seed=5)
    text = text_of(completion)
    tokens = -(-len(text) // 4)
    assert len(text.split()) == 40
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == "gpt-test"
    assert completion.usage.prompt_tokens == PROMPT_TOKENS
    assert completion.usage.completion_tokens == tokens
    assert completion.usage.total_tokens == PROMPT_TOKENS + tokens
    (call,) = provider.calls
    assert (call.index, call.model, call.status) == (0, "gpt-test", 200)
    assert (call.outcome, call.streamed, call.reply) == ("ok", False, text)
    assert call.roles == ("system", "user")
    assert call.messages == (SYSTEM, QUESTION)
    assert call.body["temperature"] == 0.7
    assert call.usage == Usage(PROMPT_TOKENS, tokens)
    assert call.started <= call.ended


async def test_gemini_plain(provider: FakeProvider, ask_gemini: Ask) -> None:
    response = await ask_gemini(temperature=0.7, seed=5)
    tokens = -(-len(response.text) // 4)
    assert len(response.text.split()) == 40
    assert response.candidates[0].finish_reason is types.FinishReason.STOP
    assert response.model_version == "gemini-test"
    assert response.usage_metadata.prompt_token_count == PROMPT_TOKENS
    assert response.usage_metadata.candidates_token_count == tokens
    assert response.usage_metadata.total_token_count == PROMPT_TOKENS + tokens
    (call,) = provider.calls
    assert (call.model, call.reply) == ("gemini-test", response.text)
    assert call.roles == ("system", "user")
    assert call.messages == (SYSTEM, QUESTION)
    assert call.body["generationConfig"]["seed"] == 5


@pytest.mark.parametrize("include_usage", [True, False])
async def test_openai_stream(provider: FakeProvider, ask_openai: Ask, include_usage: bool) -> None:
    plain = await ask_openai()
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if include_usage else {}
    chunks = [chunk async for chunk in await ask_openai(stream=True, **options)]
    deltas = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(deltas) == text_of(plain)
    assert len([delta for delta in deltas if delta]) > 5
    assert [chunk.usage for chunk in chunks if chunk.usage] == [plain.usage] * include_usage
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"
    assert provider.calls[1].streamed
    assert provider.calls[1].reply == text_of(plain)
    assert provider.calls[1].usage == provider.calls[0].usage


async def test_gemini_stream(provider: FakeProvider, ask_gemini: Ask) -> None:
    plain = await ask_gemini()
    chunks = [chunk async for chunk in await ask_gemini(stream=True)]
    assert "".join(chunk.text or "" for chunk in chunks) == plain.text
    assert len(chunks) > 5
    assert chunks[-1].usage_metadata == plain.usage_metadata
    reasons = [chunk.candidates[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + [types.FinishReason.STOP]
    assert provider.calls[1].streamed


async def test_latency_delays_the_reply(provider: FakeProvider, ask_openai: Ask) -> None:
    provider.latency = 0.03
    await ask_openai()
    (call,) = provider.calls
    assert call.ended - call.started >= 0.03


# -- structured replies -------------------------------------------------------------------------


async def test_fills_a_schema(ask_openai: Ask, ask_gemini: Ask) -> None:
    for text in (
        text_of(await ask_openai(schema=Panel)),
        (await ask_gemini(schema=Panel)).text,
    ):
        panel = Panel.model_validate_json(text)
        assert len({expert.role for expert in panel.experts}) == 3
        assert len(panel.reasoning.split()) == 40


async def test_a_schema_in_the_prompt_is_followed(ask_openai: Ask) -> None:
    shown = json.dumps(reply_schema(Panel), indent=2)
    question = f"{QUESTION} Example: {{}}. Answer as JSON that follows this schema:\n{shown}\nGo."
    Panel.model_validate_json(text_of(await ask_openai(question)))


async def test_words_by_field(provider: FakeProvider, ask_openai: Ask) -> None:
    provider.words_by_field = {"reasoning": 60}
    said = json.loads(text_of(await ask_openai(schema=Panel)))
    assert len(said["reasoning"].split()) == 60


async def test_refuses_schemas_that_it_does_not_know(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    class Coded(BaseModel):
        code: str = Field(pattern="^[A-E]$")

    with pytest.raises(openai.BadRequestError, match="pattern"):
        await ask_openai(schema=Coded)
    assert provider.outcomes == {"bad_request": 1}


# -- tokens -------------------------------------------------------------------------------------


async def test_reasoning_tokens(provider: FakeProvider, ask_openai: Ask, ask_gemini: Ask) -> None:
    provider.reasoning_tokens = 300
    completion = await ask_openai()
    visible = -(-len(text_of(completion)) // 4)
    assert completion.usage.completion_tokens == visible + 300
    assert completion.usage.completion_tokens_details.reasoning_tokens == 300
    response = await ask_gemini()
    visible = -(-len(response.text) // 4)
    assert response.usage_metadata.candidates_token_count == visible
    assert response.usage_metadata.thoughts_token_count == 300
    assert response.usage_metadata.total_token_count == PROMPT_TOKENS + visible + 300
    assert provider.calls[1].usage == Usage(PROMPT_TOKENS, visible + 300, 0, 300)


async def test_prompt_cache_counts_whole_blocks_of_known_prefixes(
    provider: FakeProvider, ask_openai: Ask, ask_gemini: Ask
) -> None:
    case = "The same long vignette. " * 50  # 1,200 characters: two blocks of 128 tokens and a rest

    async def cached(question: str) -> int:
        usage = (await ask_openai(question)).usage
        tokens: int = usage.prompt_tokens_details.cached_tokens
        return tokens

    assert await cached(case) == 0
    provider.prompt_cache = True
    assert [await cached(case + last) for last in ("", "first", "second")] == [0, 256, 256]
    assert await cached("Another beginning. " + case) == 0
    usages = [(await ask_gemini(case)).usage_metadata for _ in range(2)]
    assert [usage.cached_content_token_count for usage in usages] == [None, 256]


async def test_a_reply_longer_than_its_limit_is_cut_off(
    provider: FakeProvider, ask_openai: Ask, ask_gemini: Ask
) -> None:
    completion = await ask_openai(max_completion_tokens=10)
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage.completion_tokens == 10
    assert len(text_of(completion)) == 40
    response = await ask_gemini(max_output_tokens=10)
    assert response.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    provider.reasoning_tokens = 20
    completion = await ask_openai(max_tokens=10)
    assert (text_of(completion), completion.usage.completion_tokens) == ("", 10)


# -- determinism --------------------------------------------------------------------------------


async def test_replies_depend_on_the_seed_and_the_request_only(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    async def replies(seed: int) -> list[str]:
        provider.seed = seed
        texts = [text_of(await ask_openai(f"question {n}")) for n in range(5)]
        texts += [text_of(await ask_openai("question 0", seed=n)) for n in range(3)]
        texts.append(text_of(await ask_openai("question 0")))
        return texts

    first, again, other = await replies(1), await replies(1), await replies(2)
    assert first == again
    assert first[0] == first[-1], "the same request, later, gets the same reply"
    assert len(set(first)) == 8
    assert not set(first) & set(other)


# -- scripts ------------------------------------------------------------------------------------


async def test_scripted_fields_are_completed(provider: FakeProvider, ask_openai: Ask) -> None:
    provider.when("chest pain", {"answer": "C", "experts": [{"role": "Nurse"}]})
    said = json.loads(text_of(await ask_openai(schema=Panel)))
    assert said["answer"] == "C"
    assert said["experts"][0]["role"] == "Nurse"
    assert said.keys() == Panel.model_fields.keys()


async def test_the_first_rule_that_matches_wins_until_it_is_used_up(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    provider.when(lambda request: request.seed == 1, "seeded")
    provider.when("chest", "first", times=2)
    provider.when("chest", lambda request: f"{request.model} {request.index}")
    texts = [text_of(await ask_openai()) for _ in range(3)]
    assert texts == ["first", "first", "gpt-test 2"]
    assert text_of(await ask_openai(seed=1)) == "seeded"
    assert len(text_of(await ask_openai("Other")).split()) == 40


async def test_scripts_reach_gemini_and_free_text(provider: FakeProvider, ask_gemini: Ask) -> None:
    provider.when(SYSTEM, {"answer": "D"})
    assert (await ask_gemini()).text == '{"answer": "D"}'


async def test_field_policy(provider: FakeProvider, ask_openai: Ask) -> None:
    def answer_with_b(request: SeenRequest, path: FieldPath) -> object:
        return "B" if path == ("answer",) and "chest" in request.text else MISSING

    provider.field_policy = answer_with_b
    assert Panel.model_validate_json(text_of(await ask_openai(schema=Panel))).answer == "B"


async def test_a_rule_that_raises_fails_the_test_that_wrote_it(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    provider.when(lambda request: bool(request.body["absent"]), "never")
    with pytest.raises(openai.InternalServerError, match="absent"):
        await ask_openai()
    assert provider.outcomes == {"script_error": 1}
    with pytest.raises(KeyError, match="absent"):
        provider.__exit__(None)
    provider.errors.clear()
