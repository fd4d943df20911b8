"""Parses the numbers and units in clinical text into a comparable form."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

from exaid_core.checks.number_words import number_words
from exaid_core.checks.term_list import phrases, read_terms

_WORDS = Path(__file__).with_name("words")
_UNITS_FILES = [_WORDS / "units.txt", _WORDS / "foreign_units.txt"]

_SUPERSCRIPTS = frozenset("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN_SPACES = frozenset("\u00a0\u2009\u202f")
_THREE_DIGITS = re.compile(r"[0-9]{3}(?![0-9])")
# İ is the only letter whose lower-case form is longer.
_LOOKALIKES = str.maketrans("−‐‑‒–—⁄×·’µİ٫٬،٪“”", '------/x.\'μI.,,%""')
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_OTHER_DIGIT = re.compile(r"\d")

# The patterns below run over the whole support of every summary. Each starts with the character
# that it searches for and looks behind afterwards, so that the engine can skip to it: ten times
# faster.
_THOUSANDS = re.compile(r"[0-9](?<![0-9.,].)[0-9]{0,2}(?:(?:[,'][0-9]{3})+|(?: 000)+)(?![0-9,])")
_SEPARATORS = re.compile("[^0-9]")
_OVER = re.compile(r" over (?<=[0-9] over )(?=[0-9])")
_EVERY_HOURS = re.compile(r"[qQ](?<!\w.) ?([0-9]+) ?[hH]\b")
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")

# Characters that the next word may follow without a space, and those that it may not follow.
_RUNS_ON = re.compile("[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff]")
_END_OF_WORD = "(?![a-z0-9μß-ɏ\u0300-\u036f\u0600-\u065fḀ-ỿ])"

_MEASURES = phrases(
    "kg, g, mg, ug, ng, pg, mol, mmol, umol, nmol, pmol, eq, meq, l, dl, ml, ul, m2, cm, mm, mmhg,"
    "kpa, °c, %"
)
"""Units before which a comma is decimal (`1,5 mg`), since it rarely separates a list there."""

_UNITY = "1"
"""Unit of counts (https://ucum.org/ucum)."""

_VALUE = r"(?:\d++(?:\.\d++)?+|\.\d++)"
_DIVIDES = r"(?: ?/ ?| ?\bper | (?:por|par|pro|mỗi|لكل) | ?(?:ต่อ|每) ?)"
_POWER = r"(?: ?[x*] ?10 ?(?:\^ ?| )-?\d++| ?[x*] ?10(?:3|6|9|12)(?= ?/)|e-?\d++)?+"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, a range or a fraction in a text, with its unit if it has one."""

    text: str
    """Quantity as written in the text."""
    start: int
    """Start index of the quantity in the text."""
    end: int
    """End index of the quantity in the text."""
    values: tuple[str, ...]
    """Number, or both ends of a range, without superfluous zeros: `0.5`, `120/80`."""
    unit: str | None
    """Canonical unit, such as `mg/kg`, without the `/day` of a daily dose; None without a unit."""
    certain: bool
    """Whether this is certainly a number; `ein` and, without a unit, `one` mostly are not."""


def plain(text: str) -> str:
    """Return `text` with a normalized spelling of numbers and signs.

    Characters are normalized (NFKC), except that exponents keep a `^`; dashes, fraction and
    multiplication signs and the digits of any script become ASCII; thousands separators are
    removed; a decimal comma becomes a point.
    """
    if not text.isascii():
        text = _NOT_ASCII.sub(_compatible, text)
    text = _THOUSANDS.sub(_joined, text)
    text = _decimal_comma().sub(".", text)
    return _EVERY_HOURS.sub(r"every \1 h", _OVER.sub("/", text))


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities in a text normalized by `plain`, in order.

    Numbers may be written in digits or in words. Digits that belong to a name (`SCA3`, `B12`,
    `COVID-19`, `2nd`) are not quantities. The sign of a number is ignored, because in clinical
    prose a dash before a number is rarely a minus.
    """
    written = _Written(text)
    for match in _pattern().finditer(written.digits):
        start, end = written.span(match)
        words = written.words.get(match.start(), _NO_WORDS)
        unit = match["unit"] and _canonical_unit(match["unit"])
        unit = None if unit == _UNITY else unit
        yield Quantity(
            text=text[start:end],
            start=start,
            end=end,
            values=tuple(_canonical(value) for value in match.group("first", "last") if value),
            unit=unit,
            certain="article" not in words and (unit is not None or "vague" not in words),
        )


def numbers(text: str) -> set[str]:
    """Return the value of every run of digits, even within names: 3 in `SCA3`, 5 and 9 in `5e9`."""
    return set(map(_canonical_number, _DIGITS.findall(text)))


def _compatible(match: re.Match[str]) -> str:
    # NFKC would merge these characters with the adjacent digits: 10⁹ would become 109, 1½ would
    # become 11/2, and the thin space in 1 000 would become an ordinary space.
    separator = ""
    if match.string[match.start() - 1 : match.start()].isdigit():
        if match[0][0] in _SUPERSCRIPTS:
            separator = "^"
        elif match[0] in _THIN_SPACES and _THREE_DIGITS.match(match.string, match.end()):
            return ","
        elif unicodedata.category(match[0][0]) == "No":
            separator = " "
    text = unicodedata.normalize("NFKC", match[0]).translate(_LOOKALIKES)
    return separator + _OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text)


def _joined(match: re.Match[str]) -> str:
    return _SEPARATORS.sub("", match[0])


