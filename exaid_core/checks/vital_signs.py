"""Finds vital signs and laboratory values that alone indicate a danger to life, in English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = r"\d{1,3}(?:\.\d+|,\d{1,2}(?!\d))?"
_FILLER = (
    r"(?:[\s:=(),*_~|-]|\b(?:of|is|are|was|were|at|now|still|has|had|been|only|just|down|up|as|low|fell"
    r"|calculated|recorded|falls|falling|drops|dropped|deteriorated|decreas(?:ed|ing)|rose|risen|increased|noted"
    r"|reads?|reading|level|score|value|about|around|approximately|from|to|be|found|measured|the"
    r"|in|mid|high|remains?|remained|currently|on|room|air|ra|arrival|rang(?:ed|ing)|between"
    r"|pressure|bp|scale|patient|shows|systolic|than|other|mm|hg|his|her|with|bipap|cpap)\b){0,24}?"
)
_LESS = r"[<≤]|\b(?:below|under|less than)\b"
_MORE = r"[>≥]|\b(?:above|over|more than|greater than|at least)\b"
_CHANGE = r"→|->|\b(?:down to|up to|fell to|dropped to|decreased to|rose to|increased to)\b"
# What the label may not describe: "pulmonary artery systolic pressure", "target SpO2", "urine pH".
_OTHER = re.compile(
    r"\b(?:pulmonary|ventricular|PA|RV|wedge|venous|transferrin|iron|vitamin|targets?|goals?|keep"
    r"|maintain(?:ing)?|urin\w+|muscle|gastric|vaginal|fluid|critical|saliva\w*|stool|tissue)\W+"
    r"(?:\w+\W+){0,2}$",
    re.IGNORECASE,
)
# "BP was 60/40, now 120/80"
_LATER = re.compile(
    r"[^.;\n]{0,25}?\b(?:now|currently|improv\w+|increas\w+|rose|recover\w+|up)\b"
    rf"[^.;\d\n]{{0,20}}(?P<last>{_NUMBER})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _VitalSign:
    """A measurement that is dangerous in the half-open range from `least` to `bound`."""

    label: str
    """Regular expression for the name of the measurement."""
    least: float
    bound: float
    too_low: bool
    """Whether the threshold is `bound` rather than `least`; the other limits plausible values."""
    tail: str = ""
    """Regular expression for the text after the value."""

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern for readings: "SpO2 70-75", "BP fell from 95/60 to 70/40"."""
        return re.compile(
            rf"(?<![^\W_])(?:{self.label})(?P<filler>\)?{_FILLER})"
            rf"(?:(?P<less>{_LESS})|(?P<more>{_MORE}))?=?\s?"
            rf"(?:(?P<first>{_NUMBER})\s?%?\s?(?P<link>{_CHANGE}|[–~-]|\bto\b)\s?)?"
            rf"(?P<last>{_NUMBER})(?![\d.]*\d)"
            rf"(?!\s?%?\s?(?:or|and) (?:more|less|above|below|greater)){self.tail}",
            re.IGNORECASE,
        )

    def is_dangerous(self, reading: re.Match[str]) -> bool:
        """Return whether the present value of a reading is dangerous."""
        if reading["more" if self.too_low else "less"]:
            return False
        value = _value(reading["last"])
        is_change = re.search(rf"\bfrom\b|{_CHANGE}", f"{reading['filler']} {reading['link']}")
        if reading["first"] and not is_change:
            value = (max if self.too_low else min)(value, _value(reading["first"]))
        if self.too_low and value == self.bound:
            return reading["less"] not in (None, "≤")
        return self.least <= value < self.bound


# The thresholds are more extreme than those of early warning scores, because such values are
# common in ordinary case reports.
_VITAL_SIGNS = tuple(
    (sign, sign.pattern())
    for sign in (
        _VitalSign(
            r"sp?o2|sao2|o2 ?sat(?:uration)?s?|oxygen sat(?:uration)?s?|sats|saturations?|sats?"
            r"|saturating|desaturat(?:ed|ing|ion)|pulse ox(?:imetry)?",
            least=20,
            bound=85,
            too_low=True,
            tail=r"(?!\s?(?:mm|kpa|ml|mg|min|years?|/))",
        ),
        _VitalSign(
            r"sbp|systolic(?: blood pressure| bp| pressure)?", least=20, bound=81, too_low=True
        ),
        _VitalSign(
            r"bp|(?:arterial )?blood pressures?|hypotensi(?:on|ve)",
            least=20,
            bound=81,
            too_low=True,
            tail=r"\s?(?:/\s?\d{2,3}(?!\d)|(?:mm ?hg )?\(?systolic)",
        ),
        _VitalSign(
            r"gcs|glasgow coma (?:scale|score)",
            least=3,
            bound=9,
            too_low=True,
            tail=r"(?!\s?-?\s?years?\b)",
        ),
        _VitalSign(
            r"respirat(?:ory rate|ions?)|breathing rate|(?-i:RR)",
            least=1,
            bound=8,
            too_low=True,
            tail=r"(?<!\.\d)(?<!\.\d\d)(?!\s?(?:liters?|l\b|%|days?|hours?|times))",
        ),
        _VitalSign(
            r"potassium|(?-i:K)\+?",
            least=6.5,
            bound=12,
            too_low=False,
            tail=r"(?!\s?(?:m?eq|mg|g|days?|%)\b(?!/))",  # excludes doses
        ),
        _VitalSign(r"(?:(?:arterial|blood|venous|serum) )?(?-i:pH|PH)", least=6.51, bound=7.0, too_low=True),
    )
)


def dangerous_readings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each dangerous reading.

    The thresholds are oxygen saturation below 85%, systolic pressure of 80 mmHg or less, Glasgow
    coma scale 8 or less, fewer than 8 breaths per minute, potassium 6.5 mmol/L or more, and blood pH below 7.0. An inequality counts
    as its value (`SpO2 < 80`) unless it points the other way (`SpO2 > 80`); a range counts as the
    end nearer to normal, and a change (`from 95 to 70`, `was 60/40, now 120/80`) as its last value.

    Args:
        text: English text normalized by `exaid_core.checks.cue_files.normal`.
    """
    for sign, pattern in _VITAL_SIGNS:
        for reading in pattern.finditer(text):
            start, end = reading.span()
            if not sign.is_dangerous(reading) or _OTHER.search(text, max(start - 40, 0), start):
                continue
            later = _LATER.match(text, end, end + 60)
            if not later or sign.least <= _value(later["last"]) < sign.bound:
                yield start, end


def _value(number: str) -> float:
    return float(number.replace(",", "."))
