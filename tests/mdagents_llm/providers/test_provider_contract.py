"""What every provider must do, the same for all: each wire in turn, and the embedded model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from mdagents_llm.chat import (
    CallLabels,
    ChatMessage,
    ChatModel,
    ChatRequest,
    StopReason,
    TokenUsage,
)
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError, StructuredOutputError
from mdagents_llm.layers.retry import FATAL, RetryPolicy
from mdagents_llm.ledger import UNUSABLE, CallRow
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import ModelInfo, load_model_configs
from tests.conftest import CACHE_DIR
from tests.fake_provider import FakeProvider


class Choice(BaseModel):
    """A reply with reasoning before the answer."""

    reasoning: str = Field(json_schema_extra={"minLength": 5, "maxLength": 200})
    answer: Literal["A", "B", "C", "D"]


REQUEST = ChatRequest(
    messages=(
        ChatMessage("system", "You answer questions."),
        ChatMessage("user", "Which vitamin prevents scurvy?\nA) A\nB) B\nC) C\nD) D"),
    ),
    max_tokens=200,
    temperature=0.7,
    seed=1,
    labels=CallLabels("case-1", "opinion", "expert-1", "expert"),
)


WIRES = (
    "openai", "openai-typed", "azure", "azure-dated", "gemini", "vertex",
    "responses", "responses-typed", "responses-azure", "responses-azure-dated",
    "anthropic", "anthropic-typed", "anthropic-format",
)  # fmt: skip
"""Ways to speak to a provider; each is asked the same."""

_VARIABLES = {
    "azure-dated": {"AZURE_OPENAI_API_VERSION": "2024-10-21"},
    "vertex": {"GOOGLE_GENAI_USE_VERTEXAI": "true"},
    "openai-typed": {"LLM_TYPED_CALLS": "1"},
    "responses-typed": {"LLM_TYPED_CALLS": "1"},
    "responses-azure-dated": {"AZURE_OPENAI_API_VERSION": "2025-04-01-preview"},
    "anthropic-typed": {"LLM_TYPED_CALLS": "1"},
}
_MODELS = {
    "openai": "openai/gpt-4o-mini",
    "openai-typed": "openai/gpt-4o-mini",
    "azure": "azure/our-deployment",
    "azure-dated": "azure/our-deployment",
    "responses": "openai/gpt-4o-mini",
    "responses-typed": "openai/gpt-4o-mini",
    "responses-azure": "azure/our-deployment",
    "responses-azure-dated": "azure/our-deployment",
    "gemini": "google/gemini-2.5-flash-lite",
    "vertex": "google/gemini-2.5-flash-lite",
    "anthropic": "anthropic/claude-haiku-4-5",
    "anthropic-typed": "anthropic/claude-haiku-4-5",
    "anthropic-format": "anthropic/claude-of-tests",
}


def over(wire: str, make_runtime: Callable[..., Runtime], **changes: Any) -> ModelRegistry:
    """Return a registry of models that are reached over a wire."""
    runtime = make_runtime(**changes)
    variables = {**runtime.environment.variables, **_VARIABLES.get(wire, {})}
    known = runtime.configs.models
    models = {
        **known,
        "anthropic/claude-of-tests": ModelInfo(reasoning_headroom=0, forced_tool=False),
        "azure/our-deployment": ModelInfo(
            reasoning_headroom=0, max_tokens_field="max_completion_tokens"
        ),
    }
    return ModelRegistry(
        replace(
            runtime,
            environment=replace(runtime.environment, variables=variables),
            configs=replace(runtime.configs, models=models),
        )
    )


def model_over(wire: str, registry: ModelRegistry, provider: FakeProvider) -> ChatModel:
    """Return the model of a wire, which the fake provider serves."""
    name, _, model = _MODELS[wire].partition("/")
    urls = {
        "openai": provider.openai_base_url,
        "azure": f"http://127.0.0.1:{provider.port}",
        "google": provider.gemini_base_url,
        "anthropic": provider.anthropic_base_url,
    }
    api: Literal["", "responses"] = "responses" if wire.startswith("responses") else ""
    return registry.model(ModelSpec(name, model, urls[name], api=api))


@pytest.fixture(params=[*WIRES, pytest.param("local", marks=pytest.mark.embedded)])
async def model(
    request: pytest.FixtureRequest, make_runtime: Callable[..., Runtime], provider: FakeProvider
) -> AsyncIterator[ChatModel]:
    """The model of each wire in turn."""
    if request.param == "local":
        registry = ModelRegistry(make_runtime(environment=Environment(cache_dir=CACHE_DIR)))
        yield registry.model(ModelSpec("local", "smollm2-135m-instruct"))
    else:
        registry = over(request.param, make_runtime)
        yield model_over(request.param, registry, provider)
    await registry.aclose()


@pytest.mark.process
async def test_plain_text(model: ChatModel, rows: list[CallRow]) -> None:
    reply = await model.generate(REQUEST)
    assert reply.text
    assert reply.parsed is None
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert reply.model
    assert reply.latency > 0
    assert [row.usage for row in rows] == [reply.usage]
    assert rows[0].outcome in ("ok", "truncated")
    assert (rows[0].case_id, rows[0].phase) == ("case-1", "opinion")


@pytest.mark.process
async def test_structured_reply_is_parsed_in_order(model: ChatModel) -> None:
    reply = await model.generate(replace(REQUEST, schema=Choice))
    assert isinstance(reply.parsed, Choice)
    assert reply.text.index("reasoning") < reply.text.index('"answer"')
    assert reply.stop_reason is StopReason.STOP


@pytest.mark.process
async def test_streaming_gives_the_same_reply_with_usage(
    model: ChatModel, rows: list[CallRow]
) -> None:
    deltas: list[str | None] = []
    request = replace(REQUEST, temperature=0.0)
    streamed = await model.generate(request, deltas.append)
    assert "".join(filter(None, deltas)) == streamed.text
    assert len(deltas) > 1
    assert streamed.usage.output_tokens > 0
    whole = await model.generate(request)
    if rows[0].provider != "local":  # llama.cpp rounds by how much of the prompt was cached
        assert whole.text == streamed.text
        assert whole.usage.output_tokens == streamed.usage.output_tokens
    assert [row.usage for row in rows] == [streamed.usage, whole.usage]


@pytest.mark.process
async def test_a_reply_that_is_too_long_is_truncated(model: ChatModel) -> None:
    reply = await model.generate(replace(REQUEST, max_tokens=4))
    assert reply.stop_reason is StopReason.LENGTH


FAULTS = [
    ("429", ErrorKind.RATE_LIMIT),
    ("quota", ErrorKind.QUOTA),
    ("401", ErrorKind.AUTH),
    ("api_key_invalid", ErrorKind.AUTH),
    ("404_model", ErrorKind.MODEL_NOT_FOUND),
    ("context_length", ErrorKind.CONTEXT_LENGTH),
    ("500", ErrorKind.SERVER),
    ("503", ErrorKind.OVERLOADED),
    ("529", ErrorKind.OVERLOADED),
    ("reset", ErrorKind.CONNECTION),
    ("truncated_body", ErrorKind.CONNECTION),
    ("malformed_json_body", ErrorKind.BAD_BODY),
    ("stream_error", ErrorKind.SERVER),
    ("hang", ErrorKind.TIMEOUT),
    ("stall", ErrorKind.TIMEOUT),
]


@pytest.fixture(params=WIRES)
async def impatient(
    request: pytest.FixtureRequest, make_runtime: Callable[..., Runtime], provider: FakeProvider
) -> AsyncIterator[ChatModel]:
    """A provider over HTTP that never tries again, nor waits long for a reply that never comes."""
    fault = request.node.callspec.params.get("fault")
    timeout = 0.3 if fault in ("hang", "stall") else 30.0
    settings = {"retry": RetryPolicy(max_retries=0), "attempt_timeout": timeout}
    registry = over(request.param, make_runtime, **settings)
    yield model_over(request.param, registry, provider)
    await registry.aclose()


@pytest.mark.sweep
@pytest.mark.parametrize("wire", WIRES)
async def test_a_key_of_one_word_is_no_secret_that_is_cut_out_of_messages(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], wire: str
) -> None:
    keys = dict.fromkeys(load_model_configs().key_names(), "key")
    provider.fail_next("api_key_invalid")
    settings = {"retry": RetryPolicy(max_retries=0), "environment": Environment(keys)}
    async with aclosing(over(wire, make_runtime, **settings)) as registry:
        with pytest.raises(EndpointDown, match=r"(API |x-api-)key"):
            await model_over(wire, registry, provider).generate(REQUEST)


@pytest.mark.sweep
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
@pytest.mark.parametrize(("fault", "kind"), FAULTS)
async def test_an_error_is_named_and_booked(
    provider: FakeProvider,
    impatient: ChatModel,
    rows: list[CallRow],
    fault: str,
    kind: ErrorKind,
    streaming: bool,
) -> None:
    provider.fail_next(fault)
    with pytest.raises((ProviderError, EndpointDown)) as caught:
        await impatient.generate(REQUEST, (lambda _: None) if streaming else None)
    error = caught.value.__cause__ if kind in FATAL else caught.value
    assert isinstance(error, ProviderError)
    assert error.kind is kind
    assert "\n" not in str(caught.value)
    assert "test-key" not in str(caught.value)
    (row,) = rows
    is_paid = row.outcome == UNUSABLE  # Anthropic reports input tokens at the start of a stream
    assert row.outcome == kind.value or (is_paid and streaming)
    assert (row.usage.total_tokens > 0) == is_paid


async def test_the_wait_that_an_endpoint_asks_for_is_read(
    provider: FakeProvider, impatient: ChatModel
) -> None:
    provider.faults = replace(provider.faults, retry_after=7.0)
    provider.fail_next("429")
    with pytest.raises(ProviderError) as caught:
        await impatient.generate(REQUEST)
    assert caught.value.retry_after == pytest.approx(7.0)
    assert caught.value.retryable


@pytest.mark.parametrize("fault", ["refusal", "blocked"])
async def test_a_refusal_is_no_answer_and_is_not_asked_again(
    provider: FakeProvider, impatient: ChatModel, fault: str
) -> None:
    provider.fail_next(fault)
    with pytest.raises(StructuredOutputError) as caught:
        await impatient.generate(replace(REQUEST, schema=Choice))
    assert caught.value.stop_reason is StopReason.REFUSAL
    assert len(provider.calls) == 1


@pytest.mark.sweep
async def test_a_cut_off_reply_is_asked_again_once_and_never_repaired(
    provider: FakeProvider, impatient: ChatModel, rows: list[CallRow]
) -> None:
    provider.fail_next("cut_off", times=2)
    with pytest.raises(StructuredOutputError) as caught:
        await impatient.generate(replace(REQUEST, schema=Choice))
    assert caught.value.stop_reason is StopReason.LENGTH
    assert [row.outcome for row in rows] == ["truncated", "truncated"]
    assert caught.value.usage.total_tokens == sum(row.usage.total_tokens for row in rows)


@pytest.mark.parametrize("fault", ["fenced", "invalid_schema", "empty", "cut_off"])
async def test_a_reply_in_the_wrong_form_is_repaired_or_asked_again(
    provider: FakeProvider, impatient: ChatModel, rows: list[CallRow], fault: str
) -> None:
    provider.fail_next(fault)
    reply = await impatient.generate(replace(REQUEST, schema=Choice))
    assert isinstance(reply.parsed, Choice)
    assert len(provider.calls) == (1 if fault == "fenced" else 2)
    booked = sum(row.usage.total_tokens for row in rows)
    assert booked == provider.totals.input + provider.totals.output


async def test_an_endpoint_without_schemas_is_asked_in_the_prompt(
    provider: FakeProvider, impatient: ChatModel, rows: list[CallRow]
) -> None:
    provider.fail_next("400_schema_unsupported")
    for _ in range(2):
        reply = await impatient.generate(replace(REQUEST, schema=Choice))
        assert isinstance(reply.parsed, Choice)
    assert [row.outcome for row in rows] == ["schema_unsupported", "ok", "ok"]
    assert "JSON schema" not in provider.calls[0].text
    assert "JSON schema" in provider.calls[2].text


async def test_hidden_reasoning_is_output_and_cached_input_is_input(
    provider: FakeProvider, impatient: ChatModel, rows: list[CallRow]
) -> None:
    provider.reasoning_tokens = 30
    provider.prompt_cache = True
    beginning = "The patient has a fever. " * 200
    for ending in ("What now?", "And then?"):
        prompt = ChatMessage("user", beginning + ending, shared=(len(beginning),))
        await impatient.generate(replace(REQUEST, messages=(prompt,)))
    assert all(row.usage.reasoning_tokens == 30 for row in rows)
    assert all(row.usage.output_tokens > 30 for row in rows)
    assert rows[1].usage.cached_input_tokens > 1_000
    assert rows[1].usage.input_tokens == rows[0].usage.input_tokens
    assert the_sum_of(rows) == served_by(provider)
    if "cache_control" in str(provider.calls[0].body):  # of the other wires, no reply counts them
        assert rows[0].usage.cache_write_tokens == rows[1].usage.cached_input_tokens


def the_sum_of(rows: list[CallRow]) -> TokenUsage:
    """Return the tokens of all rows of a ledger."""
    return sum((row.usage for row in rows), TokenUsage())


def served_by(provider: FakeProvider) -> TokenUsage:
    """Return the tokens of all replies that reached their client."""
    served = provider.totals
    return TokenUsage(
        served.input, served.output, served.cached_input, served.reasoning, served.cache_write
    )


_WITHOUT_SEED = {"system", "input"}
"""Fields by which the APIs without a seed are known: Anthropic's, and Responses."""


