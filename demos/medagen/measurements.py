"""Extracts ages, durations, pregnancies and vital signs from messages.

Impossible values, such as a temperature of 390 °C, are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from demos.medagen.dictionary import fold, is_word
from demos.medagen.lexicon import is_misspelt
from demos.medagen.schemas import VitalSigns
from demos.medagen.spoken_numbers import in_digits

_NUMBERS = {
    word: number
    for words in (
        "mot hai ba bon nam sau bay tam chin muoi",
        "one two three four five six seven eight nine ten eleven twelve",
    )
    for number, word in enumerate(words.split(), 1)
} | {"a": 1, "an": 1, "tu": 4, "couple": 2, "vai": 3, "few": 3, "several": 3, "half": 0.5}
_N = rf"(\d+(?:[.,]\d+)?|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_DAYS = {
    "hour": 1 / 24, "hr": 1 / 24, "tieng": 1 / 24, "gio": 1 / 24, "minute": 1 / 1440,
    "min": 1 / 1440, "phut": 1 / 1440, "day": 1, "ngay": 1, "hom": 1, "night": 1, "dem": 1,
    "week": 7, "wk": 7, "tuan": 7, "month": 30, "thang": 30, "year": 365, "yr": 365, "nam": 365,
}  # fmt: skip
_AGES = {
    "year": 1, "yr": 1, "tuoi": 1, "month": 1 / 12, "thang": 1 / 12, "mo": 1 / 12,
    "week": 7 / 365, "wk": 7 / 365, "tuan": 7 / 365, "day": 1 / 365, "ngay": 1 / 365,
    "m": 1 / 12, "w": 7 / 365, "d": 1 / 365,
}  # fmt: skip
_WORD = re.compile(r"[a-z]{4,}")


class _Patterns:
    """Compiled regular expressions of measurements.yaml."""

    def __init__(self, read: Mapping[str, Any]) -> None:
        self._of, self._person = str(read["of"]), str(read["person"])
        self.newborn, self.baby = self._one(read["newborn"]), self._one(read["baby"])
        self.ages = self._all(read["ages"])
        self.age_and_sex = self._one(read["age_and_sex"])
        self.temperature = self._all(read["temperature"])
        self.of_a_thing = self._one(read["of_a_thing"])
        self.saturation = self._one(read["saturation"])
        self.pulse = self._all(read["pulse"])
        self.breaths = self._all(read["breaths"])
        self.pressure = self._all(read["pressure"])
        self.upper_pressure = self._one(read["upper_pressure"])
        self.glucose = self._one(read["glucose"])
        self.duration = self._all(read["duration"])
        self.in_words = {self._one(one): days for one, days in read["duration_in_words"].items()}
        self.pregnant = self._one(read["pregnant"])
        self.not_pregnant = self._one(read["not_pregnant"])
        self.spelt = sorted(read["spelt"].split())

    def _one(self, written: str) -> re.Pattern[str]:
        unit = f"({'|'.join(_DAYS)})"
        return re.compile(
            written.replace("<N>", _N)
            .replace("<OF>", self._of)
            .replace("<PERSON>", self._person)
            .replace("<UNIT>", unit)
        )

    def _all(self, written: Sequence[str]) -> list[re.Pattern[str]]:
        return [self._one(one) for one in written]


@cache
def _patterns() -> _Patterns:
    file = Path(__file__).with_name("measurements.yaml")
    return _Patterns(yaml.safe_load(file.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Measured:
    """Facts extracted from messages; None if a fact was not mentioned."""

    age: float | None
    """Age in years."""
    is_pregnant: bool
    duration_days: float | None
    """Longest mentioned duration in days."""
    vital_signs: VitalSigns


def measured(texts: Sequence[str]) -> Measured:
    """Extract the facts from all messages of a conversation.

    If a vital sign is mentioned several times, the most dangerous value counts. Of several ages,
    the one furthest from that of a young adult counts.
    """
    plain = [_plain(text) for text in texts]
    ages = [age for text in plain for age in _ages(text)]
    durations = [days for text in plain for days in _durations(text)]
    return Measured(
        age=max(ages, key=_risk_of_age, default=None),
        is_pregnant=any(
            _patterns().pregnant.search(_patterns().not_pregnant.sub(" ", text)) for text in plain
        ),
        duration_days=max(durations, default=None),
        vital_signs=VitalSigns(
            temperature_celsius=_worst(plain, _temperatures, 36.8),
            heart_rate=_worst(plain, _pulses, 80),
            respiratory_rate=_worst(plain, _breaths, 16),
            oxygen_saturation=_worst(plain, _all(_patterns().saturation, 40, 100), 98),
            systolic_bp=_worst(plain, _upper, 120),
            diastolic_bp=_worst(plain, _lower, 80),
            glucose_mmol_l=_worst(plain, _glucose, 6),
        ),
    )


def _plain(text: str) -> str:
    text = in_digits(unicodedata.normalize("NFC", text).lower().replace("₂", "2"))
    plain = "".join(fold(letter) if letter.isalpha() else letter for letter in text)
    return _WORD.sub(_as_meant, plain.translate({ord(mark): None for mark in "'’"}))


def _as_meant(found: re.Match[str]) -> str:
    """Return the corrected spelling of a word that measurements depend on; else the word itself."""
    word = found.group()
    patterns = _patterns()
    if word in patterns.spelt or is_word(word, has_diacritics=False):
        return word
    return next((meant for meant in patterns.spelt if is_misspelt(meant, word)), word)


def _number(text: str) -> float:
    return _NUMBERS.get(text) or float(text.replace(",", "."))


def _worst(
    texts: Sequence[str], read: Callable[[str], Sequence[float]], normal: float
) -> float | None:
    found = [number for text in texts for number in read(text)]
    return max(found, key=lambda number: abs(number - normal) / normal, default=None)


def _risk_of_age(age: float) -> float:
    return 100 - age if age < 16 else age


def _all(pattern: re.Pattern[str], least: float, most: float) -> Callable[[str], Sequence[float]]:
    def read(text: str) -> list[float]:
        numbers = [_number(one.group(1)) for one in pattern.finditer(text)]
        return [number for number in numbers if least <= number <= most]

    return read


def _ages(text: str) -> list[float]:
    ages: list[float] = []
    for pattern in (*_patterns().ages, _patterns().age_and_sex):
        for one in pattern.finditer(text):
            age = _number(one.group(1)) * _AGES.get(one.group(2) or "year", 1)
            if 0 <= age <= 120:
                ages.append(age)
    if not ages and _patterns().newborn.search(text):
        ages.append(0.02)
    if not ages and _patterns().baby.search(text):
        ages.append(0.5)
    return ages


def _durations(text: str) -> list[float]:
    days = [
        _number(one.group(1)) * _DAYS[one.group(2)]
        for pattern in _patterns().duration
        for one in pattern.finditer(text)
    ]
    days += [number for pattern, number in _patterns().in_words.items() if pattern.search(text)]
    return [number for number in days if number <= 40_000]


def _temperatures(text: str) -> list[float]:
    found: list[float] = []
    text = _patterns().of_a_thing.sub(" ", _patterns().age_and_sex.sub(" ", text))
    for pattern in _patterns().temperature:
        for one in pattern.finditer(text):
            degrees, unit = _number(one.group(1)), one.group(2)
            if unit == "f" or (unit is None and 90 <= degrees <= 115):
                degrees = round((degrees - 32) / 1.8, 1)
            if 28 <= degrees <= 44:
                found.append(degrees)
    return found


def _pulses(text: str) -> list[float]:
    return [number for pattern in _patterns().pulse for number in _all(pattern, 20, 300)(text)]


def _breaths(text: str) -> list[float]:
    return [number for pattern in _patterns().breaths for number in _all(pattern, 3, 120)(text)]


def _pressures(text: str) -> list[tuple[float, float]]:
    pairs = [
        (float(one.group(1)), float(one.group(2)))
        for pattern in _patterns().pressure
        for one in pattern.finditer(text)
    ]
    return [
        (upper * 10, lower * 10) if upper < 30 and lower < 20 else (upper, lower)
        for upper, lower in pairs
        if upper > lower
    ]


def _upper(text: str) -> list[float]:
    alone = _all(_patterns().upper_pressure, 40, 300)(text)
    return [upper for upper, _ in _pressures(text) if 40 <= upper <= 300] or list(alone)


def _lower(text: str) -> list[float]:
    return [lower for _, lower in _pressures(text) if 20 <= lower <= 200]


def _glucose(text: str) -> list[float]:
    found = []
    for one in _patterns().glucose.finditer(text):
        number, unit = _number(one.group(1)), one.group(2)
        if unit == "mg" or (unit is None and number >= 40):
            number = round(number / 18.016, 1)
        if 0.5 <= number <= 80:
            found.append(number)
    return found
