"""Abbreviations that a text defines: `long form (SHORT)`.

Implements the method of Schwartz and Hearst (2003, https://doi.org/10.1142/9789812776303_0042): the
letters of the short form are matched in the words before it, from right to left; the first letter
must begin a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SHORT = re.compile(r"\(([^\W_][\w/+-]{1,9})\)")
_MOST_CHARS_BEFORE = 200
_CLAUSE = re.compile(r"[.;:!?()\n]")


class Explained(NamedTuple):
    """A short form and the long form that the text gives for it."""

    short: str
    long: str


def explained_abbreviations(text: str) -> Iterator[Explained]:
    """Yield the abbreviations that a text defines, in text order."""
    for match in _SHORT.finditer(text):
        short = match[1]
        if not any(char.isupper() for char in short):
            continue
        before = text[max(0, match.start() - _MOST_CHARS_BEFORE) : match.start()]
        words = _CLAUSE.split(before)[-1].replace("*", " ").split()
        candidate = " ".join(words[-min(len(short) + 5, 2 * len(short)) :])
        long = _long_form(short, candidate)
        if long is not None and len(long) > len(short):
            yield Explained(short, long)


def _long_form(short: str, candidate: str) -> str | None:
    """Return the shortest suffix of `candidate` that has the letters of `short` in order."""
    at = len(candidate)
    for index in range(len(short) - 1, -1, -1):
        letter = short[index].lower()
        if not letter.isalnum():
            continue
        at -= 1
        while at >= 0 and not (
            candidate[at].lower() == letter
            and (index > 0 or at == 0 or not candidate[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return None
    return candidate[at:]