async def test_what_is_sent(provider: FakeProvider, impatient: ChatModel) -> None:
    await impatient.generate(replace(REQUEST, schema=Choice))
    (call,) = provider.calls
    assert call.roles[0] == "system"
    assert call.native_schema
    settings = call.body.get("generationConfig") or call.body
    assert settings["temperature"] == 0.7
    if not _WITHOUT_SEED & call.body.keys():
        assert settings["seed"] == 1
    limits = ("maxOutputTokens", "max_completion_tokens", "max_tokens", "max_output_tokens")
    assert [settings[name] for name in limits if name in settings] == [200]


@pytest.mark.sweep
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
@pytest.mark.parametrize("setting", ["seed", "temperature"])
async def test_a_setting_that_is_refused_is_left_out_from_then_on(
    provider: FakeProvider,
    impatient: ChatModel,
    rows: list[CallRow],
    setting: str,
    streaming: bool,
) -> None:
    provider.fail_next(f"400_{setting}")
    for _ in range(2):
        reply = await impatient.generate(REQUEST, (lambda _: None) if streaming else None)
        assert reply.text
    sent = [setting in (call.body.get("generationConfig") or call.body) for call in provider.calls]
    if _WITHOUT_SEED & provider.calls[0].body.keys() and setting == "seed":
        assert sent == [False, False]
        return
    assert sent == [True, False, False]
    assert [row.outcome for row in rows] == ["setting_refused", "ok", "ok"]


