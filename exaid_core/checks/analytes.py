"""Names what a value is customarily written without: `Na 118` is in mmol/L, `GCS 6` of 15."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class _Unit(NamedTuple):
    """A unit, with the values that may be in it."""

    name: str
    """Canonical unit."""
    least: float = 0.0
    """Smallest value in the unit."""
    below: float = float("inf")
    """Value from which the unit is another one."""


_NO_NAME = "(?!)"


class _Analyte(NamedTuple):
    """Names of analytes, and the units that their values are customarily in."""

    units: tuple[_Unit, ...]
    abbreviations: str = _NO_NAME
    """Names whose case counts."""
    words: str = _NO_NAME


# Conventional units of the United States, in which clinicians leave them out. Cells are told per
# nanoliter (`WBC 8.1`) or microliter (`WBC 8100`).
_ANALYTES = (
    _Analyte(
        (_Unit("mmol/l"),),
        "Na|K|Cl|HCO3",
        "sodium|potassium|chloride|bicarb(?:onate)?|lactate|lactic acid",
    ),
    _Analyte((_Unit("g/dl"),), "Hb|HB|Hgb|HGB", "ha?emoglobin|albumin|total protein"),
    _Analyte(
        (_Unit("mg/dl"),),
        "Cr|BUN|Ca|Mg|Phos|PO4|LDL|HDL|TG|[TD][. ]{0,2}[Bb]ili",
        "creatinine|glucose|bili(?:rubin)?|calcium|magnesium|phosph(?:ate|orus)|uric acid"
        "|fibrinogen|cholesterol|triglycerides",
    ),
    _Analyte(
        (_Unit("u/l"),),
        "AST|ALT|ALP|LDH|CK|CPK|GGT",
        "lipase|amylase|(?:alkaline|alk) phos(?:phatase)?",
    ),
    _Analyte((_Unit("%"),), "(?:Hb)?A1[cC]|Hct|HCT", "ha?ematocrit"),
    _Analyte((_Unit("%", least=21, below=101),), "FiO2"),
    _Analyte(
        (_Unit("ng/ml", below=10),),
        words=r"(?<!\bhs[ -])(?<!\bhs\) )(?<!sensitive )(?<!sensitivity )(?<!cardiac )"
        "troponin(?: [IT])?",
    ),
    _Analyte((_Unit("ng/ml"),), "PCT", "ferritin|procalcitonin"),
    _Analyte((_Unit("pg/ml"),), "(?:NT-?pro)?BNP"),
    _Analyte((_Unit("mu/l"),), "TSH"),
    _Analyte((_Unit("umol/l"),), "NH3", "ammonia"),
    _Analyte((_Unit("fl"),), "MCV"),
    _Analyte((_Unit("mm/h"),), "ESR"),
    _Analyte((_Unit("kg/m2"),), "BMI"),
    _Analyte((_Unit("ml/min"), _Unit("ml/min/1.73m2")), "e?GFR"),
    _Analyte((_Unit("mmhg"),), "[pP]a?CO2|[pP]a?O2"),
    _Analyte((_Unit("cmh2o"),), "PEEP"),
    _Analyte((_Unit("ml"),), "TV|Vt", "tidal volume"),
    _Analyte(
        (_Unit("1/nl", below=100), _Unit("1/ul", least=100)),
        "WBC",
        "white(?: blood)?(?: cell)?(?= count)|leu[ck]ocytes",
    ),
    _Analyte((_Unit("1/nl", below=50), _Unit("1/ul", least=50)), "A[NL]C", "neutrophils"),
    _Analyte((_Unit("1/nl", below=2000), _Unit("1/ul", least=2000)), "PLT|[Pp]lts?", "platelets?"),
    _Analyte((_Unit("1/pl", below=10),), "RBC"),
    _Analyte((_Unit("1/ul"),), "CD[48]"),
    _Analyte(
        (_Unit("°c", least=33, below=44), _Unit("°f", least=91, below=112)),
        "T|Tmax",
        "temp(?:erature)?|fevers?|febrile",
    ),
)
_HIGHEST = {"GCS": "15", "MMSE": "30", "MOCA": "30", "NIHSS": "42"}
_HIGHEST_PAIN = "10"
"""Highest value of a score, which is left out: `GCS 6` is 6/15."""
_PANELS = {"ABG": "pH/pCO2/pO2/HCO3", "VBG": "pH/pCO2/pO2/HCO3", "H/H": "Hb/Hct", "H&H": "Hb/Hct"}
_REACH = 40
_BETWEEN = (
    r"[+)]?(?:[\s:=(]|\b(?:level|count|of|is|was|at|now|only|from|to|up|down|rose|fell)\b"
    r"|[0-9][0-9.]*+ ?(?:->|→))*$"
)
_NAME = "|".join(rf"({one.abbreviations}|(?i:{one.words}))" for one in _ANALYTES)
_ANALYTE = re.compile(rf"\b(?:{_NAME}){_BETWEEN}", re.ASCII)
# The units of these differ between laboratories, or are none.
_NO_UNIT = "pH|INR|CRP|BE|a?PTT|PT|(?i:urea|ketones|base excess|prothrombin time)"
_MEASURED = re.compile(rf"\b(?:{_NAME}|{_NO_UNIT}){_BETWEEN}", re.ASCII)
# "pain at 3", "pain from 3 to 5" and "pain of 2 days" tell a place or a time.
_SCORE = re.compile(
    r"\b(?:pain(?:[\s:=(]|\b(?:scale|score|level|is|was|now)\b)*\Z"
    rf"|(?P<name>{'|'.join(_HIGHEST)})(?: scale)?(?: score)?{_BETWEEN})",
    re.IGNORECASE,
)
_SEVERAL = re.compile(rf"\b(?P<names>[A-Za-z0-9]+(?:[/&][A-Za-z0-9]+)*){_BETWEEN}", re.ASCII)


def in_customary_units(text: str, start: int, value: str) -> Iterator[tuple[str, str]]:
    """Yield a number without a unit, or each of several, with its canonical unit.

    The unit is known by the analyte that is named before it. Numbers of several analytes
    (`H/H 8/24`) are left out if they have the same unit, which does not tell one from another.

    Args:
        text: Text normalized by `exaid_core.checks.quantities.plain`.
        start: Start index of the number.
        value: Value of the number, as in `Quantity`.
    """
    before = text[max(start - _REACH, 0) : start]
    names, numbers = [before], value.split("/")
    if len(numbers) > 1:
        several = _SEVERAL.search(before)
        panel = several["names"] if several else ""
        names = _PANELS.get(panel, panel).split("/")
    if ":" in value or len(numbers) > len(names):
        return
    told = [
        (number, unit)
        for name, number in zip(names, numbers, strict=False)
        for unit in _units(name, float(number))
    ]
    times = Counter(unit for _, unit in told)
    yield from ((number, unit) for number, unit in told if times[unit] == 1)


def is_measured(text: str, start: int) -> bool:
    """Return whether the number at `start` is the value of an analyte that is named before it."""
    return _MEASURED.search(text[max(start - _REACH, 0) : start]) is not None


def _units(name: str, number: float) -> Iterator[str]:
    """Yield the customary units of a number of the analyte at the end of `name`."""
    found = _ANALYTE.search(name)
    if found and found.lastindex:
        for unit in _ANALYTES[found.lastindex - 1].units:
            if unit.least <= number < unit.below:
                yield unit.name


def as_score(text: str, start: int, value: str) -> str | None:
    """Return the number at `start` with the highest value of the score that is named before it."""
    score = _SCORE.search(text, max(start - _REACH, 0), start)
    if score is None or not value.isdecimal():
        return None
    return f"{value}/{_HIGHEST[score['name'].upper()] if score['name'] else _HIGHEST_PAIN}"
