"""Finds names that end with a number: `IL-6`, `CD4`, `HPV 16/18`, `stage 2`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORDS = (
    "stage", "grade", "class", "type", "factor", "trisomy", "chromosome", "phase", "category",
    "degree", "nerve", "lead", "apgar", "nyha", "mobitz", "hpv", "asa", "ckd", "ecog", "cn",
)  # fmt: skip
LABELED = (
    rf"(?<![A-Za-z])(?i:(?P<label>{'|'.join(_WORDS)})s?"
    r"(?:[ -](?:functional )?(?:class|stage|grade|type)s?)?)"
)
"""Pattern of a word that forms a name with the number after it."""


def listed(number: str) -> str:
    """Return a pattern of a list of numbers, such as `16/18` or `1, 2, and 3`."""
    return rf"{number}(?:[/-]{number})*+(?:(?:, ?{number})*+,? (?:and|or|to) {number})?"


_IN_WORDS = re.compile(rf"{LABELED}[ -]?(?P<numbers>{listed('[0-9]+')})(?!\.?[0-9])")
# Letters of which the last is upper case, directly before the number.
_IN_LETTERS = re.compile(
    r"(?<![A-Za-z])(?P<label>[A-Za-z]{0,6}[A-Z])-?(?P<numbers>[0-9]+(?:[/-][0-9]+)*+)(?!\.?[0-9])"
)
# "G4P3", "G2 P1001" (term, preterm, abortions, living), "gravida 4, para 3"
_OBSTETRIC = re.compile(
    r"(?<![A-Za-z0-9])(?P<gravida>G(?P<pregnancies>[0-9]{1,2}))[ ,]{0,2}"
    r"(?P<para>P(?P<births>[0-9]{4}|[0-9]{1,2}))(?![0-9])"
    r"|\b(?i:(?P<label>gravida|para)):? (?P<number>[0-9]{4}|[0-9]{1,2})(?![.,]?[0-9])"
)
_NUMBER = re.compile("[0-9]+")


class Label(NamedTuple):
    """A number that is part of a name."""

    start: int
    """Start index of the name, or of the number after a word such as `stage`."""
    end: int
    """End index of the number."""
    name: str
    """What precedes the number, in lower case: `il`, `stage`."""
    number: str
    """Number without leading zeros."""
    is_word: bool
    """Whether the name is a word such as `stage`."""
    is_certain: bool
    """Whether the number cannot count something else, as in `stage 2 and 3 lesions`."""

    @property
    def numbers(self) -> Iterator[str]:
        """The number, and the births of `P2002`: two at term, none preterm."""
        yield self.number
        if self.name == "para" and len(self.number) > 2:
            births = self.number.zfill(4)
            yield str(int(births[0]) + int(births[1]))


def labels(text: str) -> Iterator[Label]:
    """Yield the numbers of a text in digits that are part of a name.

    The last label of a span counts: `G4P3` is read by letters first, then as gravida and para.
    """
    if not _NUMBER.search(text):
        return
    has_word = any(map(text.lower().__contains__, _WORDS))  # quicker to tell than by the pattern
    for pattern in (_IN_WORDS, _IN_LETTERS) if has_word else (_IN_LETTERS,):
        for match in pattern.finditer(text):
            is_word = pattern is _IN_WORDS
            for number in _NUMBER.finditer(text, *match.span("numbers")):
                is_first = number.start() == match.start("numbers")
                start = match.start() if is_first and not is_word else number.start()
                name, value = match["label"].lower(), number[0].lstrip("0") or "0"
                is_certain = " " not in text[match.start("numbers") : number.start()]
                yield Label(start, number.end(), name, value, is_word, is_certain)
    yield from _obstetric(text)


def _obstetric(text: str) -> Iterator[Label]:
    for match in _OBSTETRIC.finditer(text):
        if match["label"]:
            value = str(int(match["number"]))
            yield Label(*match.span("number"), match["label"].lower(), value, True, True)
        else:
            for name, digits in (("gravida", "pregnancies"), ("para", "births")):
                yield Label(*match.span(name), name, str(int(match[digits])), False, True)
