"""Models of Inspect in runs of our own: `--model inspect/PROVIDER/MODEL`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import ConfigError, EndpointDown, ErrorKind, ProviderError
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelChooser, ModelRegistry
from mdagents_llm.model_configs import load_model_configs
from tests.fake_provider import FakeProvider

pytestmark = pytest.mark.sweep

SPEC = ModelSpec("inspect", "openai-api/fake/gpt-test")


class Answer(BaseModel):
    reasoning: str
    answer: str


@pytest.fixture(autouse=True)
def _as_in_inspect(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_API_KEY", "test-key")
    monkeypatch.setenv("FAKE_BASE_URL", provider.openai_base_url)


def _request(schema: type[BaseModel] | None = Answer, **changes: Any) -> ChatRequest:
    said = (ChatMessage("system", "You are a physician."), ChatMessage("user", "Which vitamin?"))
    return ChatRequest(said, max_tokens=200, seed=1, schema=schema, **changes)


async def test_a_call_is_streamed_retried_booked_and_forgotten(
    provider: FakeProvider, registry: ModelRegistry, rows: list[CallRow]
) -> None:
    from inspect_ai.log import transcript

    provider.reasoning_tokens = 5
    model = registry.model(SPEC)
    for fault in ("429", "500", "reset"):
        provider.fail_next(fault)
    pieces: list[str | None] = []
    reply = await model.generate(_request(), pieces.append)
    assert "".join(piece for piece in pieces if piece is not None).endswith(reply.text)
    assert isinstance(reply.parsed, Answer)
    served = provider.calls[-1]
    assert (served.status, served.streamed) == (200, True)
    assert reply.usage == TokenUsage(
        served.usage.input, served.usage.output, 0, served.usage.reasoning
    )
    assert sum((row.usage for row in rows), TokenUsage()) == reply.usage
    for _ in range(3):
        await model.generate(_request(None))
    assert len(transcript().events) <= 1  # of the last call alone


async def test_errors_are_those_of_any_provider(
    provider: FakeProvider, registry: ModelRegistry
) -> None:
    model = registry.model(SPEC)
    await model.generate(_request())
    provider.fail_next("context_length")
    with pytest.raises(ProviderError) as raised:
        await model.generate(_request())
    assert raised.value.kind is ErrorKind.CONTEXT_LENGTH
    provider.fail_next("refusal")
    refused: ChatReply = await model.generate(_request(None))
    assert refused.stop_reason is StopReason.REFUSAL
    provider.fail_next("400_schema_unsupported")
    asked = len(provider.calls)
    assert isinstance((await model.generate(_request())).parsed, Answer)
    assert len(provider.calls) == asked + 2
    provider.fail_next("404_model", times=9)
    with pytest.raises(EndpointDown, match="404"):
        await model.generate(_request())


async def test_tokens_that_only_the_total_counts(registry: ModelRegistry) -> None:
    from inspect_ai.model import ContentReasoning, ContentText, ModelOutput, ModelUsage, get_model

    from mdagents_llm.model_configs import ModelInfo
    from mdagents_llm.providers.inspect_client import InspectModel

    def output(text: Any, usage: ModelUsage, stop: Any = "stop") -> ModelOutput:
        made = ModelOutput.from_content("mockllm/model", text, stop)
        made.usage = usage
        return made

    thought = [ContentReasoning(reasoning="B-12?"), ContentText(text="C")]
    counted = ModelUsage(input_tokens=10, output_tokens=4, total_tokens=29,
                         input_tokens_cache_read=5, reasoning_tokens=10)  # fmt: skip
    outputs = [
        output(thought, counted),
        output("half a", ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5), "unknown"),
        output("<think>hm</think>C", ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)),
        output("no counts", ModelUsage()),
        ModelOutput(model="mockllm/model", usage=ModelUsage(input_tokens=2, total_tokens=2)),
        output(thought[:1], ModelUsage(input_tokens=2, output_tokens=9999, total_tokens=10_001)),
    ]
    own = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    model = InspectModel("mockllm/model", ModelInfo(), lambda role: own, is_evaluated=False)
    reply = await model.generate(_request(None))
    assert (reply.text, reply.reasoning) == ("C", "B-12?")
    assert reply.usage == TokenUsage(15, 14, 5, 10)
    assert (await model.generate(_request(None))).stop_reason is StopReason.LENGTH
    reply = await model.generate(_request(None))
    assert (reply.text, reply.reasoning) == ("C", "hm")
    assert (await model.generate(_request(None))).usage_estimated
    assert (await model.generate(_request(None))).usage.input_tokens == 2
    assert (await model.generate(_request(None))).stop_reason is StopReason.LENGTH


def test_a_model_that_inspect_cannot_open(registry: ModelRegistry) -> None:
    chooser = ModelChooser(Environment({}), load_model_configs())
    for name, said in (
        ("inspect/nobody/gpt", "not recognized"),
        ("inspect/openai-api/other/gpt", "OTHER_API_KEY"),
        ("inspect/gpt", "format of"),
    ):
        with pytest.raises(ConfigError, match=said) as raised:
            registry.model(chooser.parse(name))
        assert "\n" not in str(raised.value)


def test_prices_and_properties_are_those_of_the_vendor() -> None:
    configs = load_model_configs()
    for theirs, ours in (
        ("openai/gpt-4o-mini", ("openai", "gpt-4o-mini")),
        ("grok/grok-4.3", ("xai", "grok-4.3")),
        ("anthropic/claude-haiku-4-5", ("anthropic", "claude-haiku-4-5")),
    ):
        assert configs.price("inspect", theirs) == configs.price(*ours)
        assert configs.price(*ours) is not None
        assert configs.info("inspect", theirs).context == configs.info(*ours).context
    assert configs.price("inspect", "openai-api/fake/gpt-4o-mini") is None
    assert not configs.info("inspect", "hf/some/model").native_schema
