"""Cuts a long text into pieces where it may be cut."""

from __future__ import annotations

from collections.abc import Iterator

_MARKS = ("\n\n", "\n", ". ", " ")
"""Behind which a text is cut, if it can be."""


def pieces_of(text: str, most: int) -> Iterator[str]:
    """Yield the pieces of a text; together they are the text.

    A piece ends with a paragraph, else a line, a sentence, or a word, so that no number is in two
    pieces and no sentence that addresses a model hides where two of them meet. Only a word that is
    longer than half a piece is cut.

    Args:
        text: Any text; an empty one is one empty piece.
        most: Characters of a piece.
    """
    at = 0
    while len(text) - at > most:
        ends = (text.rfind(mark, at + most // 2, at + most) + len(mark) for mark in _MARKS)
        end = next((end for end in ends if end > at + most // 2), at + most)
        yield text[at:end]
        at = end
    yield text[at:]
