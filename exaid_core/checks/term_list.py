"""Reads lists of terms: text files next to the code that uses them, and short lists in code."""

from __future__ import annotations

import re
from pathlib import Path

_GAP = r"[\s*_‐–-]{1,4}"
_LOOK_BEHIND = re.compile(r"(\(\?<!.*?\))")


def read_terms(path: Path) -> tuple[str, ...]:
    """Return the lines of a UTF-8 file without comments (from `#` on) and blank lines."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return tuple(line for line in lines if line)


def phrases(text: str) -> frozenset[str]:
    """Return the phrases of a comma-separated text, stripped of white space."""
    return frozenset(phrase.strip() for phrase in text.split(","))


def with_gaps(expression: str) -> str:
    """Return a regular expression whose spaces match any separator between two words.

    Separators are white space, hyphens and Markdown emphasis. Spaces in a look-behind, which needs
    a fixed width, are left unchanged.
    """
    pieces = _LOOK_BEHIND.split(expression)
    return "".join(
        piece if piece.startswith("(?<!") else piece.replace(" ", _GAP) for piece in pieces
    )
