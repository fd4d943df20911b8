"""How much a model is asked to think, in the fields of each wire."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.thinking import fields
from mdagents.runs.config import RunConfig
from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import EFFORTS, Thinking
from mdagents_llm.providers.refusals import is_refused


@pytest.mark.parametrize(
    ("model", "thinking", "expected"),
    [
        ("openai/gpt-5.6-sol", Thinking("xhigh"), {"reasoning_effort": "xhigh"}),
        ("openai/gpt-5.5-pro", Thinking("high"),
         {"reasoning": {"effort": "high"}, "max_output_tokens": 17384}),
        ("vllm/any", Thinking("none"), {"reasoning_effort": "none"}),
        ("vllm/any", Thinking(tokens=5000), {"max_tokens": 6000}),
        ("vllm/any", Thinking("low", max_tokens=700), {"max_tokens": 700}),
        ("openrouter/a/b", Thinking("high"), {"reasoning": {"effort": "high"}}),
        ("openrouter/a/b", Thinking(tokens=5000), {"reasoning": {"max_tokens": 5000}}),
        ("anthropic/claude-haiku-4-5", Thinking("medium"),
         {"thinking": {"type": "enabled", "budget_tokens": 8192}, "max_tokens": 9192}),
        ("anthropic/claude-opus-4-20250514", Thinking(tokens=10),
         {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        # https://github.com/NousResearch/hermes-agent/issues/11137
        ("anthropic/claude-opus-4-7", Thinking("xhigh"),
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("anthropic/claude-sonnet-5", Thinking("none"), {"thinking": {"type": "disabled"}}),
        ("google/gemini-2.5-flash", Thinking("none"), {"thinking_config": {"thinking_budget": 0}}),
        ("google/gemini-3.5-flash", Thinking("max"),
         {"thinking_config": {"thinking_level": "HIGH"}}),
        # Shown, where an endpoint shows it only to who asks
        ("openai/gpt-5.5-pro", Thinking("low", is_shown=True),
         {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("anthropic/claude-opus-4-7", Thinking("high", is_shown=True),
         {"thinking": {"type": "adaptive", "display": "summarized"}}),
        ("anthropic/claude-opus-4-7", Thinking(is_shown=True), {"thinking": None}),
        ("google/gemini-3.5-flash", Thinking(is_shown=True),
         {"thinking_config": {"include_thoughts": True}}),
        # https://github.com/lofcz/LLMTornado/pull/66
        ("google/gemini-2.5-flash", Thinking("none", is_shown=True),
         {"thinking_config": {"thinking_budget": 0}}),
        ("google/gemini-2.5-flash", Thinking(tokens=2000, is_shown=True),
         {"thinking_config": {"thinking_budget": 2000, "include_thoughts": True}}),
    ],
)  # fmt: skip
def test_each_wire_has_its_own_field(
    model: str, thinking: Thinking, expected: dict[str, Any]
) -> None:
    sent = fields(model, thinking)
    assert {name: sent.get(name) for name in expected} == expected


@pytest.mark.parametrize("effort", EFFORTS)
def test_a_budget_is_less_than_the_limit(effort: str) -> None:
    sent: Any = fields("anthropic/claude-haiku-4-5", Thinking(effort))
    assert sent["thinking"].get("budget_tokens", 0) < sent["max_tokens"]


@pytest.mark.sweep
def test_nothing_is_sent_unless_it_is_asked_for() -> None:
    for model in ("openai/gpt-5", "openrouter/a/b", "anthropic/claude-sonnet-5", "google/gemini-3"):
        sent = fields(model, Thinking())
        assert all("max" in name for name in sent), sent


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        # https://github.com/davidmigloz/langchain_dart/issues/712
        ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"),
        # https://github.com/brendanlong/lion-reader/pull/1325
        ("reasoning_effort", "reasoning_effort is not supported with this model"),
        ("reasoning_effort",
         "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model."),
        ("thinking", '"thinking.type.enabled" is not supported for this model. Use adaptive.'),
        ("effort", "This model does not support the effort parameter."),
        ("thinking", "adaptive thinking is not supported on this model"),
        # https://github.com/openai/openai-python/issues/2194
        ("reasoning.summary", "Unsupported parameter: 'reasoning.summary' is not supported."),
        # https://github.com/google-gemini/gemini-cli/issues/1953
        ("thinking", "Unable to submit request because Thinking_config.include_thoughts is only "
         "enabled when thinking is enabled.. Learn more: https://cloud.google.com/vertex-ai"),
        # https://github.com/lobehub/lobehub/issues/7985
        ("thinking", "Thinking is not enabled for models/gemini-2.0-flash-preview"),
        # https://github.com/egoist/chatwise-releases/issues/772
        ("thinking", "Unable to submit request because thinking is not configurable in this model; "
         "please remove the thinking_config setting and try it again."),
        # https://github.com/immersive-translate/immersive-translate/issues/2976
        ("thinking", "thinking_config is not supported."),
        ("Thinking", "Thinking level is not supported for this model."),
    ],
)  # fmt: skip
def test_a_refusal_is_understood(setting: str, words: str) -> None:
    assert is_refused(setting, 400, words)


def test_values_by_role() -> None:
    config = RunConfig(reasoning_effort="low,decision=high", reasoning_tokens=4000, max_tokens="")
    assert config.thinking("expert") == config.thinking("expert-2") == Thinking("low", 4000)
    assert config.thinking("decision") == Thinking("high", 4000)
    assert RunConfig(reasoning_effort="expert=low").thinking("expert-1").effort == "low"
    assert RunConfig().thinking("expert") == Thinking()


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("reasoning_effort", "hihg", "did you mean 'high'"),
        ("reasoning_effort", "exprt=low", "did you mean 'expert'"),
        ("reasoning_tokens", "-5", "--reasoning-tokens is '-5'"),
        ("max_tokens", "0", "--max-tokens is '0'"),
        ("reasoning_effort", "low,high", "two values"),
    ],
)
def test_a_wrong_value_is_one_line(flag: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        RunConfig(**{flag: value})
