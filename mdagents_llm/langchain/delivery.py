"""Which part of a reply that is still growing may be handed out, when nothing can be taken back.

LangChain adds the chunks of a stream up. An attempt that fails after some of its text was handed
out is made again by the layers below, and its text starts anew. So the new text is held against
what was handed out: as long as it repeats that, nothing is handed out, and where it goes on, the
rest is. Where it differs, the stream ends in an error, since the alternative is a reply that nobody
gave. Holding every text back until its attempt is over would never fail, and never stream; who
wants that sets LangChain's own `disable_streaming`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import from_json

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.files.text import well_formed

Visible = Callable[[str], str]
"""Returns what a user may see of a reply, given its text so far."""


class Delivery:
    """The text of one reply on its way to a user who cannot give it back.

    Args:
        visible: What of the text so far is for the user. Its result must only grow.
    """

    def __init__(self, visible: Visible) -> None:
        self._visible = visible
        self._text = ""
        self._delivered = ""

    def take(self, delta: str | None) -> str:
        """Take the next piece, or None when the text starts anew; return what is new for the user.

        Raises:
            ProviderError: The text started anew and differs from what was handed out.
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
        """Return what of the whole text is new for the user.

        Raises:
            ProviderError: It does not begin with what was handed out.
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
    """Return what shows free text up to a stop sequence, and nothing that may become one."""

    def visible(text: str) -> str:
        return until(_characters(text), stop, is_whole=False)

    return visible


def answer_in_json(stop: Sequence[str]) -> Visible:
    """Return what shows the text of `{"reply": {"answer": …}}`, and nothing of a tool call."""
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
    """Return `text` up to the stop sequence that is complete first.

    While the text grows, what may be the beginning of a stop sequence is left out too.
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
    """Return `text` without a half character at its end, whose other half is to come."""
    return well_formed(text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text)
