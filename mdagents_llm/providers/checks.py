"""Checks of the model name and the token usage that a reply reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

from mdagents_llm.chat import ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.ledger import add_costs
from mdagents_llm.picture_tokens import prompt_tokens, text_tokens
from mdagents_llm.providers.http_errors import OTHER_SHAPES

MOST_TOKENS = 100_000_000
"""Maximum plausible tokens of one reply; a higher count is rejected."""
_MOST_USD = 1_000_000  # of one reply
_TICKS = 10_000_000_000  # of a USD
_LONGEST_NAME = 200  # characters


def served_model(name: object, asked: str) -> str:
    """Return the model that an endpoint reports it served, or the requested one.

    The requested one is used if the name is not text, empty, too long, or not printable.
    """
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return asked


def served_tier(tier: object) -> str:
    """Return the service tier that an endpoint reports; empty if it reports none."""
    return served_model(tier, "").lower()


def checked_usage(
    prompt: object, output: object, cached: object = 0, reasoning: object = 0, written: object = 0
) -> TokenUsage:
    """Return the token usage of a reply after validating its counts, which may be fractions.

    Args:
        prompt: Number of all input tokens.
        output: Number of all output tokens.
        cached: Number of input tokens read from a cache.
        reasoning: Number of output tokens of hidden reasoning.
        written: Number of input tokens written to a cache.

    Raises:
        ValueError: A count is not a number, is out of range, or exceeds its total.
    """
    usage = TokenUsage(*map(checked_count, (prompt, output, cached, reasoning, written)))
    if usage.cached_input_tokens + usage.cache_write_tokens > usage.input_tokens:
        raise ValueError("more cached tokens than input tokens")
    if usage.reasoning_tokens > usage.output_tokens:
        raise ValueError("more reasoning tokens than output tokens")
    return usage


def checked_count(count: object) -> int:
    """Return a number of tokens, rounded.

    Raises:
        ValueError: The count is not a number, or is out of range.
    """
    if not (_is_number(count) and 0 <= count <= MOST_TOKENS):
        raise ValueError("a token count is not a number of tokens")
    return round(count)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def merged_usage(usage: Any, later: Any) -> Any:
    """Return the usage of a stream after a later report of it.

    A count in a later report replaces an earlier one, but zero and null do not: some servers send
    the counts of input and output in different chunks, or zeros in the end.

    Args:
        usage: Earlier usage, in the form of the endpoint; None or empty without one.
        later: Later usage, likewise.
    """
    if not (usage and isinstance(usage, dict) and isinstance(later, dict)):
        return later if later or usage is None else usage
    more = {name: merged_usage(usage.get(name), value) for name, value in later.items()}
    return {**usage, **more}


def reported(read: Callable[[Any], TokenUsage], usage: Any) -> TokenUsage:
    """Return the token usage that a reply reports; zero if there is none, or a malformed one.

    A usable reply is not lost for its usage: its tokens are estimated.

    Args:
        read: Function that reads the usage, and raises one of `OTHER_SHAPES` if it is malformed.
        usage: Usage in the form of the endpoint; None or empty without one.
    """
    try:
        return read(usage) if usage else TokenUsage()
    except OTHER_SHAPES:
        return TokenUsage()


def at_its_limit(reply: ChatReply, limit: int) -> ChatReply:
    """Return a reply, marked as truncated if it used up its limit of tokens without text."""
    is_full = reply.usage.output_tokens >= limit and not reply.text.strip()
    if reply.stop_reason is StopReason.STOP and is_full:
        return replace(reply, stop_reason=StopReason.LENGTH)
    return reply


def reported_cost(usage: Any) -> float | None:
    """Return the cost in USD that a usage reports; None if there is none, or a malformed one.

    OpenRouter: https://openrouter.ai/docs/use-cases/usage-accounting, where a call with the user's
    own key of a provider costs what both charge; xAI: https://docs.x.ai/developers/cost-tracking.
    """
    if not isinstance(usage, dict):
        return None
    cost = usage.get("cost")
    priced = cost if isinstance(cost, dict) else usage  # an object by Perplexity
    if (priced.get("currency") or "USD") != "USD":
        return None
    if isinstance(cost, dict):
        return _usd(cost.get("total_cost"))
    if cost is None:
        return _usd(usage.get("cost_in_usd_ticks"), _TICKS)
    if not usage.get("is_byok"):
        return _usd(cost)
    details = usage.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, dict) else None
    return add_costs(_usd(cost), _usd(upstream))


def _usd(amount: object, unit: int = 1) -> float | None:
    """Return an amount, in `unit` parts of a USD, in USD; None if it is no plausible cost."""
    if not (_is_number(amount) and 0 <= amount <= _MOST_USD * unit):
        return None
    return amount / unit


def completed_usage(
    usage: TokenUsage, request: ChatRequest, written: str, model: str = ""
) -> tuple[TokenUsage, bool]:
    """Return (token usage, whether it is estimated) after estimating the counts that are missing.

    Some servers count 0 tokens of a prompt that they have in a cache
    (https://github.com/ollama/ollama/issues/5370).

    Args:
        usage: Reported token usage; zero without one.
        request: Request that was sent.
        written: All text that the model wrote.
        model: Name of the model.
    """
    if usage.input_tokens and (usage.output_tokens or not written):
        return usage, False
    estimated = estimated_usage(request, written, model)
    whole = replace(
        usage,
        input_tokens=usage.input_tokens or estimated.input_tokens,
        output_tokens=usage.output_tokens or estimated.output_tokens,
    )
    return whole, whole != usage or usage.total_tokens == 0


def estimated_usage(request: ChatRequest, written: str, model: str = "") -> TokenUsage:
    """Return a token usage estimated from texts and pictures (`prompt_tokens`).

    Args:
        request: Request that was sent.
        written: All text that the model wrote.
        model: Name of the model.
    """
    prompt = math.ceil(prompt_tokens(request.messages, model))
    return TokenUsage(prompt, math.ceil(text_tokens(written)))
