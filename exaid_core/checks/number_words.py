"""Parses English number words: `twenty-five`, `two and a half`, `half a`, `two thirds`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from exaid_core.checks.term_list import phrases
from mdagents_llm.text import in_lower_case

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
}
_SIZES = {"thousand": 1000, "million": 1_000_000}
_VAGUE = phrases("zero, one, hundred")

_ONE_TO_NINE = "|".join(_SMALL[1:10])
_BELOW_100 = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{_ONE_TO_NINE})\b)?"
    rf"|{'|'.join(sorted(_SMALL, key=len, reverse=True))})\b"
)
# A hundred that follows "and" may belong to the next number: "one hundred and two hundred".
_BELOW_1000 = (
    rf"(?:{_BELOW_100}[ -]hundred\b(?:[ -](?:and[ -])?{_BELOW_100}(?![ -]hundred\b))?"
    rf"|{_BELOW_100}|hundred\b)"
)
# These patterns are for text in lower case.
_NUMBER = re.compile(
    rf"\b(?<!\d[ -])(?P<whole>{_BELOW_1000}"
    rf"(?:[ -](?:thousand|million)\b(?:[ -](?:and[ -])?{_BELOW_1000})?)*)"
    r"(?: and (?:an? |one[ -])?(?P<part>half|quarter)\b)?"
)
_PARTS = {"half": "0.5", "quarter": "0.25", "quarters": "0.75", "third": "1/3", "thirds": "2/3"}
_FRACTION = re.compile(
    r"\b(?:(?:(?:one|an?)[ -])?(?P<one>half|quarter)(?!-?li[fv]e)|one[ -](?P<third>third)"
    r"|three[ -](?P<three>quarters)|two[ -](?P<two>thirds))\b(?:[ -]an?\b)?"
)


NUMERAL = rf"(?:\d|\b{_BELOW_100})"
"""Regular expression for a digit, or for a number word in lower case."""


class NumberWords(NamedTuple):
    """A number of a text that is not written in digits alone."""

    start: int
    """Start index of the words in the text."""
    end: int
    """End index of the words in the text."""
    digits: str
    """Number in digits, with the unit that the words imply: `2.5`, `54 years`."""
    kind: str = ""
    """`vague` (a claim only with a unit), `article` (no claim), `frequency` (`BID`) or empty."""


def number_words(text: str) -> Iterator[NumberWords]:
    """Yield the numbers in English words; fractions come last and may overlap others.

    A word that multiplies digits (`2 million`) is skipped.
    """
    lower = in_lower_case(text)
    for match in _NUMBER.finditer(lower):
        digits = str(_value(match["whole"]))
        if match["part"]:
            digits += _PARTS[match["part"]].removeprefix("0")
        yield NumberWords(*match.span(), digits, "vague" if match[0] in _VAGUE else "")
    for match in _FRACTION.finditer(lower):
        yield NumberWords(*match.span(), _PARTS[match[match.lastgroup or 0]], "vague")


def _value(words: str) -> int:
    total = current = 0
    for word in re.findall("[a-z]+", words):
        if word == "hundred":
            current = (current or 1) * 100
        elif word in _SIZES:
            total += current * _SIZES[word]
            current = 0
        else:
            current += _VALUES.get(word, 0)  # "and" adds nothing
    return total + current
