"""Reads English units of measurement and converts between those of one dimension."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from exaid_core.checks.term_list import read_terms

_UNITS_FILE = Path(__file__).with_name("words") / "units.txt"

UNITY = "1"
"""Unit of counts (https://ucum.org/ucum)."""

NUMBER = r"(?:\d++(?:\.\d++)?+|\.\d++)"
"""Pattern of a number in digits."""
_DIVIDES = r"(?: ?/ ?| ?\bper )"
_END_OF_WORD = "(?![a-z0-9μß-ɏḀ-ỿ])"
_DAY = frozenset({"d", "24h"})
_CALENDAR = frozenset({"mo", "year"})


class Scale(NamedTuple):
    """The size of a unit."""

    dimension: str
    """Basic unit that the unit can be converted to, such as `g/l`."""
    factor: float
    """Size of the unit in the basic unit."""
    zero: float = 0.0
    """Value of the unit's zero point in the unit itself: 32 for °F."""

    def basic(self, value: float) -> float:
        """Return a value in the basic unit."""
        return (value - self.zero) * self.factor


def canonical_number(number: str) -> str:
    """Return a number in digits without superfluous zeros."""
    whole, _, decimals = number.partition(".")
    decimals = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{decimals}" if decimals else "")


@lru_cache(maxsize=1024)
def canonical_unit(text: str) -> str:
    """Return the canonical name of a unit that `unit_pattern` matches, without a final `/d`.

    `/24h` is left out as well.
    """
    if text in _names():
        return _names()[text]
    unit = ""
    for part in _part().finditer(text):
        number = canonical_number(part["number"]) if part["number"] else ""
        name = _names()[part["name"]]
        if not part["divides"]:
            unit = name
        elif number + name not in _DAY:  # 40 mg/day and 40 mg daily are the same dose
            unit = f"{unit or UNITY}/{number}{name}"
    return unit or UNITY


@lru_cache(maxsize=1024)
def scale(unit: str) -> Scale:
    """Return the size of a canonical unit."""
    if unit == "°f":
        return Scale("°c", 5 / 9, 32.0)
    first, *divisors = unit.split("/")
    dimension, factor = _sizes()[first]
    for divisor in divisors:
        name = divisor.lstrip("0123456789.") or UNITY
        basic, size = _sizes()[name]
        dimension += f"/{divisor.removesuffix(name)}{basic}"
        factor /= size
    return Scale(dimension, factor)


def is_rounded(unit: str, other: str) -> bool:
    """Return whether conversions of two units are usually rounded to weeks, months or years."""
    return (unit in _CALENDAR) != (other in _CALENDAR)


@cache
def unit_pattern() -> str:
    """Return a pattern of a unit, possibly divided by others, in lower case."""
    name = any_unit(_names())
    divisor = rf"{_DIVIDES}(?:{NUMBER} ?)?{name}"
    return rf"(?:{name}(?:{divisor})*|(?:{divisor})+)"


def spellings(units: Iterable[str]) -> list[str]:
    """Return all spellings of canonical units."""
    wanted = set(units)
    return [name for name, unit in _names().items() if unit in wanted]


def any_unit(names: Iterable[str]) -> str:
    """Return a pattern of any of the names, as a whole word."""
    longest_first = sorted(names, key=len, reverse=True)
    # Grouped by first letter, so that most alternatives are ruled out at once.
    by_letter = groupby(sorted(longest_first, key=itemgetter(0)), key=itemgetter(0))
    alternatives = [
        rf"{re.escape(letter)}(?:{'|'.join(re.escape(name[1:]) for name in group)})"
        for letter, group in by_letter
    ]
    return rf"(?:(?:{'|'.join(alternatives)}){_END_OF_WORD})"


@cache
def _part() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<divides>{_DIVIDES})?(?:(?P<number>{NUMBER}) ?)?(?P<name>{any_unit(_names())})",
        re.ASCII,
    )


@cache
def _names() -> dict[str, str]:
    """Return the canonical name of each spelling."""
    names = {}
    for line in _lines():
        unit, _, listed = line.partition(":")
        names.update(dict.fromkeys(map(str.strip, listed.split(",")), unit.split()[0]))
    return names


@cache
def _sizes() -> dict[str, tuple[str, float]]:
    """Return the basic unit of each canonical name, and its size in it."""
    sizes = {}
    for line in _lines():
        unit, _, size = line.partition(":")[0].partition(" = ")
        factor, basic = size.split() if size else ("1", unit)
        sizes[unit] = (basic, float(factor))
    return sizes


def _lines() -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFKC", line).lower() for line in read_terms(_UNITS_FILE))
