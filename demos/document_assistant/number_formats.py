"""Writes the value of a spreadsheet cell as its number format shows it, with all its digits."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

_PLACE = "\0"
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].'  # a width, or a character that fills the cell
    r"|\[\$(?P<currency>[^\]-]*)[^\]]*\]|(?P<condition>\[[<>=][^\]]*\])|\[[^\]]*\]"
    r"|(?P<place>[0#?][0#?.,]*|\.[0#?]+|General)|(?P<next>;)|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_SYMBOLS = ("", "$", "€", "£", "₫")
"""What stands between a leading minus and its number."""
_SAYS_NOTHING = re.compile(r"[$€£₫¥%\s]*")
"""Text beside a number that is as right beside a zero."""
_SCALED = re.compile(r",(?:\.|$)")
_SIGNS = re.compile(r"[()+\-−]")
_SMALLEST, _LARGEST = -20, 28
"""Powers of ten beyond which a number is written as 3.2 × 10^-45."""


class _Section(NamedTuple):
    """Part of a number format, for positive, negative or zero values."""

    prefix: str
    place: str
    """Placeholders of digits; empty if they do not stand together or are not known."""
    suffix: str
    is_percent: bool


def shown_number(value: float, number_format: str) -> str:
    """Return a number with the percent sign, currency, unit and leading zeros of its format.

    It is never rounded to the digits that the sheet shows, and has no marks between thousands.
    """
    sections = _sections(number_format)
    section = sections[0]
    if value < 0 and len(sections) > 1:
        section = sections[1]
    elif value == 0 and len(sections) > 2:
        if sections[2].place:
            section = sections[2]
        elif not _SAYS_NOTHING.fullmatch(section.prefix + section.suffix):  # "over", ▲, …
            section = section._replace(prefix="", suffix="%" * section.is_percent)
    number = _decimal(value)
    if not section.place or _SCALED.search(section.place):
        return _plain(number)
    size = number.copy_abs()  # `abs` rounds
    whole, _, places = section.place.partition(".")
    text = _plain(size.scaleb(2) if section.is_percent else size)
    if " " not in text:
        before, _, after = text.partition(".")
        after = after.ljust(places.count("0"), "0")
        text = before.zfill(whole.count("0")) + (f".{after}" if after else "")
    sign = "-" if value < 0 else ""
    if section.prefix in _SYMBOLS and not section.suffix:
        return f"{sign}{section.prefix}{text}"
    return f"{section.prefix}{sign}{text}{section.suffix}"  # so that the number is read as negative


def shown_time(value: object) -> str:
    """Return a date as 2026-03-05, without a midnight, or a duration in hours, minutes, seconds."""
    if isinstance(value, datetime.timedelta):
        seconds = round(abs(value.total_seconds()))
        sign = "-" if value < datetime.timedelta() else ""
        return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(value).removesuffix(" 00:00:00")


def _decimal(value: float) -> Decimal:
    """Return a number with the 15 digits that spreadsheets keep."""
    return Decimal(value if isinstance(value, int) else f"{value or 0:.15g}")


def _plain(number: Decimal) -> str:
    if number and not _SMALLEST <= number.adjusted() <= _LARGEST:
        power = number.adjusted()
        return f"{number.scaleb(-power).normalize():f} × 10^{power}"
    return f"{number:f}"


@lru_cache
def _sections(number_format: str) -> list[_Section]:
    """Return the sections of a format; one that depends on a condition is like the first."""
    texts, places, percents = [""], [""], [False]
    has_condition = False
    for token in _TOKEN.finditer(number_format):
        has_condition |= bool(token["condition"])
        if token["next"]:
            texts.append("")
            places.append("")
            percents.append(False)
        elif token["place"]:
            texts[-1] += _PLACE
            places[-1] = token["place"]
        else:
            texts[-1] += token["quoted"] or token["escaped"] or token["currency"] or ""
            texts[-1] += token["other"] or ""
            percents[-1] |= token["other"] == "%"
    sections: list[_Section] = []
    for number, (text, place, is_percent) in enumerate(zip(texts, places, percents, strict=True)):
        if text.count(_PLACE) != 1:  # a fraction, a telephone number or a power of ten
            text, place, is_percent = _PLACE, "", False
        if number:  # for negative numbers and for zero: the sign and the digits say this
            text = _SIGNS.sub("", text)
        prefix, _, suffix = text.partition(_PLACE)
        prefix, suffix = prefix.lstrip(), suffix.rstrip()
        if number == 1:  # "under", "loss of", ▼: the sign says this as well
            above = sections[0]
            prefix = prefix if prefix == _SIGNS.sub("", above.prefix) else ""
            suffix = suffix if suffix == _SIGNS.sub("", above.suffix) else "%" if is_percent else ""
        sections.append(_Section(prefix, place, suffix, is_percent))
    if has_condition and len({(section.prefix, section.suffix) for section in sections}) > 1:
        return [_Section("", "", "", False)]
    return sections
