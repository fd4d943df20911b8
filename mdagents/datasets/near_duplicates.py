"""Detection of duplicate questions, independent of typography."""

from __future__ import annotations

import re
import unicodedata

_DASHES = str.maketrans("−–", "--")
_PARTS = re.compile(
    r"[^\W_]+"
    r"|[+<>=%]|(?<!\w)-(?=\d)|(?<=\w)-(?![\w(])"  # Na+, Na-, -5, β- thalassemia
    r"|(?<=\d)[.,:/](?=\d)"  # 1.5, 1:2
    r"|[^\x00-\x7f\w]"
)
_KEPT = ("L", "N", "M", "Sm")
"""Unicode categories of letters, digits, vowel signs and mathematical signs."""


def fingerprint(text: str) -> str:
    """Return the letters, digits and signs of a text, normalized for case and width.

    Two questions with the same fingerprint are near-duplicates. A text without letters or digits is
    its own fingerprint, normalized the same way.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_DASHES)
    if not any(map(str.isalnum, plain)):
        return plain
    parts = _PARTS.findall(plain)
    if not plain.isascii():
        parts = [p for p in parts if unicodedata.category(p[0]).startswith(_KEPT) or p.isascii()]
    return "".join(parts)
