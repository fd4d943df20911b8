"""Writes number words of English and Vietnamese in digits: "eighty-two" and "tám mươi hai"."""

from __future__ import annotations

import re

from demos.medagen.dictionary import fold
from exaid_core.checks.number_words import number_words

_ONES = {
    "một": 1, "mốt": 1, "hai": 2, "ba": 3, "bốn": 4, "tư": 4, "năm": 5, "lăm": 5, "nhăm": 5,
    "sáu": 6, "bảy": 7, "bẩy": 7, "tám": 8, "chín": 9,
}  # fmt: skip
_VALUES = _ONES | {fold(word): value for word, value in _ONES.items()}
_ENGLISH_SPEECH = {
    re.compile("-and-a-half"): " and a half",
    re.compile(r"\ban? hundred\b"): "one hundred",
    re.compile(r"\bone oh (?=(?:one|two|three|four|five|six|seven|eight|nine)\b)"): (
        "one hundred and "
    ),
    re.compile(r"\bone (?=(?:ten|[a-z]+teen|[a-z]+ty)\b)"): "one hundred and ",
}
"""Numbers as they are spoken, such as "one eighty" -> as they are written."""
_DECIMAL = re.compile(
    rf"(?P<whole>\d) (?:point|phẩy|phay) (?P<part>\d|{'|'.join(_VALUES)})\b"
    r"|(?<=\d\d) ?(?P<degrees>độ|do) (?P<tenths>\d|rưỡi|ruoi)\b"
    r"(?! ?(?:giờ|gio|ngày|ngay|hôm|hom|tiếng|tieng|lần|lan|tuần|tuan|tháng|thang|phút|phut))"
)


def _vietnamese(ones: str, tens: str, of_tens: str) -> re.Pattern[str]:
    """Return the pattern of the numbers from ten to 999.

    Args:
        ones: Words that follow the tens; without "năm", which also means years.
        tens: Words that precede "mươi".
        of_tens: Words that precede ones where "mươi" is left out ("tám hai tuổi").
    """
    every = "|".join(_VALUES)
    below_100 = rf"(?:(?:{tens}) (?:mươi|muoi)|mười|muoi)(?: (?:{ones})\b)?"
    return re.compile(
        rf"\b(?:(?:{every}) (?:trăm|tram)(?: (?:linh|lẻ|le) (?:{every})| {below_100})?"
        rf"|{below_100}|(?P<spoken>(?:{of_tens}) (?:{every})(?= tu(?:ổ|o)i\b)))(?!\w)"
    )


_WITH_MARKS = _vietnamese(
    "|".join(_ONES.keys() - {"năm"}), "|".join(_ONES), "|".join(_ONES.keys() - {"mốt", "tư", "lăm"})
)
# Without marks, "sau" also means "after", and "ba" a grandmother.
_WITHOUT_MARKS = _vietnamese(
    "|".join(map(fold, _ONES.keys() - {"năm"})),
    "|".join(map(fold, _ONES.keys() - {"sáu"})) + r"|sau(?= muoi(?: \w+)? tuoi\b)",
    "bon|bay|tam|chin",
)


def in_digits(text: str) -> str:
    """Return a text in lower case with its number words above nine, and some below, in digits.

    "One", "a" and fractions stay words, and so do two numbers that count up ("hai ba tuổi").
    """
    pattern = _WITHOUT_MARKS if text.isascii() else _WITH_MARKS
    text = pattern.sub(_vietnamese_digits, text)
    for spoken, written in _ENGLISH_SPEECH.items():
        text = spoken.sub(written, text)
    parts: list[str] = []
    done = 0
    for one in number_words(text):
        if not one.kind:
            parts += [text[done : one.start], one.digits]
            done = one.end
    return _DECIMAL.sub(_decimal, "".join([*parts, text[done:]]))


def _decimal(found: re.Match[str]) -> str:
    if found["degrees"]:
        tenths = "5" if found["tenths"].startswith("r") else found["tenths"]
        return f".{tenths} {found['degrees']}"
    return f"{found['whole']}.{_VALUES.get(found['part'], found['part'])}"


def _vietnamese_digits(found: re.Match[str]) -> str:
    words = found.group().split()
    if found["spoken"]:
        tens, ones = (_VALUES[word] for word in words)
        return found.group() if ones == tens + 1 else str(tens * 10 + ones)
    total = current = 0
    for word in words:
        if word in _VALUES:
            current = _VALUES[word]
        elif word in ("trăm", "tram"):
            total, current = current * 100, 0
        elif word in ("mươi", "mười", "muoi"):
            total, current = total + (current or 1) * 10, 0
    return str(total + current)
