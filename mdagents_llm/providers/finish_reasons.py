"""Finish reasons: of a truncated reply, and which of two says more about a reply."""

from __future__ import annotations

from typing import TypeVar

from mdagents_llm.providers.filters import is_filters

_LENGTH = frozenset(
    [
        "length",
        "model_length",
        "token_limit",
        "incomplete",
        "model_context_window_exceeded",
        "repetition",
    ]
)
"""Finish reasons of a truncated reply, besides `max_tokens` and the like: OpenAI, Mistral, watsonx,
gateways to Gemini and Anthropic, Z.ai, and vLLM, which ends a loop."""
_PLAIN = frozenset(["stop", "end_turn", "stop_sequence", "tool_calls", "tool_use"])
"""Finish reasons of a complete reply."""

T = TypeVar("T")


def weightier(finish: T, other: T) -> T:
    """Return a finish reason, or another of the same text if that alone tells of an early end.

    Some endpoints add a `stop` of their own after the reason of the model
    (https://github.com/vllm-project/vllm/issues/2266).
    """
    is_plain = str(finish).lower() in _PLAIN
    return other if is_plain and (is_filters(str(other)) or is_cut(first_word(other))) else finish


def first_word(finish: object) -> str:
    """Return a finish reason without what may follow it, as in `error: timeout`."""
    return str(finish).lower().partition(":")[0].strip().replace("-", "_")


def is_cut(first: str) -> bool:
    """Return whether a finish reason, as of `first_word`, is that of a truncated reply."""
    return first.startswith("max_") or first in _LENGTH
