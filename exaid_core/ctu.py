"""The unit of text length in EXAID, which needs no tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

CHARS_PER_CTU = 4


def ctu(text: str) -> int:
    """Return the character-based token units (CTU) of a text: `ceil(len(text) / 4)`."""
    return -(-len(text) // CHARS_PER_CTU)


def fitting(texts: Iterable[str], budget: int) -> int:
    """Return how many of the texts, from the first on, together have at most `budget` CTU."""
    return sum(total <= budget for total in accumulate(map(ctu, texts)))


def tail_loss(left: Iterable[str], total: int) -> float:
    """Return the share of a trace's CTU that no summary covers; 0 for a trace without text.

    Args:
        left: The texts that no summary covers, wherever in the trace they are.
        total: CTU of the trace.
    """
    # Each text is rounded up to whole CTU.
    return min(1.0, sum(map(ctu, left)) / total) if total else 0.0
