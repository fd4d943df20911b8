"""Parses the shorthand of English clinical notes: `54M`, `38.5 C`, `BID`, `T2DM`, `stage II`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exaid_core.checks.labels import LABELED, listed
from exaid_core.checks.number_words import NumberWords
from mdagents_llm.text import in_lower_case

_LETTER = re.compile(
    r"(?<![\w.,/-])(?P<number>[0-9]{1,3}(?:\.[0-9]+)?)(?P<gap> ?)/?(?P<letter>[MFC])\b"
    r"(?! ?(?:IU|U|units?|/ ?[uμ]L)\b)"
    r"(?=(?P<patient> (?:with|who|presents|presenting|p/w|c/o|h/o|s/p|admitted)\b)?)"
)
# Units whose case counts: `2 MU` is 10^9 times `2 mU`, and `5 mM` is no length. A rate or a
# concentration (`2 MU/MIN`) is in thousandths.
_UNIT_IN_CAPITALS = re.compile(
    r"(?<=[0-9]) ?(?:(?P<million>M ?(?:I?U|units?)\b(?! ?(?:/|per\b)(?! ?(?:d|day|24 ?h)\b)))"
    r"|(?P<molar>[mμun])M\b)"
)
_CELLS = re.compile(r"(?<=[0-9])#(?=/)|(?<=[0-9] )#(?=/)")  # "45 #/uL"
_DIGIT = re.compile("[0-9]")
_CELSIUS, _FAHRENHEIT = range(25, 46), range(77, 116)
_OLDEST = 100  # years; `101F` is a temperature
# Patterns with words are for text in lower case.
_AGE = re.compile(
    r"\bage[ds]?(?: of)?:? (?P<age>[0-9]{1,3})\b(?![./-][0-9]|[ -]?(?:y|mo|we|wk|da|ho|to ))"
)
_TIMES_A_DAY = re.compile(
    r"\b(?:(?P<latin>[btq])(?:\.?i\.?d|ds)\b"
    r"|(?P<times>once|twice|one time|two times|three times|four times|1 time|[234] times)"
    r" ?(?:an? |per |each |/ ?)?(?:day|daily)\b)"
)
_HOURS = {
    "once": 24, "one": 24, "1": 24, "b": 12, "twice": 12, "two": 12, "2": 12, "t": 8, "three": 8,
    "3": 8, "q": 6, "four": 6, "4": 6,
}  # fmt: skip
_DAYS = (
    "day", "daily",
    *(f"{first}{rest}" for first in "btq" for rest in ("id", ".id", "i.d", ".i.d", "ds")),
)  # fmt: skip
"""Texts of which one is in each match of `_TIMES_A_DAY`."""
_ONE = re.compile(
    r"\b(?:an?|past|last|previous|prior) (?=(?:hour|day|week|fortnight|month|year)\b)"
)
_UNITS_OF_TIME = (" hour", " day", " week", " fortnight", " month", " year")
"""Texts of which one is in each match of `_ONE`."""
_PERIODS = {
    "hourly": "1 hour", "daily": "1 day", "weekly": "1 week", "monthly": "1 month",
    "yearly": "1 year", "annually": "1 year", "fortnightly": "1 fortnight",
    "every other day": "2 days",
}  # fmt: skip
_PERIOD = re.compile(rf"\b(?:{'|'.join(_PERIODS)})\b")
_MIXED = re.compile(r"(?<![\w.])([0-9]{1,3}) (1/2|1/4|3/4)\b")
_DECIMALS = {"1/2": ".5", "1/4": ".25", "3/4": ".75"}
# "5 ft 10 in", "5'10\"", "6 lb 4 oz"
_HEIGHT = re.compile(
    r"(?<![\w.])(?P<feet>[1-9]) ?(?:ft|feet|foot|')\.?,? ?(?P<inches>[0-9]{1,2}(?:\.[0-9])?)"
    r" ?(?:inch(?:es)?\b|in\b|\"|'')"
)
_WEIGHT = re.compile(
    r"(?<![\w.])(?P<pounds>[0-9]{1,3}) ?(?:lbs?|pounds?)\b\.?,? (?:and )?"
    r"(?P<ounces>[0-9]{1,2}(?:\.[0-9])?) ?(?:oz|ounces?)\b"
)
_DEGREE = re.compile(r"\b(?:(first|1st)|(second|2nd)|(third|3rd)|(fourth|4th))[ -]degree\b")
_MULTIPLE = re.compile(
    r"\b(?:(?P<two>double|twice)|triple)[ -](?:(?:the|his|her|their|usual) )?dos(?:es?|age)\b"
)
_ONE_IN = re.compile(
    r"\b(?:1|one) in (?P<whole>[1-9][0-9]{0,5}|two|three|four|five|six|seven|eight|nine|ten)\b"
    r"(?! ?(?:hours?|days?|weeks?|months?|years?|minutes?|[.:/]?[0-9]))"
)
_WHOLES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIABETES = re.compile(r"\bT([12])DM?\b")
_NUMERAL = re.compile(r"\b[IVX]{1,4}(?=[a-dA-D]?\b)")
# "stages II and IIIb", and the murmur "III/VI"
_NUMERALS = listed(r"[IVX]{1,4}[a-dA-D]?\b")
_ROMAN_LIST = re.compile(rf"(?:{LABELED} |\b(?=[IV]{{1,3}}/VI\b))(?P<list>{_NUMERALS})")
_SURELY_NUMERAL = re.compile(r"\b(?:II|III|VI|VII|VIII|IX|XI|XII)\b")  # IV is also intravenous
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def shorthand(text: str) -> Iterator[NumberWords]:
    """Yield the numbers of a text that are in shorthand, in no particular order."""
    lower = in_lower_case(text)
    if _DIGIT.search(text):
        yield from _with_digits(text, lower)
        yield from _units(text, lower)
    # Looking for words first is quick, and few texts have those of a pattern.
    has = lower.__contains__
    if any(map(has, _DAYS)):
        for match in _TIMES_A_DAY.finditer(lower):
            times = (match["latin"] or match["times"]).split()[0]
            yield NumberWords(*match.span(), f"{_HOURS[times]} hours", "frequency")
    if any(map(has, _UNITS_OF_TIME)):
        for match in _ONE.finditer(lower):
            yield NumberWords(*match.span(), "1 ", "article")
    if any(map(has, _PERIODS)):
        for match in _PERIOD.finditer(lower):
            yield NumberWords(*match.span(), _PERIODS[match[0]], "article")
    if has("degree"):
        for match in _DEGREE.finditer(lower):
            yield NumberWords(*match.span(), f"degree {match.lastindex}")
    if has("dos"):
        for match in _MULTIPLE.finditer(lower):
            yield NumberWords(*match.span(), "2" if match["two"] else "3")
    if has("1 in ") or has("one in "):
        for match in _ONE_IN.finditer(lower):
            yield NumberWords(*match.span(), f"{100 / _whole(match['whole']):.4g}%")
    if _NUMERAL.search(text):
        yield from _roman(text)


def _with_digits(text: str, lower: str) -> Iterator[NumberWords]:
    for match in _LETTER.finditer(text):
        if (unit := _unit_of_letter(match)) is not None:
            yield NumberWords(*match.span(), f"{match['number']} {unit}")
    if "age" in lower:
        for match in _AGE.finditer(lower):
            yield NumberWords(*match.span("age"), f"{match['age']} years")
    if "/" in text:
        for match in _MIXED.finditer(text):
            yield NumberWords(*match.span(), match[1] + _DECIMALS[match[2]])
    if "T1" in text or "T2" in text:
        for match in _DIABETES.finditer(text):
            yield NumberWords(*match.span(), f"type {match[1]} diabetes")


def _units(text: str, lower: str) -> Iterator[NumberWords]:
    """Yield units that `words/units.txt` cannot list, and quantities in two units."""
    if "M" in text:
        for match in _UNIT_IN_CAPITALS.finditer(text):
            if match["molar"]:
                yield NumberWords(*match.span(), f" {match['molar']}mol/L")
            elif not text.isupper():
                yield NumberWords(*match.span(), " million units")
    if "#/" in text:
        for match in _CELLS.finditer(text):
            yield NumberWords(*match.span(), "cells")
    if "'" in text or "ft" in lower or "feet" in lower or "foot" in lower:
        for match in _HEIGHT.finditer(lower):
            inches = 12 * int(match["feet"]) + float(match["inches"])
            yield NumberWords(*match.span(), f"{inches:g} inches")
    if "oz" in lower or "ounce" in lower:
        for match in _WEIGHT.finditer(lower):
            pounds = int(match["pounds"]) + float(match["ounces"]) / 16
            yield NumberWords(*match.span(), f"{pounds:g} lb")


def _roman(text: str) -> Iterator[NumberWords]:
    for match in _ROMAN_LIST.finditer(text):
        for numeral in _NUMERAL.finditer(text, *match.span("list")):
            if numeral[0] in _ROMAN:
                yield NumberWords(*numeral.span(), str(_ROMAN.index(numeral[0]) + 1))
    for match in _SURELY_NUMERAL.finditer(text):
        yield NumberWords(*match.span(), str(_ROMAN.index(match[0]) + 1), "article")


def _whole(word: str) -> int:
    return _WHOLES.index(word) + 2 if word in _WHOLES else int(word)


def _unit_of_letter(match: re.Match[str]) -> str | None:
    """Return the unit in `38.5 C`, `101F` or `54M`, the age of a man; None if it is unclear."""
    number, letter = match["number"], match["letter"]
    whole = int(number.partition(".")[0])
    if letter == "C":
        return "°c" if whole in _CELSIUS else None
    is_patient = match["patient"] and whole not in _FAHRENHEIT
    may_be_age = number.isdecimal() and (is_patient or not match["gap"])
    if letter == "F" and whole in _FAHRENHEIT and not (may_be_age and whole < _OLDEST):
        return "°f"
    return "years" if may_be_age else None
