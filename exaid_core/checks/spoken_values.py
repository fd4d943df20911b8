"""Writes spoken values of vital signs in digits: "seventy over forty", "in the low seventies"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from exaid_core.checks.number_words import number_words

_DECADES = {
    "twenties": "20s", "thirties": "30s", "forties": "40s", "fifties": "50s", "sixties": "60s",
    "seventies": "70s", "eighties": "80s", "nineties": "90s",
}  # fmt: skip
DECADE = rf"\b(?:{'|'.join(_DECADES)})\b"
"""Regular expression for a value such as "seventies", in lower case."""

_DECADE = re.compile(DECADE, re.IGNORECASE)
_POINT = re.compile(r"\spoint\s", re.IGNORECASE)
_AFTER_A_VALUE = re.compile(  # and not "three components"
    r"\s*(?:[.,;:)\]/%]|\Z|\n)|\s(?:and|or|to|over|on|in|at|with|per|percent|breaths|beats|mm|point"
    r"|despite|now|then|but|while|after|upon|from|out of|this|today)\b",
    re.IGNORECASE,
)
_COUNTED = (
    r"[\w-]+(?:\s[\w-]+)?\s"
    r"(?:secs?|seconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?|feet|foot|miles?|times)\b"
)
_OTHER_COUNT = re.compile(  # "thirty to forty minutes", or a slip of the tongue
    rf"\W{{0,2}}\s(?:(?:to|or)\s{_COUNTED}"
    rf"|(?:and|then)\s{_COUNTED}(?!\s(?:later|after))"
    r"|no,?\swait|sorry|correction|i mean|scratch that)",
    re.IGNORECASE,
)


def in_digits(text: str) -> tuple[str, Sequence[int]]:
    """Return a text with its spoken values in digits, and where they were.

    Args:
        text: English text.

    Returns:
        The text in digits, and for each of its indices the one in `text`; within a value, that of
        the end of its words.
    """
    written, ends, done = "", [0], 0
    for start, end, value in sorted(_spoken(text)):
        if _POINT.fullmatch(text, done, start):
            value = f".{value}"
        else:
            written += text[done:start]
            ends.extend(range(done + 1, start + 1))
        written += value
        ends.extend([end] * len(value))
        done = end
    ends.extend(range(done + 1, len(text) + 1))
    return written + text[done:], ends


def _spoken(text: str) -> Iterator[tuple[int, int, str]]:
    hundreds = None  # "one" of "one twenty"
    for number in number_words(text):
        start, digits = number.start, number.digits
        if hundreds and hundreds.end + 1 == start and len(digits) == 2:
            start, digits = hundreds.start, hundreds.digits + digits
        elif number.kind:
            hundreds = number if digits == "1" else None
            continue
        if _AFTER_A_VALUE.match(text, number.end) and not _OTHER_COUNT.match(text, number.end):
            yield start, number.end, digits
    for decade in _DECADE.finditer(text):
        yield *decade.span(), _DECADES[decade[0].lower()]
