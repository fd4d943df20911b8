"""When two questions are the same question, whatever their typography."""

from __future__ import annotations

import unicodedata


def fingerprint(text: str) -> str:
    """Return the letters and digits of a text, without case, width, spacing and punctuation.

    Two questions with the same fingerprint are near-duplicates. A text without any letter or digit
    is its own fingerprint.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, plain)) or plain
