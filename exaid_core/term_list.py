"""Lists of terms: text files beside the code that uses them, and short ones in the code."""

from __future__ import annotations

import re
from pathlib import Path

_GAP = r"[\s*_‐–-]{1,4}"
_LOOK_BEHIND = re.compile(r"(\(\?<!.*?\))")


def read_terms(path: Path) -> tuple[str, ...]:
    """Return the lines of a UTF-8 file without comments (`#` to the end of the line) and blanks."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return tuple(line for line in lines if line)


def phrases(text: str) -> frozenset[str]:
    """Return the phrases of a comma-separated text, without white space around them."""
    return frozenset(phrase.strip() for phrase in text.split(","))


def with_gaps(expression: str) -> str:
    """Return a regular expression whose spaces match any separator of two words.

    Separators are white space, hyphens and Markdown emphasis. In a look-behind, which needs a fixed
    width, spaces stay spaces.
    """
    pieces = _LOOK_BEHIND.split(expression)
    return "".join(
        piece if piece.startswith("(?<!") else piece.replace(" ", _GAP) for piece in pieces
    )
