"""Checks of the model name and the token usage that a reply reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mdagents_llm.chat import ChatRequest, TokenUsage
from mdagents_llm.picture_tokens import CHARACTERS_PER_TOKEN, prompt_tokens
from mdagents_llm.providers.http_errors import OTHER_SHAPES

MOST_TOKENS = 100_000_000
"""Maximum plausible tokens of one reply; a higher count is rejected."""
_LONGEST_NAME = 200  # characters


def served_model(name: object, asked: str) -> str:
    """Return the model that an endpoint reports it served, or the requested one.

    The requested one is used if the name is not text, empty, too long, or not printable.
    """
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return asked


def checked_usage(
    prompt: object, output: object, cached: object = 0, reasoning: object = 0, written: object = 0
) -> TokenUsage:
    """Return the token usage of a reply after validating its counts.

    Args:
        prompt: Number of all input tokens.
        output: Number of all output tokens.
        cached: Number of input tokens read from a cache.
        reasoning: Number of output tokens of hidden reasoning.
        written: Number of input tokens written to a cache.

    Raises:
        ValueError: A count is not an integer, is out of range, or exceeds its total.
    """
    counts = [count for count in (prompt, output, cached, reasoning, written) if type(count) is int]
    if len(counts) < 5 or not all(0 <= count <= MOST_TOKENS for count in counts):
        raise ValueError("a token count is not a number of tokens")
    usage = TokenUsage(*counts)
    if usage.cached_input_tokens + usage.cache_write_tokens > usage.input_tokens:
        raise ValueError("more cached tokens than input tokens")
    if usage.reasoning_tokens > usage.output_tokens:
        raise ValueError("more reasoning tokens than output tokens")
    return usage


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


def estimated_usage(request: ChatRequest, written: str, model: str = "") -> TokenUsage:
    """Return a token usage estimated from texts and pictures (`prompt_tokens`).

    Args:
        request: Request that was sent.
        written: All text that the model wrote.
        model: Name of the model.
    """
    prompt = math.ceil(prompt_tokens(request.messages, model))
    return TokenUsage(prompt, -(-len(written) // CHARACTERS_PER_TOKEN))
