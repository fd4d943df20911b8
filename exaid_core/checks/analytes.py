"""Names what a value is customarily written without: `Na 118` is in mmol/L, `GCS 6` of 15."""

from __future__ import annotations

import re
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


# Conventional units of the United States, in which clinicians leave them out. The names of what is
# measured: abbreviations, whose case counts, and words. Cells are told per nanoliter (`WBC 8.1`) or
# microliter (`WBC 8100`).
_NO_NAME = "(?!)"
_ANALYTES = (
    (
        "Na|K|Cl|HCO3",
        "sodium|potassium|chloride|bicarb(?:onate)?|lactate|lactic acid",
        [_Unit("mmol/l")],
    ),
    ("Hb|HB|Hgb|HGB", "ha?emoglobin|albumin|total protein", [_Unit("g/dl")]),
    (
        "Cr|BUN|Ca|Mg|Phos|PO4|LDL|HDL|TG|[TD][. ]{0,2}[Bb]ili",
        "creatinine|glucose|bili(?:rubin)?|calcium|magnesium|phosph(?:ate|orus)|uric acid"
        "|fibrinogen|cholesterol|triglycerides",
        [_Unit("mg/dl")],
    ),
    (
        "AST|ALT|ALP|LDH|CK|CPK|GGT",
        "lipase|amylase|(?:alkaline|alk) phos(?:phatase)?",
        [_Unit("u/l")],
    ),
    ("(?:Hb)?A1[cC]|Hct|HCT", "ha?ematocrit", [_Unit("%")]),
    ("FiO2", _NO_NAME, [_Unit("%", least=21, below=101)]),
    (
        _NO_NAME,
        "(?<!hs[ -])(?<!sensitivity )troponin(?: [IT])?",
        [_Unit("ng/ml", below=10)],
    ),
    ("PCT", "ferritin|procalcitonin", [_Unit("ng/ml")]),
    ("(?:NT-?pro)?BNP", _NO_NAME, [_Unit("pg/ml")]),
    ("TSH", _NO_NAME, [_Unit("mu/l")]),
    ("NH3", "ammonia", [_Unit("umol/l")]),
    ("MCV", _NO_NAME, [_Unit("fl")]),
    ("ESR", _NO_NAME, [_Unit("mm/h")]),
    ("BMI", _NO_NAME, [_Unit("kg/m2")]),
    ("e?GFR", _NO_NAME, [_Unit("ml/min"), _Unit("ml/min/1.73m2")]),
    ("[pP]a?CO2|[pP]a?O2", _NO_NAME, [_Unit("mmhg")]),
    ("PEEP", _NO_NAME, [_Unit("cmh2o")]),
    ("TV|Vt", "tidal volume", [_Unit("ml")]),
    (
        "WBC|A[NL]C",
        "white(?: blood)?(?: cell)?(?= count)|leu[ck]ocytes|neutrophils",
        [_Unit("1/nl", below=1000), _Unit("1/ul", least=100)],
    ),
    ("PLT|[Pp]lts?", "platelets?", [_Unit("1/nl", below=2000), _Unit("1/ul", least=2000)]),
    ("RBC", _NO_NAME, [_Unit("1/pl", below=10)]),
    ("CD[48]", _NO_NAME, [_Unit("1/ul")]),
    (
        "T|Tmax",
        "temp(?:erature)?|fevers?|febrile",
        [_Unit("°c", least=33, below=44), _Unit("°f", least=91, below=112)],
    ),
)
_HIGHEST = {"GCS": "15", "MMSE": "30", "MOCA": "30", "NIHSS": "42", "PAIN": "10"}
"""Highest value of a score, which is left out: `GCS 6` is 6/15."""
_PANELS = {"ABG": "pH/pCO2/pO2/HCO3", "VBG": "pH/pCO2/pO2/HCO3", "H/H": "Hb/Hct", "H&H": "Hb/Hct"}
_REACH = 40
_BETWEEN = (
    r"[+)]?(?:[\s:=(]|\b(?:level|count|of|is|was|at|now|only|from|to|up|down|rose|fell)\b"
    r"|[0-9][0-9.]*+ ?(?:->|→))*$"
)
_NAME = "|".join(rf"({abbreviations}|(?i:{words}))" for abbreviations, words, _ in _ANALYTES)
_ANALYTE = re.compile(rf"\b(?:{_NAME}){_BETWEEN}", re.ASCII)
_SCORE = re.compile(
    rf"\b(?P<name>{'|'.join(_HIGHEST)})(?: scale)?(?: score)?{_BETWEEN}", re.IGNORECASE
)
_SEVERAL = re.compile(rf"\b(?P<names>[A-Za-z0-9]+(?:[/&][A-Za-z0-9]+)*){_BETWEEN}", re.ASCII)


def in_customary_units(text: str, start: int, value: str) -> Iterator[tuple[str, str]]:
    """Yield a number without a unit, or each of several, with its canonical unit.

    The unit is known by the analyte that is named before it; `BUN/Cr 45/3.2` has two.

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
    for name, number in zip(names, numbers, strict=False):
        found = _ANALYTE.search(name)
        if found and found.lastindex:
            for unit in _ANALYTES[found.lastindex - 1][2]:
                if unit.least <= float(number) < unit.below:
                    yield number, unit.name


def as_score(text: str, start: int, value: str) -> str | None:
    """Return the number at `start` with the highest value of the score that is named before it."""
    score = _SCORE.search(text, max(start - _REACH, 0), start)
    return f"{value}/{_HIGHEST[score['name'].upper()]}" if score and value.isdecimal() else None
