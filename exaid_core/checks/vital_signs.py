"""Finds vital signs and laboratory values that alone indicate a danger to life."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from exaid_core.checks.cue_files import any_of, read_cues
from exaid_core.checks.cue_finder import CueFinder


@dataclass(frozen=True, slots=True)
class _VitalSign:
    """A measurement that is dangerous in the half-open range from `least` to `bound`."""

    least: float
    bound: float
    too_low: bool
    """Whether the threshold is `bound` rather than `least`; the other limits plausible values."""
    tail: str = ""
    """Regular expression for the text after the value."""


# Keyed by the kind of the labels in `vital_signs.txt`. The thresholds are more extreme than those
# that call for a clinical review, because such values are common in ordinary case reports.
_VITAL_SIGNS: Mapping[str, _VitalSign] = {
    "oxygen saturation": _VitalSign(
        least=20, bound=85, too_low=True, tail=r"(?!\s?(?:mm|kpa|ml|mg|min|years?|/))"
    ),
    "systolic pressure": _VitalSign(least=20, bound=70, too_low=True),
    "blood pressure": _VitalSign(
        least=20, bound=70, too_low=True, tail=r"\s?(?:/\s?\d{2,3}|systolic)"
    ),
    "coma scale": _VitalSign(least=3, bound=9, too_low=True, tail=r"(?!\s?-?\s?years?\b)"),
    "potassium": _VitalSign(
        least=6.5,
        bound=10,
        too_low=False,
        tail=r"(?!\s?(?:m?eq|mg|g|days?|%)\b(?!/))",  # excludes doses
    ),
    "blood ph": _VitalSign(least=6.5, bound=7.0, too_low=True),
}

_ALWAYS_A_CHANGE = ("→", "->")
_NUMBER = r"\d{1,3}(?:\.\d+|[,٫]\d{1,2}(?!\d))?"


def dangerous_readings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each dangerous reading, in order.

    The thresholds are oxygen saturation below 85%, systolic pressure below 70 mmHg, Glasgow coma
    scale 8 or less, potassium 6.5 mmol/L or more, and blood pH below 7.0. An inequality counts as
    its value (`SpO2 < 80`) unless it points the other way (`SpO2 > 80`); a range counts as the end
    nearer to normal, and a change (`from 95 to 70`) as its last value.

    Args:
        text: Text normalized by `exaid_core.checks.cue_files.normal`.
    """
    for label in _labels().find(text):
        sign = _VITAL_SIGNS[label.cue.kind]
        reading = _reading(sign.tail).match(text, label.end)
        if reading and _is_dangerous(sign, reading):
            yield label.start, reading.end()


@cache
def _labels() -> CueFinder:
    labels = [cue for cue in read_cues("vital_signs") if cue.kind in _VITAL_SIGNS]
    return CueFinder(labels, within_a_word=True)


@cache
def _reading(tail: str) -> re.Pattern[str]:
    """Return a pattern for readings after a label: "70-75", "fell from 95 to 70", "95 → 70"."""
    cues = read_cues("vital_signs")
    changes = any_of(cues, "becomes")
    return re.compile(
        rf"(?P<filler>(?:[\s:=(),*_~|-]|{any_of(cues, 'filler', 'from')}){{0,14}}?)"
        rf"(?:(?P<less>[<≤]|{any_of(cues, 'less')})|(?P<more>[>≥]|{any_of(cues, 'more')}))?=?\s?"
        rf"(?:(?P<first>{_NUMBER})\s?[%٪]?\s?"
        rf"(?P<link>→|->|[–~〜-]|{any_of(cues, 'to')}|(?P<becomes>{changes}))\s?)?"
        rf"(?P<last>{_NUMBER})(?![\d.]*\d)(?!\s?[%٪]?{any_of(cues, 'or more')}){tail}",
        re.IGNORECASE,
    )


@cache
def _from() -> re.Pattern[str]:
    return re.compile(any_of(read_cues("vital_signs"), "from"), re.IGNORECASE)


def _is_dangerous(sign: _VitalSign, reading: re.Match[str]) -> bool:
    if reading["more" if sign.too_low else "less"]:
        return False
    value = _value(reading["last"])
    changes = (
        reading["link"] in _ALWAYS_A_CHANGE
        or reading["becomes"]
        or _from().search(reading["filler"])
    )
    if reading["first"] and not changes:
        value = (max if sign.too_low else min)(value, _value(reading["first"]))
    if sign.too_low and value == sign.bound:
        return reading["less"] not in (None, "≤")
    return sign.least <= value < sign.bound


def _value(number: str) -> float:
    """Parse a number in the digits of any script, with a decimal point or comma."""
    return float(number.replace(",", ".").replace("٫", "."))
