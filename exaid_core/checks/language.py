"""Tells whether a text is in English, the language of most checks."""

from __future__ import annotations

import re

_LETTER = re.compile(r"[^\W\d_]")
_OTHER_LETTER = re.compile("[^\\W\\d_a-zA-Z\u0370-\u03ff]")  # Greek letters are English symbols
_MOST_OTHER_LETTERS = 0.01
"""Largest share of accented and non-Latin letters in an English text: in names of people."""

_WORD = re.compile(r"[^\W\d_]+")
_FUNCTION_WORD = re.compile(
    r"\b(?:the|of|and|with|is|are|was|to|by|for|from|not|but|while|likely)\b", re.IGNORECASE
)
_FEWEST_FUNCTION_WORDS = 0.1
"""Smallest share of function words in a short English text with foreign names."""


def is_english(text: str) -> bool:
    """Return whether a text is in English, possibly with foreign names in it.

    A text without accented and non-Latin letters is taken to be in English.
    """
    if text.isascii():
        return True
    others = len(_OTHER_LETTER.findall(text))
    if others <= _MOST_OTHER_LETTERS * len(_LETTER.findall(text)):
        return True
    words = len(_WORD.findall(text))
    return len(_FUNCTION_WORD.findall(text)) >= _FEWEST_FUNCTION_WORDS * words
