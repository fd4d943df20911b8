"""Detection of duplicate questions, independent of typography."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = str.maketrans({"−": "-", "–": "-", "⁄": "/", "≥": ">=", "≤": "<="})
_BETWEEN_DIGITS = re.compile(r"(?<=\d) ?([-.,:/]) ?(?=\d)")
_PARTS = re.compile(
    r"[^\W_]+"
    r"|[+<>=%]|(?<!\w)-(?= ?\d)|(?<=\w)-(?![\w(])"  # Na+, Na-, -5, β- thalassemia
    r"|(?<=\d)(?:[.:/]|,(?!\d{3}(?!\d)))(?=\d)"  # 1.5, 1:2, but not 1,000
    r"|[^\x00-\x7f\w]"
)
_KEPT = ("L", "N", "M", "Sm")
"""Unicode categories of letters, digits, vowel signs and mathematical signs."""


def fingerprint(text: str) -> str:
    """Return the letters, digits and signs of a text, normalized for case and width.

    Two questions with the same fingerprint are near-duplicates. A text without letters or digits is
    its own fingerprint, normalized the same way.
    """
    plain = _plain(text).translate(_SIGNS)
    if not any(map(str.isalnum, plain)):
        return plain
    parts = _PARTS.findall(_BETWEEN_DIGITS.sub(r"\1", " ".join(plain.split())))
    if not plain.isascii():
        parts = [p for p in parts if unicodedata.category(p[0]).startswith(_KEPT) or p.isascii()]
    return "".join(parts)


def letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text, normalized for case and width.

    Texts in which these differ do not mean the same. A text without any is normalized as a whole.
    """
    plain = _plain(text)
    return "".join(filter(str.isalnum, plain)) or plain


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
