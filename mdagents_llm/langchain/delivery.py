"""Streaming of a growing reply to a consumer that cannot take text back.

LangChain concatenates the chunks of a stream. If an attempt fails after some of its text was
delivered, the layers below retry it, and the text starts over. The new text is then compared with
the delivered text: while it repeats that text, nothing is delivered; once it extends beyond, the
rest is. If it differs, the stream ends in an error, since the alternative is a reply that no model
gave. Buffering all text until the attempt ends would never fail, but never stream; for that, set
LangChain's own `disable_streaming`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import from_json

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.text import well_formed

Visible = Callable[[str], str]
"""Function that returns the part of a reply to show, given its text so far."""


class Delivery:
    """Append-only delivery of the text of one reply.

    Args:
        visible: Function that returns the part of the text to show. Its result must only grow.
    """

    def __init__(self, visible: Visible) -> None:
        self._visible = visible
        self._text = ""
        self._delivered = ""

    def take(self, delta: str | None) -> str:
        """Add a delta, or None when the text starts over, and return the text to deliver.

        Raises:
            ProviderError: The text started over and differs from the delivered text.
        """
        if delta is None:
            self._text = ""
            return ""
        self._text += delta
        seen = self._visible(self._text)
        if self._delivered.startswith(seen):
            return ""
        return self._rest_of(seen)

    def finish(self, text: str) -> str:
        """Return the part of the complete text that has not been delivered yet.

        Raises:
            ProviderError: The text does not begin with the delivered text.
        """
        return self._rest_of(text)

    def _rest_of(self, text: str) -> str:
        done = len(self._delivered)
        if not text.startswith(self._delivered):
            raise ProviderError(
                f"{done} characters had been streamed when the reply broke off or was refused, and "
                "what came instead differs; set disable_streaming=True where that must not happen",
                kind=ErrorKind.CONNECTION,
            )
        self._delivered = text
        return text[done:]


def plain_text(stop: Sequence[str]) -> Visible:
    """Return a filter that shows free text up to a complete or partial stop sequence."""

    def visible(text: str) -> str:
        return until(_characters(text), stop, is_whole=False)

    return visible


def answer_in_json(stop: Sequence[str]) -> Visible:
    """Return a filter that shows the text of `{"reply": {"answer": …}}`, and no tool calls."""
    show = plain_text(stop)

    def visible(text: str) -> str:
        if "<think>" in text and "</think>" not in text:
            return ""
        _, brace, rest = text.rpartition("</think>")[2].partition("{")
        try:
            so_far: Any = from_json(_characters(brace + rest), allow_partial="trailing-strings")
            answer = so_far["reply"]["answer"]
        except (ValueError, KeyError, TypeError):
            return ""
        return show(answer) if isinstance(answer, str) else ""

    return visible


def until(text: str, stop: Sequence[str], *, is_whole: bool) -> str:
    """Return `text` up to the stop sequence that is completed first.

    Unless `is_whole`, a trailing part that may be the beginning of a stop sequence is also cut off.
    """
    found = [(at + len(s), at) for s in stop if (at := text.find(s)) >= 0]
    if found:
        return text[: min(found)[1]]
    if is_whole:
        return text
    begun = (
        length
        for sequence in stop
        for length in range(1, len(sequence))
        if text.endswith(sequence[:length])
    )
    return text[: len(text) - max(begun, default=0)]


def _characters(text: str) -> str:
    """Return `text` without a trailing high surrogate, whose other half is still to come."""
    return well_formed(text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text)