def _canonical(value: str) -> str:
    if value.isdecimal():
        return value.lstrip("0") or "0"
    if "/" in value or ":" in value:
        return re.sub(_VALUE, lambda number: _canonical_number(number[0]), value.replace(" ", ""))
    value = re.sub(r"^10\^", "1e", value)
    mantissa, *exponent = re.split(r" ?[x*] ?10 ?\^? ?|e", value)
    return "e".join(map(_canonical_number, [mantissa, *exponent]))


def _canonical_number(number: str) -> str:
    sign = "-" if number.startswith("-") else ""
    whole, _, decimals = number.lstrip("-").partition(".")
    decimals = decimals.rstrip("0")
    return sign + (whole.lstrip("0") or "0") + (f".{decimals}" if decimals else "")


@lru_cache(maxsize=1024)
def _canonical_unit(text: str) -> str:
    if text in _unit_names():
        return _unit_names()[text]
    unit = ""
    for part in _unit_part().finditer(text):
        number = _canonical_number(part["number"]) if part["number"] else ""
        name = _unit_names()[part["name"]]
        if not part["divides"]:
            unit = name
        elif name != "d":  # 40 mg/day and 40 mg daily are the same dose
            unit = f"{unit or _UNITY}/{number}{name}"
    return unit or _UNITY


@cache
def _unit_names() -> dict[str, str]:
    """Return the canonical unit name of each lower-case spelling."""
    names = {}
    for line in chain.from_iterable(map(read_terms, _UNITS_FILES)):
        canonical, _, spellings = unicodedata.normalize("NFKC", line).lower().partition(":")
        names.update(dict.fromkeys((one.strip() for one in spellings.split(",")), canonical))
    return names


@cache
def _any_unit_name() -> str:
    return _any_of(_unit_names())


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern for any of the names; whole words only, in scripts that separate words."""
    longest_first = sorted(names, key=len, reverse=True)
    alternatives = []
    # Grouped by first letter, so that most alternatives are ruled out at once.
    for letter, group in groupby(sorted(longest_first, key=itemgetter(0)), key=itemgetter(0)):
        rests = [re.escape(name[1:]) for name in group]
        end = "" if _RUNS_ON.match(letter) else _END_OF_WORD
        alternatives.append(rf"{re.escape(letter)}(?:{'|'.join(rests)}){end}")
    return rf"(?:{'|'.join(alternatives)})"


@cache
def _decimal_comma() -> re.Pattern[str]:
    measures = [name for name, unit in _unit_names().items() if unit in _MEASURES]
    # "0,5" and "1,5 mg", but not the list "1,2,3" or "1,5"
    return re.compile(
        r",(?<=[0-9],)(?<![,.][0-9],)"
        rf"(?:(?<=0,)(?<![0-9]0,)(?=[0-9])|(?=[0-9]{{1,2}} ?{_any_of(measures)}))",
        re.IGNORECASE,
    )


@cache
def _unit_part() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<divides>{_DIVIDES})?(?:(?P<number>{_VALUE}) ?)?(?P<name>{_any_unit_name()})",
        re.ASCII,
    )


@cache
def _pattern() -> re.Pattern[str]:
    name = _any_unit_name()
    divisor = rf"{_DIVIDES}(?:{_VALUE} ?)?{name}"
    unit = rf"(?:{name}(?:{divisor})*|(?:{divisor})+)"
    number = (
        r"(?:(?<=1)0\^-?\d++"
        rf"|(?:(?<=\d)\d*+(?:\.\d++)?+|(?<=\.)\d++)(?:(?: ?/ ?{_VALUE}|:{_VALUE})++|{_POWER}))"
    )
    return re.compile(
        # Not within a name: not after a letter, a digit and a point, or a letter and a hyphen.
        rf"(?P<first>[\d.](?<![^\W_].)(?<!\d\..)(?<![a-z]-.){number})"
        rf"(?: ?%? ?(?:-|\bto\b) ?(?P<last>{_VALUE}{_POWER}))?+"
        rf"(?:(?: {{0,2}}|-)(?P<unit>{unit})|(?![a-z]))",
        re.ASCII,
    )


@cache
def _unit_follows() -> re.Pattern[str]:
    return re.compile(f"[ -]?{_any_unit_name()}", re.ASCII)


_NO_WORDS: frozenset[str] = frozenset()


class _Written:
    """A text in lower case with its number words replaced by digits.

    Args:
        text: Original text.
    """

    def __init__(self, text: str) -> None:
        text = text.lower()
        self.words: dict[int, frozenset[str]] = {}
        """Kinds of each number written in words, by its start index in `digits`."""
        self._starts, self._shifts = [0], [0]
        pieces = []
        end = length = 0
        for number in sorted(number_words(text)):
            if "counted" in number.kinds and not _unit_follows().match(text, number.end):
                continue
            digits = str(number.value)
            length += number.start - end
            pieces += [text[end : number.start], digits]
            end = number.end
            self.words[length] = number.kinds
            length += len(digits)
            self._starts.append(length)
            self._shifts.append(end - length)
        self.digits = "".join([*pieces, text[end:]])

    def span(self, match: re.Match[str]) -> tuple[int, int]:
        """Return the span in the original text of a match in `digits`."""
        start, end = match.span()
        return self._origin(start), self._origin(end)

    def _origin(self, place: int) -> int:
        return place + self._shifts[bisect_right(self._starts, place) - 1]
