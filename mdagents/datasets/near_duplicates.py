"""Detection of duplicate questions, independent of typography."""

from __future__ import annotations

import unicodedata


def fingerprint(text: str) -> str:
    """Return the letters and digits of a text, normalized for case and width.

    Two questions with the same fingerprint are near-duplicates. A text without letters or digits is
    its own fingerprint, normalized the same way.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, plain)) or plain
