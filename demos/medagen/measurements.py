"""Extracts ages, durations, pregnancies and vital signs from messages.

Impossible values, such as a temperature of 390 °C, are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
_NORMAL = {
    "temperature_celsius": 36.8, "heart_rate": 80, "respiratory_rate": 16, "oxygen_saturation": 98,
    "systolic_bp": 120, "diastolic_bp": 80, "glucose_mmol_l": 6,
    "ketones_mmol_l": 0.3,
}  # fmt: skip
_NOT_YET = 0.99
"""Part of an age that a person who is younger has reached."""
_POSSIBLE = {
    "temperature_celsius": (28, 44), "heart_rate": (20, 300), "respiratory_rate": (3, 120),
    "oxygen_saturation": (40, 100), "systolic_bp": (40, 300), "diastolic_bp": (20, 200),
    "glucose_mmol_l": (0.5, 80), "ketones_mmol_l": (0, 20),
}  # fmt: skip
_DEGREE = re.compile(r"(?<=\d)\s?[º˚⁰ᵒ∘◦○]|(?<=\d\d|[.,]\d)(?:\s?[oO](?=\s?[cC]\b)|[oO](?=F\b))")
"""Signs that are typed for that of a degree."""
_TABLE = re.compile(
    r"^[ \t]*\|(?P<heads>.+)\|[ \t\r]*\n[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t\r]*\n"
    r"(?P<rows>(?:[ \t]*\|.*(?:\n|$))+)",
    re.MULTILINE,
)
"""A table of Markdown with a row of headings."""
_GOAL = re.compile(
    r"\b(?:goals?|targets?|normal|range|limits?|reference|mục tiêu|bình thường|giới hạn)\b",
    re.IGNORECASE,
)
"""Heading of a column that measures nobody."""
_SPACES = re.compile(r"\s+")
_POINT = re.compile(r"(?<=\d)[·∙°](?=\d)")
_FRACTION = re.compile(r"(?<=\d) ?([¼½¾])")
_WORD = re.compile(r"[a-z]{4,}")
_APOSTROPHES = re.compile(r"(?<=old)['’]s\b|['’]")
_WRITTEN_AS = {
    re.compile(r"\bb\.? ?[/.] ?p\b\.?"): "bp",
    re.compile(r"\b(temp|sats?|resp|sys|dia|pul)\.(?=\s)"): r"\1",
    re.compile(r"(?:\b(?:degrees?|deg) )?\bf[ae]h?renhei?[gh]*t\b"): "°f",
    re.compile(r"(?:\b(?:degrees?|deg) )?\b(?:celsius|celcius|centigrade)\b"): "°c",
    # A pulse oximeter shows the saturation and the pulse; up to 100, a second number may be either.
    re.compile(
        r"\b(oximeter|pulse ox|may (?:do )?(?:spo2|oxy))"
        r"((?: (?!between|from)[a-z]+){0,3}[ :]{1,2}\d{2,3}%?)"
        r"(?: and | & | va | ?/ ?| )(10[1-9]|1[1-9]\d|2\d\d)\b"
        r"(?! ?%|[,.]? ?\d| (?:then|now|later|percent))"
    ): r"\1\2 pulse \3",
    # PR is a pulse beside other readings; alone it may be a record.
    re.compile(
        r"\b((?:spo2|sp02|sao2|sats?|o2|sys|dia|bp|rr|temp|oximeter|pulse ox|huyet ap)\b"
        r"[\s\S]{0,40}?)\bpr(?=\W{0,3}\d{2,3}\b)"
    ): r"\1pulse",
    re.compile(
        r"\bpr(?=\W{0,3}\d{2,3}(?: ?bpm|\W{1,3}(?:spo2|sp02|sao2|sats?|o2|bp|rr)\b))"
    ): "pulse",
    # Somebody's own heart rate beside that of a target.
    re.compile(
        r"\b((?:target|goal|training|predicted|recommended|max(?:imum)?|peak) "
        r"(?:heart ?rates?|hr|pulse)\b[^\d\n]{0,20}\d{2,3}(?: ?(?:-|to) ?\d{2,3})?"
        r"[^\d\n]{1,30}?\b(?:mine|now|im)\b[^.\d\n]{0,15})(\d{2,3})\b"
    ): r"\1pulse \2",
}
"""Other ways to write a reading -> as the patterns have it."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """Patterns of a vital sign; their groups are a number, and its unit or the lower pressure."""

    name: re.Pattern[str]
    """The name; its group is a time that is over, or None."""
    first: re.Pattern[str]
    """The value after the name."""
    further: Sequence[re.Pattern[str]]
    """The value after another value."""
    alone: Sequence[re.Pattern[str]]
    """A value that does not follow the name."""


class _Patterns:
    """Compiled regular expressions of measurements.yaml."""

    def __init__(self, read: Mapping[str, Any]) -> None:
        self._parts = {
            f"<{part.upper()}>": str(read[part])
            for part in ("lead", "step", "long ago", "own", "part", "person")
        } | {"<N>": _N, "<UNIT>": f"({'|'.join(_DAYS)})"}
        self.newborn, self.baby = self._one(read["newborn"]), self._one(read["baby"])
        self.ages = self._all(read["ages"])
        self.ages_below = self._all(read["ages_below"])
        self.age_and_sex = self._one(read["age_and_sex"])
        self.other_numbers = self._all(read["other_numbers"])
        self.long_ago = self._one(r"[^\w.\n]{0,3}<LONG AGO>\b")
        self.signs = self._signs(read)
        self.duration = self._all(read["duration"])
        self.in_words = {self._one(one): days for one, days in read["duration_in_words"].items()}
        self.pregnant = self._one(read["pregnant"])
        self.not_pregnant = self._one(read["not_pregnant"])
        self.spelt = sorted(read["spelt"].split())

    def _signs(self, read: Mapping[str, Any]) -> dict[str, _Sign]:
        names = "|".join(str(sign["name"]) for sign in read["signs"].values())
        signs = {}
        for kind, sign in read["signs"].items():
            first, then, listed, before = (
                self._one(
                    str(read["places"][place])
                    .replace("<VALUE>", f"{sign['value']}(?!{read['no_value']})")
                    .replace("<NAME>", str(sign["name"]))
                    .replace("<OTHER>", f"(?:{names})")
                )
                for place in ("first", "then", "listed", "before")
            )
            signs[kind] = _Sign(
                self._one(f"(<LONG AGO>,? (?:(?:my|his|her|the|cua) )?)?{sign['name']}"),
                first,
                (then, listed),
                [*self._all(sign.get("alone", ())), before],
            )
        return signs

    def _one(self, written: str) -> re.Pattern[str]:
        for part, pattern in self._parts.items():
            written = written.replace(part, pattern)
        return re.compile(written)

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
    readings: Mapping[str, Sequence[float]]
    """Vital sign that is mentioned, a field of `VitalSigns` -> all its values, in its unit."""

    @property
    def vital_signs(self) -> VitalSigns:
        """The value of each vital sign that is furthest from a normal one."""
        return VitalSigns(
            **{
                name: max(values, key=lambda value: abs(value - _NORMAL[name]) / _NORMAL[name])
                for name, values in self.readings.items()
            }
        )


def measured(texts: Sequence[str]) -> Measured:
    """Extract the facts from all messages of a conversation.

    All values of a vital sign count, except those of a year ago or more. Of several ages, the one
    furthest from that of a young adult counts.
    """
    plain = [_plain(text) for text in texts]
    ages = [age for text in plain for age in _ages(text)]
    durations = [days for text in plain for days in _durations(text)]
    readings: dict[str, list[float]] = defaultdict(list)
    for text in plain:
        for name, value in _readings(text):
            readings[name].append(value)
    return Measured(
        age=max(ages, key=_risk_of_age, default=None),
        is_pregnant=any(
            _patterns().pregnant.search(_patterns().not_pregnant.sub(" ", text)) for text in plain
        ),
        duration_days=max(durations, default=None),
        readings=readings,
    )


def _with_headings(table: re.Match[str]) -> str:
    """Return a table, and its rows as sentences that name each value: "SpO2 78%, BP 70/40"."""
    heads = table["heads"].split("|")
    rows = [row.strip(" \t\r|").split("|") for row in table["rows"].splitlines()]
    told = [
        ", ".join(
            f"{head} {cell}"
            for head, cell in zip(heads, row, strict=False)
            if not _GOAL.search(head)
        )
        for row in rows
    ]
    return "\n".join([table.group(), *told, ""])


def _plain(text: str) -> str:
    text = _TABLE.sub(_with_headings, text)
    text = _SPACES.sub(lambda found: "\n" if "\n" in found[0] else " ", text)
    text = _POINT.sub(".", _DEGREE.sub("°", text))
    text = _FRACTION.sub(lambda found: f"{unicodedata.numeric(found[1])}"[1:], text)
    text = in_digits(unicodedata.normalize("NFKC", text).lower())
    plain = "".join(fold(letter) if letter.isalpha() else letter for letter in text)
    plain = _WORD.sub(_as_meant, _APOSTROPHES.sub("", plain))
    for written, reading in _WRITTEN_AS.items():
        plain = written.sub(reading, plain)
    return plain


def _as_meant(found: re.Match[str]) -> str:
    """Return the corrected spelling of a word that measurements depend on; else the word itself."""
    word = found.group()
    patterns = _patterns()
    if word in patterns.spelt or is_word(word, has_diacritics=False):
        return word
    return next((meant for meant in patterns.spelt if is_misspelt(meant, word)), word)


def _number(text: str) -> float:
    return _NUMBERS.get(text) or float(text.replace(",", "."))


def _risk_of_age(age: float) -> float:
    return 100 - age if age < 16 else age


def _ages(text: str) -> list[float]:
    ages: list[float] = []
    for pattern in (*_patterns().ages, _patterns().age_and_sex):
        for one in pattern.finditer(text):
            age = _number(one.group(1)) * _AGES.get(one.group(2) or "year", 1)
            if 0 <= age <= 120:
                ages.append(age)
    ages += [
        _number(one.group(1)) * _AGES[one.group(2)] * _NOT_YET
        for pattern in _patterns().ages_below
        for one in pattern.finditer(text)
    ]
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


def _readings(text: str) -> Iterator[tuple[str, float]]:
    """Yield the values of vital signs in a text, each with its field of `VitalSigns`."""
    patterns = _patterns()
    for pattern in (patterns.age_and_sex, *patterns.other_numbers):
        text = pattern.sub(" ", text)
    found = [
        (kind, value, is_past)
        for kind, sign in patterns.signs.items()
        for value, is_past in _named(sign, text)
    ]
    rest = list(text)
    for _, value, _ in found:
        rest[value.start() : value.end()] = "_" * (value.end() - value.start())
    unnamed = "".join(rest)
    found += [
        (kind, value, False)
        for kind, sign in patterns.signs.items()
        for pattern in sign.alone
        for value in pattern.finditer(unnamed)
    ]
    for kind, value, is_past in found:
        for name, number in _in_units(kind, value.group(1), value.group(2)):
            least, most = _POSSIBLE[name]
            if not is_past and least <= number <= most:
                yield name, number


def _named(sign: _Sign, text: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield the values that follow a name ("fell from 96 to 82"), and whether each is long ago."""
    for name in sign.name.finditer(text):
        is_past = name.group(1) is not None
        value = sign.first.match(text, name.end())
        while value:
            at = value.end()
            yield value, is_past or _patterns().long_ago.match(text, at) is not None
            is_past = False
            value = next(filter(None, (each.match(text, at) for each in sign.further)), None)


