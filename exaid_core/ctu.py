"""CTU, the unit of text length in EXAID, which needs no tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

CHARS_PER_CTU = 4


def ctu(text: str) -> int:
    """Return the character-based token units (CTU) of a text: `ceil(len(text) / 4)`."""
    return -(-len(text) // CHARS_PER_CTU)


def fitting(texts: Iterable[str], budget: int) -> int:
    """Return how many of the texts, counted from the first, fit into `budget` CTU together."""
    return sum(total <= budget for total in accumulate(map(ctu, texts)))


def letters(text: str) -> int:
    """Return the number of characters in a text that are not white space."""
    return sum(map(len, text.split()))


def tail_loss(left: Iterable[str], total: int) -> float:
    """Return the share of a trace's text that no summary covers; 0 for a trace without text.

    Text is measured by `letters` because the rounding of CTU depends on where the text is cut.

    Args:
        left: Texts that no summary covers, anywhere in the trace.
        total: Number of `letters` in the whole trace.
    """
    return sum(map(letters, left)) / total if total else 0.0
