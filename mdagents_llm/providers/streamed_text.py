"""The text of a streamed reply: what its pieces add up to, and what is shown meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise

from mdagents_llm.chat import OnText
from mdagents_llm.reasoning_tags import ThinkTags
from mdagents_llm.text import well_formed

_LEAST = 8  # characters of a repeated text; tokens may repeat fewer by chance


def joined(pieces: Iterable[str]) -> str:
    """Return the text of a stream from its pieces, or from texts so far.

    Some servers always send the text so far in place of the next piece
    (https://github.com/QwenLM/qwen-code/pull/3896): each begins with the one before, which does not
    only look so because it is periodic (`====`).
    """
    pieces = [piece for piece in pieces if piece]
    grown = [piece for piece, _ in groupby(pieces)]
    if len(grown) > 2 and all(later.startswith(piece) for piece, later in pairwise(grown)):
        *_, before, text = grown
        if _is_unlikely_by_chance(before):
            return text
    return "".join(pieces)


def is_replay(last: str, pieces: Iterable[str]) -> bool:
    """Return whether the last piece of a text, with the finish reason, is all of it again.

    Some servers end a stream so (https://github.com/raullenchai/Rapid-MLX/issues/1709).
    """
    return _is_unlikely_by_chance(last) and last == joined(pieces)


def _is_unlikely_by_chance(text: str) -> bool:
    """Return whether a text is unlikely to be repeated by chance: it is long, and not periodic."""
    return len(text) >= _LEAST and (text + text).find(text, 1) == len(text)


class ShownText:
    """Passes the visible text of a streamed reply on as it arrives.

    Args:
        on_text: Callback for the text; None for no callback.
    """

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._tags = ThinkTags()
        self._texts: list[str] = []

    def add(self, piece: str) -> None:
        """Add a piece of the text, without reasoning in tags."""
        self._show(self._tags.feed(piece))

    def add_input(self, piece: str) -> None:
        """Add a piece of the input of a tool, unchanged."""
        self._show(self._tags.end() + piece)

    def restart(self) -> None:
        """Withdraw the text so far, since another attempt follows."""
        self._tags, self._texts = ThinkTags(), []
        if self._on_text is not None:
            self._on_text(None)

    def end(self, text: str) -> None:
        """Deliver the rest of the text, or all of it if it differs from the delivered part."""
        self._show(self._tags.end())
        if text != well_formed("".join(self._texts)):
            if self._texts:
                self.restart()
            self._show(text)

    def _show(self, text: str) -> None:
        if text and self._on_text is not None:
            self._texts.append(text)
            self._on_text(text)
