"""Splits long texts at natural boundaries."""

from __future__ import annotations

from collections.abc import Iterator

_MARKS = ("\n\n", "\n", ". ", " ")
"""Separators after which a text may be split, in order of preference."""


def pieces_of(text: str, most: int) -> Iterator[str]:
    """Yield consecutive pieces that together are the text.

    A piece ends after a paragraph, or else after a line, a sentence or a word, so that no number is
    split and no sentence that addresses a model is hidden across two pieces. Only a word longer
    than half a piece is split.

    Args:
        text: Any text; an empty one yields one empty piece.
        most: Maximum characters of a piece.
    """
    at = 0
    while len(text) - at > most:
        ends = (text.rfind(mark, at + most // 2, at + most) + len(mark) for mark in _MARKS)
        end = next((end for end in ends if end > at + most // 2), at + most)
        yield text[at:end]
        at = end
    yield text[at:]
