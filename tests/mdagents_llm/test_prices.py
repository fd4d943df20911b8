"""Prices, as `genai-prices` knows them: by size of the call, and only where they are one number."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.ledger import CallRow, Price
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.prices import known_price

REQUEST = ChatRequest((ChatMessage("user", "A or B?"),), max_tokens=50)


def test_a_model_costs_what_its_vendor_asks_for() -> None:
    price = known_price("openai", "gpt-4o-mini")
    assert price is not None
    # 800 fresh and 200 kept tokens of input, 100 of output, in USD per million.
    cost = price.of(TokenUsage(1_000, 100, cached_input_tokens=200))
    assert cost * 1e6 == pytest.approx(800 * 0.15 + 200 * 0.075 + 100 * 0.6)


def test_a_long_call_costs_more_for_all_its_tokens() -> None:
    price = known_price("google", "gemini-2.5-pro")
    assert price is not None
    below, above = price.of(TokenUsage(200_000, 10)), price.of(TokenUsage(200_001, 10))
    assert below * 1e6 == pytest.approx(200_000 * 1.25 + 10 * 10)
    assert above * 1e6 == pytest.approx(200_001 * 2.5 + 10 * 15)
    in_batches = price.in_batches(0.5, 0.5).of(TokenUsage(200_001, 10))
    assert in_batches == pytest.approx(above / 2)
    assert price.in_batches(0.5, 0.5).is_listed


@pytest.mark.parametrize(
    ("provider", "model", "cost"),
    [
        ("openai", "gpt-4o", 800 * 1.25 + 200 * 1.25 + 100 * 5),  # no discount of cached input
        ("openai", "gpt-5", 800 * 0.625 + 200 * 0.0625 + 100 * 5),
        ("google", "gemini-2.5-flash", 800 * 0.15 + 200 * 0.03 + 100 * 1.25),
        ("openai", "gpt-4-32k", 800 * 30 + 200 * 30 + 100 * 60),  # not listed: half the price
        ("openai", "gpt-3.5-turbo-1106", 1_000 * 1 + 100 * 2),  # listed without a discount
        ("groq", "llama-3.3-70b-versatile", None),  # takes no batches here
    ],
)
def test_a_batch_costs_what_is_listed_for_batches(
    provider: str, model: str, cost: float | None
) -> None:
    price = load_model_configs().price(provider, model, in_batches=True)
    of_usage = price and price.of(TokenUsage(1_000, 100, cached_input_tokens=200))
    assert of_usage == (cost and pytest.approx(cost / 1e6))


def test_a_router_that_charges_more_than_its_list_price() -> None:
    """OpenRouter's prices depend on where a call is routed to; pydantic/genai-prices#239."""
    price = load_model_configs().price_of("openrouter", "openai/gpt-4o-mini")
    usage = TokenUsage(2621, 217)
    listed, charged = ChatReply("B", usage, StopReason.STOP, "m"), 0.0004277
    row = partial(
        CallRow.of, REQUEST, provider="openrouter", model="m", price=price, started_at="2026-11-01"
    )
    assert row(replace(listed, cost_usd=charged)).cost_usd == charged
    assert row(listed).cost_usd == pytest.approx((2621 * 0.15 + 217 * 0.6) / 1e6)


@pytest.mark.parametrize(
    ("tier", "times"),
    [
        *[("", 1), ("default", 1), ("auto", 1), ("standard", 1)],
        *[("flex", 0.5), ("priority", 2), ("fast", 2)],  # gpt-5's, by OpenAI's price page
        *[("scale", None), ("ultrafast", None)],  # paid otherwise, or not listed
    ],
)
def test_a_call_costs_what_its_service_tier_does(tier: str, times: float | None) -> None:
    usage = TokenUsage(1_000, 100, cached_input_tokens=200)
    reply = ChatReply("B", usage, StopReason.STOP, "m", service_tier=tier)
    price = load_model_configs().price_of("openai", "gpt-5")
    row = partial(
        CallRow.of, REQUEST, provider="openai", model="m", price=price, started_at="2026-11-01"
    )
    standard = (800 * 1.25 + 200 * 0.125 + 100 * 10) / 1e6
    assert row(reply).cost_usd == (times and pytest.approx(standard * times))
    assert row(replace(reply, batched=True)).cost_usd == pytest.approx(standard / 2)
    assert row(replace(reply, cost_usd=0.5)).cost_usd == 0.5
    own = row(reply, price=lambda _: Price(1, 1)).cost_usd
    assert own == pytest.approx(1_100 / 1e6), "a price of the user holds for all tiers"


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("deepseek", "deepseek-flash"),  # its price depends on the hour
        ("openai", "no-such-model"),
        ("azure", "gpt-4o"),  # the name of a deployment, which may be of any model
        ("vllm", "gpt-4o"),
        ("ollama", "llama3"),
        ("lmstudio", "gpt-4o-mini"),
        ("nowhere", "gpt-4o"),
    ],
)
def test_what_cannot_be_known_is_not_guessed(provider: str, model: str) -> None:
    assert load_model_configs().price(provider, model) is None


def test_a_vendor_that_has_another_id_there_is_found() -> None:
    assert load_model_configs().price("xai", "grok-4.3") is not None


def test_the_embedded_model_costs_nothing() -> None:
    price = load_model_configs().price("local", "anything.gguf")
    assert price is not None
    assert price.of(TokenUsage(1_000, 1_000)) == 0
