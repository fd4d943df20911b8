"""Reads ages, durations, pregnancies and vital signs out of messages.

What cannot be, such as a temperature of 390 °C, is not read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from demos.medagen.lexicon import is_misspelt
from demos.medagen.schemas import VitalSigns
from demos.medagen.words import fold

_NUMBERS = {
    word: number
    for words in (
        "mot hai ba bon nam sau bay tam chin muoi",
        "one two three four five six seven eight nine ten eleven twelve",
    )
    for number, word in enumerate(words.split(), 1)
} | {"a": 1, "an": 1, "tu": 4, "couple": 2, "vai": 3, "few": 3, "several": 3, "half": 0.5}
_N = rf"(\d+(?:[.,]\d+)?|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_OF = r"\W{0,3}(?:(?:of|is|was|at|la|luc|khoang|do duoc|chi con|chi|con|len|toi|den|cao|around|about|now|went up|up to|up|to|has been|reached|=)\W{1,2}){0,2}"
_DAYS = {
    "hour": 1 / 24, "hr": 1 / 24, "tieng": 1 / 24, "gio": 1 / 24, "minute": 1 / 1440,
    "min": 1 / 1440, "phut": 1 / 1440, "day": 1, "ngay": 1, "hom": 1, "night": 1, "dem": 1,
    "week": 7, "wk": 7, "tuan": 7, "month": 30, "thang": 30, "year": 365, "yr": 365, "nam": 365,
}  # fmt: skip
_UNIT = rf"({'|'.join(_DAYS)})"
_AGE = {"year": 1, "yr": 1, "tuoi": 1, "month": 1 / 12, "thang": 1 / 12, "mo": 1 / 12,
        "week": 7 / 365, "wk": 7 / 365, "tuan": 7 / 365, "day": 1 / 365, "ngay": 1 / 365}  # fmt: skip
_AGES = [
    re.compile(rf"\b{_N}[\s-]*(year|yr|month|mo|week|wk|day)s?[\s-]*old\b"),
    re.compile(r"\b(\d{1,3})\s*(yr|mo)s?\b[\s/-]*(?:o\b)?(?=\s*(?:boy|girl|male|female|man|woman|m\b|f\b|old))"),
    re.compile(r"\b(\d{1,3})\s*()y[\s/.]?o\b"),
    re.compile(r"\b(?:aged?|age of)\s+(\d{1,3})\b()"),
    re.compile(rf"\b{_N}\s*(thang|tuan|ngay) tuoi\b"),
    re.compile(rf"\b{_N}\s*()tuoi\b(?! thai)"),
    re.compile(r"\b(?:im|i am|shes|hes|turned|(?:she|he|mum|mom|mother|dad|father|son|daughter|husband|wife|grandma|grandmother|grandpa|grandfather|gran|nan|uncle|aunt|brother|sister) (?:is|just turned))\s+(\d{2,3})()\b(?!\s*(?:week|month|day|hour|%|kg|c\b|f\b|[/.]))"),
    re.compile(rf"\b(?:be|con|chau)\s+(?:\w+\s+)?{_N}\s*(thang)\b(?!\s*(?:nay|truoc|qua|roi))"),
]  # fmt: skip
_BORN = re.compile(r"\b(?:newborn|so sinh|moi sinh)\b")
_BABY = re.compile(r"\b(?:infant|em be bu|tre bu)\b")
_TEMPERATURE = [
    re.compile(rf"\b(?:temp(?:erature)?|fever|nhiet do|than nhiet|sot)\b{_OF}(\d{{2,3}}(?:[.,]\d{{1,2}})?)\s*(?:°|do|degrees?|deg)?\s*([cf])?\b(?!\s*(?:hour|day|gio|ngay|tieng|/|%|week|tuan|phut|min))"),
    re.compile(r"\b(\d{2,3}(?:[.,]\d{1,2})?)\s*(?:°|do|degrees?|deg)\s*([cf])?\b"),
    re.compile(r"\b(\d{2,3}(?:[.,]\d{1,2})?)\s*([cf])\b"),
]  # fmt: skip
_SATURATION = re.compile(
    rf"\b(?:spo2|sp02|sao2|sats?|o2|oxygen(?: sat\w*| level)?|saturation|oxy(?: mau)?|do bao hoa(?: oxy)?)\b"
    rf"{_OF}(\d{{2,3}})\b"
)  # fmt: skip
_PULSE = re.compile(
    rf"\b(?:pulse|heart ?rate|hr|mach|nhip tim|heart\w* beating at)\b{_OF}(\d{{2,3}})\b(?!\s*/\s*\d{{2}})"
)
_BREATHS = [
    re.compile(rf"\b(?:resp\w* rate|breathing rate|rr|nhip tho)\b{_OF}(\d{{1,3}})\b"),
    re.compile(r"\b(?:breath\w*|tho)\s+(?:\w+\s+){0,2}?(\d{2,3})\s*(?:times|breaths|lan|l|nhip)?\s*(?:/|a|per|moi|mot)\s*(?:min\w*|phut|p\b)"),
]  # fmt: skip
_PRESSURE = [
    re.compile(rf"\b(?:bp|blood pressure|huyet ap|ha)\b{_OF}(\d{{2,3}})\s*(?:/|over|tren)\s*(\d{{2,3}})\b"),
    re.compile(r"\b(\d{2,3})\s*/\s*(\d{2,3})\s*mm\s?hg\b"),
]  # fmt: skip
_UPPER_PRESSURE = re.compile(
    rf"\b(?:bp|systolic|blood pressure|huyet ap|huyet ap tam thu)\b{_OF}(\d{{2,3}})\b(?!\s*(?:/|over|tren))"
)
_GLUCOSE = re.compile(
    rf"\b(?:glucose|blood sugar|sugar(?: level)?|duong huyet|duong mau|duong)\b{_OF}"
    r"(\d{1,3}(?:[.,]\d)?)\s*(mmol|mg)?"
)
_DURATION = [
    re.compile(rf"\b(?:for|since|past|last|over|these)\s+(?:about\s+|the\s+|last\s+|past\s+|nearly\s+|over\s+)*{_N}\s+(?:of\s+)?{_UNIT}s?\b"),
    re.compile(rf"\b{_N}\s+{_UNIT}s?\s+(?:now|ago|nay|roi|lien)\b"),
    re.compile(rf"\b(?:duoc|da|may|suot|khoang|tu)\s+{_N}\s+{_UNIT}\b(?!\s*tuoi)"),
]  # fmt: skip
_WORDED = {
    re.compile(r"\b(?:since|from) yesterday|tu hom qua|toi hom qua\b"): 1.0,
    re.compile(r"\bfor (?:many |several )?weeks|may tuan(?: nay)?\b"): 21.0,
    re.compile(r"\bfor (?:many |several )?months|may thang(?: nay)?\b"): 90.0,
    re.compile(r"\bfor (?:many |several )?years|nhieu nam(?: nay)?|may nam nay\b"): 730.0,
    re.compile(r"\bfor (?:some|several|many) days|may (?:hom|bua|ngay)(?: nay)?\b"): 3.0,
}
_PREGNANT = re.compile(
    r"\b(?:pregnant|weeks pregnant|expecting a baby|mang thai|co bau|co thai|dang bau|bau (?:be )?\d+|thai \d+ tuan"
    r"|bau thang thu|mang bau|ba bau|\d+ weeks gestation|third trimester|second trimester|first trimester)\b"
)  # fmt: skip
_NOT_PREGNANT = re.compile(
    r"\b(?:not|isnt|never been|khong|chua|ko)\s+(?:co |dang |bi |mang |be )?(?:pregnant|mang thai|co bau|co thai|thai|bau)\b"
)
_WORD = re.compile(r"[a-z]{4,}")
_SPELT = frozenset(
    "pregnant pregnancy trimester pressure systolic temperature fever degrees pulse heart glucose "
    "sugar saturation oxygen breathing respiratory minute month months weeks years thang tuoi "
    "huyet duong nhiet phut".split()
)
_NO_MISTAKE = frozenset("mouth mouths never heard hear fears tears seeks sure huyen duoc".split())


@dataclass(frozen=True, slots=True)
class Measured:
    """What messages say in numbers; None: nothing."""

    age: float | None
    """Years."""
    is_pregnant: bool
    duration_days: float | None
    """The longest."""
    vital_signs: VitalSigns


def measured(texts: Sequence[str]) -> Measured:
    """Read all messages of a conversation.

    Of several vital signs of a kind the more dangerous counts, of several ages the one that is
    further from that of a young adult.
    """
    plain = [_plain(text) for text in texts]
    ages = [age for text in plain for age in _ages(text)]
    durations = [days for text in plain for days in _durations(text)]
    return Measured(
        age=max(ages, key=_risk_of_age, default=None),
        is_pregnant=any(_PREGNANT.search(_NOT_PREGNANT.sub(" ", text)) for text in plain),
        duration_days=max(durations, default=None),
        vital_signs=VitalSigns(
            temperature_celsius=_worst(plain, _temperatures, 36.8),
            heart_rate=_worst(plain, _all(_PULSE, 20, 300), 80),
            respiratory_rate=_worst(plain, _breaths, 16),
            oxygen_saturation=_worst(plain, _all(_SATURATION, 40, 100), 98),
            systolic_bp=_worst(plain, _upper, 120),
            diastolic_bp=_worst(plain, _lower, 80),
            glucose_mmol_l=_worst(plain, _glucose, 6),
        ),
    )


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFC", text).lower().replace("₂", "2")
    plain = "".join(fold(letter) if letter.isalpha() else letter for letter in text)
    return _WORD.sub(_as_meant, plain.translate({ord(mark): None for mark in "'’"}))


def _as_meant(found: re.Match[str]) -> str:
    """Return a word without a spelling error in it, if it is one that measurements need."""
    word = found.group()
    if word in _SPELT or word in _NO_MISTAKE:
        return word
    return next((meant for meant in sorted(_SPELT) if is_misspelt(meant, word)), word)


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
    for pattern in _AGES:
        for one in pattern.finditer(text):
            age = _number(one.group(1)) * _AGE.get(one.group(2) or "year", 1)
            if 0 <= age <= 120:
                ages.append(age)
    if not ages and _BORN.search(text):
        ages.append(0.02)
    if not ages and _BABY.search(text):
        ages.append(0.5)
    return ages


def _durations(text: str) -> list[float]:
    days = [
        _number(one.group(1)) * _DAYS[one.group(2)]
        for pattern in _DURATION
        for one in pattern.finditer(text)
    ]
    days += [number for pattern, number in _WORDED.items() if pattern.search(text)]
    return [number for number in days if number <= 40_000]


def _temperatures(text: str) -> list[float]:
    found: list[float] = []
    for pattern in _TEMPERATURE:
        for one in pattern.finditer(text):
            degrees, unit = _number(one.group(1)), one.group(2)
            if unit == "f" or (unit is None and 90 <= degrees <= 115):
                degrees = round((degrees - 32) / 1.8, 1)
            if 28 <= degrees <= 44:
                found.append(degrees)
    return found


def _breaths(text: str) -> list[float]:
    return [number for pattern in _BREATHS for number in _all(pattern, 3, 120)(text)]


def _pressures(text: str) -> list[tuple[float, float]]:
    pairs = [
        (float(one.group(1)), float(one.group(2)))
        for pattern in _PRESSURE
        for one in pattern.finditer(text)
    ]
    return [
        (upper * 10, lower * 10) if upper < 30 and lower < 20 else (upper, lower)
        for upper, lower in pairs
        if upper > lower
    ]


def _upper(text: str) -> list[float]:
    alone = _all(_UPPER_PRESSURE, 40, 300)(text)
    return [upper for upper, _ in _pressures(text) if 40 <= upper <= 300] or list(alone)


def _lower(text: str) -> list[float]:
    return [lower for _, lower in _pressures(text) if 20 <= lower <= 200]


def _glucose(text: str) -> list[float]:
    found = []
    for one in _GLUCOSE.finditer(text):
        number, unit = _number(one.group(1)), one.group(2)
        if unit == "mg" or (unit is None and number >= 40):
            number = round(number / 18.016, 1)
        if 0.5 <= number <= 80:
            found.append(number)
    return found