def _in_units(kind: str, number: str, unit: str | None) -> Iterator[tuple[str, float]]:
    """Yield the fields of `VitalSigns` that a value gives, in their units.

    Of a decade ("in the 80s"), the value nearest to a normal one counts.
    """
    if number.endswith("s"):
        lowest, highest = (dict(_in_units(kind, each, unit)) for each in _decade(number))
        for name, low in lowest.items():
            yield name, min(max(_NORMAL[name], low), highest[name])
        return
    value = _number(number)
    if kind == "temperature":
        if unit == "f" or (not unit and 90 <= value <= 115):
            value = round((value - 32) / 1.8, 1)
        yield "temperature_celsius", value
    elif kind == "glucose":
        if unit == "mg" or (unit is None and value >= 40):
            value = round(value / 18.016, 1)
        yield "glucose_mmol_l", value
    elif kind == "pressure":
        lower = float(unit or 0)
        if unit and value < 30 and lower < 20:  # in cmHg
            value, lower = value * 10, lower * 10
        if value > lower:
            yield "systolic_bp", value
            yield "diastolic_bp", lower
    elif kind == "oxygen_saturation" and value < 1:  # "0.84" is a fraction
        yield kind, round(value * 100, 1)
    else:
        yield kind, value


def _decade(number: str) -> tuple[str, str]:
    """Return the lowest and the highest number of "80s"; those of "300s" are 300 and 399."""
    lowest = number.removesuffix("s")
    return lowest, lowest[:-2] + "99" if lowest.endswith("00") else lowest[:-1] + "9"
