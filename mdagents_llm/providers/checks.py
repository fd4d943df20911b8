"""Checks of what a reply states, before it is booked."""

from __future__ import annotations

from mdagents_llm.chat import ChatRequest, TokenUsage

MOST_TOKENS = 100_000_000
"""Tokens of one reply; a count above is not believed."""
_LONGEST_NAME = 200  # characters
_CHARS_PER_TOKEN = 4  # of English prose; https://platform.openai.com/tokenizer


def served_model(name: object, asked: str) -> str:
    """Return the model that an endpoint says it served, or the one that was asked for.

    The latter where the name is no text, empty, too long, or cannot be written on a line.
    """
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return asked


def checked_usage(
    prompt: object, output: object, cached: object = 0, reasoning: object = 0, written: object = 0
) -> TokenUsage:
    """Return the tokens of a reply.

    Args:
        prompt: All of the input.
        output: All of the output.
        cached: Those of the input that came from a cache.
        reasoning: Those of the output that are hidden reasoning.
        written: Those of the input that were written to a cache.

    Raises:
        ValueError: A count is not a whole number, is out of range, or larger than its total.
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


def estimated_usage(request: ChatRequest, written: str) -> TokenUsage:
    """Return about how many tokens a call used, by its text: 4 characters are a token.

    Args:
        request: What was asked.
        written: All that the model wrote.
    """
    prompt = sum(len(message.content) for message in request.messages)
    return TokenUsage(-(-prompt // _CHARS_PER_TOKEN), -(-len(written) // _CHARS_PER_TOKEN))
