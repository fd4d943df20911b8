"""Finds the numbers in a text, to check a calculation against its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from demos.document_assistant.amounts import NUMBER, decimal_of

_NUMBER = re.compile(
    r"(?<![\w.,])"
    r"(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:\s?(?P<percent>%|percent\b|per\s?cent\b)|\s?(?P<unit>k|thousand|m|million|bn|billion)\b)?",
    re.IGNORECASE,
)
_WRITTEN_OTHERWISE = re.compile(rf"(?<![\w.,'’])(?P<number>{NUMBER})(?![,.'’]?[0-9])")
_UNITS = {
    "k": 1_000,
    "thousand": 1_000,
    "m": 1_000_000,
    "million": 1_000_000,
    "bn": 1_000_000_000,
    "billion": 1_000_000_000,
}
_EVERYWHERE = frozenset(map(Decimal, (0, 1, 2, 4, 7, 12, 24, 30, 52, 60, 100, 365)))
"""Numbers that formulas use without a source: halves, quarters, percent, units of time."""


def figures(text: str) -> set[Decimal]:
    """Return the numbers of a text, with percentages and units also converted.

    `4,200`, `4'200`, `4 200` and `4.200,00` are 4200, `12%` is 12 and 0.12, and `2 million` is 2
    and 2000000.
    """
    found = set[Decimal]()
    for match in _NUMBER.finditer(text):
        number = Decimal(match["number"].replace(",", ""))
        found.add(number)
        if match["percent"]:
            found.add(number / 100)
        if match["unit"]:
            found.add(number * _UNITS[match["unit"].lower()])
    found.update(decimal_of(match["number"]) for match in _WRITTEN_OTHERWISE.finditer(text))
    return found


def unfounded(expression: str, texts: Iterable[str]) -> list[str]:
    """Return the numbers of an expression that occur in no text.

    Numbers that formulas use without a source are accepted, such as 100 and 12, as is the count of
    the other numbers, by which a mean is divided.
    """
    known = _EVERYWHERE.union(*map(figures, texts))
    written = [match["number"].replace(",", "") for match in _NUMBER.finditer(expression)]
    count = Decimal(len(written) - 1)
    return [one for one in written if (value := Decimal(one)) not in known and value != count]


def only_figures_of(text: str, others: Iterable[str]) -> bool:
    """Return whether every number in a text also occurs in one of the others."""
    return figures(text) <= set[Decimal]().union(*map(figures, others))
