"""Numbers in clinical text with their units, in a form that can be compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from exaid_core.term_list import read_terms

_UNITS_FILE = Path(__file__).with_name("units.txt")

_UP_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_UP_TO_TWELVE.split())}

_SUPERSCRIPTS = frozenset("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN_SPACES = frozenset("\u00a0\u2009\u202f")
_THREE_DIGITS = re.compile(r"[0-9]{3}(?![0-9])")
# İ is the one letter that grows when it is put in lower case.
_LOOKALIKES = str.maketrans("−‐‑‒–—⁄×·’µİ", "------/x.'μI")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")

# The patterns below run over the whole support of every summary. Each begins with the character
# that it looks for, and looks behind after that: the engine can skip to it, ten times faster.
_THOUSANDS = re.compile(r"[0-9](?<![0-9.,].)[0-9]{0,2}(?:(?:[,'][0-9]{3})+|(?: 000)+)(?![0-9,])")
_SEPARATORS = re.compile("[^0-9]")
# "0,5" and "1,5 mg", but not the list "1,2,3" or "1,5"
_DECIMAL_COMMA = re.compile(
    r",(?<=[0-9],)(?<![,.][0-9],)(?:(?<=0,)(?<![0-9]0,)(?=[0-9])|(?=[0-9]{1,2} ?[kmnμu]?[gl]\b))"
)
_OVER = re.compile(r" over (?<=[0-9] over )(?=[0-9])")
_EVERY_HOURS = re.compile(r"[qQ](?<!\w.) ?([0-9]+) ?[hH]\b")
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")

_UNITY = "1"
"""The unit of counts (https://ucum.org/ucum)."""

_VALUE = r"(?:\d++(?:\.\d++)?+|\.\d++)"
_DIVIDES = r"(?: ?/ ?| ?\bper )"
_POWER = r"(?: ?[x*] ?10 ?(?:\^ ?| )-?\d++| ?[x*] ?10(?:3|6|9|12)(?= ?/)|e-?\d++)?+"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, a range or a fraction in a text, with its unit if it has one."""

    text: str
    """The quantity as written."""
    start: int
    """Where it begins in the text."""
    end: int
    """Where it ends."""
    values: tuple[str, ...]
    """The number, or both ends of a range, without superfluous zeros: `0.5`, `120/80`."""
    unit: str | None
    """Canonical name of the unit, such as `mg/kg`; the `/day` of a daily dose is left out."""


def plain(text: str) -> str:
    """Return `text` with one spelling for each number and sign.

    Characters are normalised (NFKC), except that exponents keep a `^`; dashes, fraction and
    multiplication signs become ASCII; thousands lose their separators; a decimal comma is a point.
    """
    if not text.isascii():
        text = _NOT_ASCII.sub(_compatible, text)
    text = _THOUSANDS.sub(_joined, text)
    text = _DECIMAL_COMMA.sub(".", text)
    return _EVERY_HOURS.sub(r"every \1 h", _OVER.sub("/", text))


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a text that `plain` returned, in order.

    Digits that belong to a name (`SCA3`, `B12`, `COVID-19`, `2nd`) are not quantities. The sign of
    a number is not read: in clinical prose a dash before a number is seldom a minus.
    """
    for match in _pattern().finditer(text.lower()):
        unit = match["unit"] and _canonical_unit(match["unit"])
        yield Quantity(
            text=text[match.start() : match.end()],
            start=match.start(),
            end=match.end(),
            values=tuple(_canonical(value) for value in match.group("first", "last") if value),
            unit=None if unit == _UNITY else unit,
        )


def numbers(text: str) -> set[str]:
    """Return the value of every run of digits, even in a name: `SCA3` has a 3, `5e9` a 5."""
    return set(map(_canonical_number, _DIGITS.findall(text)))


def _compatible(match: re.Match[str]) -> str:
    # Characters that NFKC would merge with the digits beside them: 10⁹ would become 109, 1½ would
    # become 11/2, and the thin space in 1 000 an ordinary space.
    separator = ""
    if match.string[match.start() - 1 : match.start()].isdigit():
        if match[0][0] in _SUPERSCRIPTS:
            separator = "^"
        elif match[0] in _THIN_SPACES and _THREE_DIGITS.match(match.string, match.end()):
            return ","
        elif unicodedata.category(match[0][0]) == "No":
            separator = " "
    return separator + unicodedata.normalize("NFKC", match[0]).translate(_LOOKALIKES)


def _joined(match: re.Match[str]) -> str:
    return _SEPARATORS.sub("", match[0])


def _canonical(value: str) -> str:
    if value in _NUMBER_WORDS:
        return _NUMBER_WORDS[value]
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
    """Return spelling in lower case -> canonical name."""
    names = {}
    for line in read_terms(_UNITS_FILE):
        canonical, _, spellings = line.partition(":")
        names.update(dict.fromkeys((one.strip() for one in spellings.split(",")), canonical))
    return names


@cache
def _any_unit_name() -> str:
    longest_first = sorted(_unit_names(), key=len, reverse=True)
    return rf"(?:{'|'.join(map(re.escape, longest_first))})(?![a-z0-9μ])"


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
    words = "|".join(f"(?<={word[0]}){word[1:]}" for word in _NUMBER_WORDS)
    number = (
        r"(?:(?<=1)0\^-?\d++"
        rf"|(?:(?<=\d)\d*+(?:\.\d++)?+|(?<=\.)\d++)(?:(?: ?/ ?{_VALUE}|:{_VALUE})++|{_POWER}))"
    )
    return re.compile(
        # Not within a name: after a letter, a digit and a point, or a letter and a hyphen.
        r"(?P<first>[\d.zotfsen](?<![^\W_].)(?<!\d\..)(?<![a-z]-.)"
        rf"(?:{number}|(?:{words})\b))"
        rf"(?: ?%? ?(?:-|\bto\b) ?(?P<last>{_VALUE}{_POWER}))?+"
        rf"(?:(?: {{0,2}}|-)(?P<unit>{unit})|(?![a-z]))",
        re.ASCII,
    )
