"""The unit of text length in EXAID, which needs no tokenizer."""

CHARS_PER_CTU = 4


def ctu(text: str) -> int:
    """Return the character-based token units (CTU) of a text: `ceil(len(text) / 4)`."""
    return -(-len(text) // CHARS_PER_CTU)
