"""How endpoints say that they do not take what says how much to think."""

from __future__ import annotations

import pytest

from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.model_configs import ModelInfo, Thinking, load_model_configs
from mdagents_llm.providers.anthropic_messages import _with_budget
from mdagents_llm.providers.gemini import _thinking
from mdagents_llm.providers.http_errors import is_refused

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


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("max_tokens", "max_tokens must be greater than 0"),
        ("seed", "max_tokens must be greater than 0, seed ok"),
        ("response_format", "response_format: messages length must be greater than 0"),
        ("temperature", "temperature: Input should be less than or equal to 1"),  # talemate#102
        ("temperature", "temperature must be greater than or equal to 0"),
        ("temperature", "temperature must be in range [0, 2]"),
    ],
)
def test_words_that_refuse_another_value(setting: str, words: str) -> None:
    assert not is_refused(setting, 422, words)


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
