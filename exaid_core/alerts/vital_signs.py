"""Finds vital signs and laboratory values that by themselves mean danger to life."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class _VitalSign:
    """A measurement that is dangerous from `least` up to, but not including, `bound`."""

    label: str
    least: float
    bound: float
    too_low: bool
    """Whether `bound` is the threshold, not `least`; the other is the limit of plausible values."""
    tail: str = ""
    """What must follow the value, or must not."""


_VITAL_SIGNS = (
    # Thresholds lie beyond those that call for a review: such values fill ordinary case reports.
    _VitalSign(
        r"(?<!venous.)(?<!transferrin.)(?<!iron.)(?:sp?o2|sao2|o2[ -]?sat(?:uration)?s?"
        r"|oxygen sat(?:uration)?s?|sats|saturations|pulse ox(?:imetry)?)",
        least=20,
        bound=85,
        too_low=True,
        tail=r"(?!\s?(?:mm|kpa|ml|mg|min|years?|/))",
    ),
    _VitalSign(
        r"(?:sbp|systolic(?: blood pressure| bp| pressure)?)", least=20, bound=70, too_low=True
    ),
    _VitalSign(
        r"(?:bp|blood pressure)",
        least=20,
        bound=70,
        too_low=True,
        tail=r"\s?(?:/\s?\d{2,3}|systolic)",
    ),
    _VitalSign(r"(?:gcs|glasgow coma (?:scale|score))", least=3, bound=9, too_low=True),
    _VitalSign(
        r"(?:potassium|(?<!vitamin.)(?-i:K)\+?)",
        least=6.5,
        bound=10,
        too_low=False,
        tail=r"(?!\s?(?:m?eq|mg|g|days?|%)\b(?!/))",  # doses
    ),
    _VitalSign(r"(?:arterial|blood|venous|serum) ph", least=6.5, bound=7.0, too_low=True),
)

_FILLER = (
    r"(?:[\s:=(,*_~|-]|\b(?:of|is|was|at|now|has|had|been|only|just|down|up|fell|falls|falling"
    r"|drops|dropp(?:ed|ing)|decreased|rose|risen|increased|reads?|reading|level|score|value|about"
    r"|around|approximately|from|to|be|found|measured|in the|low|mid|high|remains?|currently"
    r"|on (?:room air|ra|air|arrival))\b){0,14}?"
)
_LESS = r"<|≤|below|under|less than"
_MORE = r">|≥|above|over|more than|greater than|at least"
_NUMBER = r"\d{1,3}(?:\.\d+)?"
# "70-75", "70 to 75", "from 95 to 70", "95 → 70"
_READING = (
    rf"(?P<filler>{_FILLER})(?:(?P<less>{_LESS})|(?P<more>{_MORE}))?=?\s?"
    rf"(?:(?P<first>{_NUMBER})\s?%?\s?(?P<link>to\b|→|->|-|–)\s?)?(?P<last>{_NUMBER})(?![\d.]*\d)"
)


def dangerous_readings(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each reading that is dangerous, sign by sign.

    Signs: oxygen saturation below 85 %, systolic pressure below 70 mmHg, Glasgow coma scale 8 or
    less, potassium 6.5 mmol/L or more, blood pH below 7.0. A bound counts as its value (`SpO2 <
    80`) unless it points the other way (`SpO2 > 80`); of a range the end nearer to normal counts,
    of a change (`from 95 to 70`) the last value.

    Args:
        text: Text in NFKC form.
    """
    for sign, pattern in _patterns():
        for reading in pattern.finditer(text):
            if _is_dangerous(sign, reading):
                yield reading.span()


@cache
def _patterns() -> tuple[tuple[_VitalSign, re.Pattern[str]], ...]:
    return tuple(
        (sign, re.compile(rf"(?<!\w){sign.label}{_READING}{sign.tail}", re.IGNORECASE))
        for sign in _VITAL_SIGNS
    )


def _is_dangerous(sign: _VitalSign, reading: re.Match[str]) -> bool:
    if reading["more" if sign.too_low else "less"]:
        return False
    value = float(reading["last"])
    changes = reading["link"] in ("→", "->") or "from" in reading["filler"].lower()
    if reading["first"] and not changes:
        value = (max if sign.too_low else min)(value, float(reading["first"]))
    if sign.too_low and value == sign.bound:
        return reading["less"] not in (None, "≤")
    return sign.least <= value < sign.bound
