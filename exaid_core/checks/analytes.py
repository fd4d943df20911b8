"""Names the unit that a laboratory value without one is customarily in: `Na 118` is in mmol/L."""

from __future__ import annotations

import re

# Conventional units of the United States, in which clinicians leave them out. The names of a unit:
# abbreviations, whose case counts, and words.
_ANALYTES = {
    "mmol/l": ("Na|K|Cl|HCO3", "sodium|potassium|chloride|bicarb(?:onate)?|lactate|lactic acid"),
    "g/dl": ("Hb|HB|Hgb|HGB", "ha?emoglobin|albumin"),
    "mg/dl": ("Cr|BUN|Ca", "creatinine|glucose|bilirubin|calcium"),
}
_REACH = 40
_BETWEEN = r"[+)]?(?:[\s:=(]|\b(?:level|of|is|was|at|now|only|from|to|up|down|rose|fell)\b)*$"
_NAMES = {
    unit: re.compile(rf"\b(?:(?:{abbreviations})|(?i:{words})){_BETWEEN}", re.ASCII)
    for unit, (abbreviations, words) in _ANALYTES.items()
}


def customary_unit(text: str, start: int) -> str | None:
    """Return the canonical unit that a number at `start` has by the analyte named before it.

    Args:
        text: Text normalized by `exaid_core.checks.quantities.plain`.
        start: Start index of the number.
    """
    before = text[max(start - _REACH, 0) : start]
    return next((unit for unit, names in _NAMES.items() if names.search(before)), None)