@pytest.mark.embedded
async def test_a_prompt_longer_than_the_context_is_an_error_of_its_own(
    make_runtime: Callable[..., Runtime],
) -> None:
    registry = ModelRegistry(make_runtime(environment=Environment(cache_dir=CACHE_DIR)))
    model = registry.model(ModelSpec("local", "smollm2-135m-instruct"))
    too_long = replace(REQUEST, messages=(ChatMessage("user", "word " * 5_000),))
    try:
        with pytest.raises(ProviderError) as caught:
            await model.generate(too_long)
    finally:
        await registry.aclose()
    assert caught.value.kind is ErrorKind.CONTEXT_LENGTH


@pytest.mark.embedded
async def test_an_attempt_at_the_embedded_model_has_the_time_of_the_call(
    make_runtime: Callable[..., Runtime],
) -> None:
    policy = RetryPolicy(max_retries=0, timeout=0.05)
    registry = ModelRegistry(
        make_runtime(environment=Environment(cache_dir=CACHE_DIR), retry=policy)
    )
    model = registry.model(ModelSpec("local", "smollm2-135m-instruct"))
    try:
        with pytest.raises(ProviderError, match=r"no complete reply within 0\.05 s"):
            await model.generate(REQUEST)
    finally:
        await registry.aclose()
