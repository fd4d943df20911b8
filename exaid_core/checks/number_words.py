"""Parses number words: `twenty-five`, `veinticinco`, `fünfundzwanzig`, `hai mươi lăm`, `二十五`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count, product
from math import inf
from pathlib import Path
from typing import NamedTuple

from exaid_core.checks.term_list import read_terms

_WORDS_FILE = Path(__file__).with_name("words") / "number_words.txt"

# Words are looked up in a set of bytes, which is five times as fast as a regular expression.
_NO_LETTERS = bytes(byte if bytes([byte]).isalpha() or byte > 127 else 32 for byte in range(256))
# thứ năm: Thursday or fifth; phần trăm: percent
_PART_OF_NAME = re.compile(r"\b(?:thứ|tháng|phần) \Z")
_AFTER_DIGITS = re.compile(r"\d[ -]\Z")
_WORD = re.compile(r"[^\W\d_]+")
_NEXT_WORD = re.compile(r"(?<=[ -])[^\W\d_]+")
_LONGEST_NUMBER = 12  # words
_LONGEST_HAN = 30  # characters

# 第 marks an ordinal. 分 is a minute or a part, and 十分 means "very". 千克 is a kilogram.
_HAN_DIGIT = "(?:[〇零一二两兩三四五六七八九十百万萬]|千(?![克米卡瓦]))"
_HAN = re.compile(rf"{_HAN_DIGIT}(?<![\d.第].){_HAN_DIGIT}*+(?!\d|分(?![钟鐘間间]))")


class NumberWords(NamedTuple):
    """A number written in words in a text."""

    start: int
    """Start index of the words in the text."""
    end: int
    """End index of the words in the text."""
    value: int
    """Value of the number."""
    kinds: frozenset[str]
    """Kinds in number_words.txt that all the words share: `counted`, `vague`, `article`."""


def number_words(text: str) -> Iterator[NumberWords]:
    """Yield the numbers written in words in a lower-case text.

    Numbers in Chinese characters come last. A word that multiplies digits (`2 million`) is skipped.
    """
    covered = -2
    for start in _starts(text):
        # Any later word that is not part of the previous number starts at `covered + 2` or later.
        if start > covered + 1:
            for number in _numbers(_phrase(text, start)):
                covered = number.end
                yield number
    if not text.isascii():
        for run in _HAN.finditer(text):
            yield from _in_han(run)


class _Word(NamedTuple):
    value: int
    multiplies: bool
    kinds: frozenset[str]

    @property
    def goes_with_digits(self) -> bool:
        """Whether the word is not a separate number after digits: `2 million`, `5 năm`."""
        return self.multiplies or "first" in self.kinds


class _Part(NamedTuple):
    word: _Word
    start: int
    end: int
    link: int
    """Room that the previous part must leave if a word like `and` comes between; else 0."""


class _Language(NamedTuple):
    words: dict[str, _Word]
    links: dict[str, int]


def _starts(text: str) -> list[int]:
    """Return the start of each whole word that may begin a number, in order."""
    starts = []
    written = text.encode(errors="replace").translate(_NO_LETTERS).split()
    for word in map(bytes.decode, _first_words().intersection(written)):
        end = 0
        while (start := text.find(word, end)) >= 0:
            end = start + len(word)
            if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
                starts.append(start)
    return sorted(starts)


def _phrase(text: str, start: int) -> list[_Part]:
    """Return the longest phrase of one language that begins with the number word at `start`."""
    vocabulary = _vocabulary()
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    match = _WORD.match(text, start)
    while match and match[0] in vocabulary and len(words) < _LONGEST_NUMBER:
        words.append(match[0])
        spans.append(match.span())
        match = _NEXT_WORD.match(text, match.end() + 1)
    if not words:  # only part of a longer word
        return []
    parts = max((_parts(words, spans, language) for language in _languages_of(words[0])), key=len)
    before = text[max(start - 12, 0) : start]
    if _PART_OF_NAME.search(before):
        return []
    if parts and parts[0].word.goes_with_digits and _AFTER_DIGITS.search(before):
        return []
    return parts


def _parts(
    words: Sequence[str], spans: Sequence[tuple[int, int]], language: _Language
) -> list[_Part]:
    parts: list[_Part] = []
    link = index = 0
    while index < len(words):
        last = index
        word = language.words.get(words[index])
        pair = language.words.get("-".join(words[index : index + 2]))
        if pair and pair is not word:  # such as quatre-vingt
            word, last = pair, index + 1
        if word and not (parts and not link and "first" in word.kinds):
            parts.append(_Part(word, spans[index][0], spans[last][1], link))
            link = 0
        elif parts and not (word or link) and words[index] in language.links:
            link = language.links[words[index]]
        else:
            break
        index = last + 1
    return parts


def _numbers(parts: list[_Part]) -> Iterator[NumberWords]:
    while parts:
        value, used = _leading_number(parts)
        kinds = frozenset.intersection(*(part.word.kinds for part in parts[:used]))
        if used > 1:
            kinds &= {"counted"}  # "one hundred" is not vague
        yield NumberWords(parts[0].start, parts[used - 1].end, value, kinds)
        parts = parts[used:]


def _leading_number(parts: Sequence[_Part]) -> tuple[int, int]:
    """Return the number that the first parts form, and how many parts it uses."""
    total = added = 0  # `added` since the last multiplier, which left `room`
    room = left = inf
    before = (0, 0)
    for used, (word, _, _, link) in enumerate(parts):
        if used and link > left:
            return total + added, used
        if not word.multiplies:
            if used and not 0 < word.value < left:
                return total + added, used
            before = (total + added, used)
            added += word.value
            # In French, up to 19 may follow 60 and 80.
            left = 0 if added < 20 else 20 if added in (60, 80) else _lowest_place(word.value)
        elif total + added < word.value:
            total, added = (total + added or 1) * word.value, 0
            room = left = word.value
        elif (added or 1) * word.value < room:
            total, added = total + (added or 1) * word.value, 0
            room = left = word.value
        else:  # "one hundred and two hundred": "two" belongs to the second number
            return before if added else (total, used)
    return total + added, len(parts)


def _lowest_place(value: int) -> int:
    return 100 if value % 100 == 0 else 10 if value % 10 == 0 else 0


def _in_han(run: re.Match[str]) -> Iterator[NumberWords]:
    if len(run[0]) > _LONGEST_HAN:
        return
    words = [_han()[character] for character in run[0]]
    start, end = run.span()
    if len(words) == 1 or any(word.multiplies for word in words):
        yield from _numbers([_Part(w, start + i, start + i + 1, 0) for i, w in enumerate(words)])
    elif len(words) > 2 or not words[-1].value:  # two digits without a ten are a range: 二三
        value = int("".join(str(word.value) for word in words))
        yield NumberWords(start, end, value, words[0].kinds & words[-1].kinds)


@cache
def _languages_of(first: str) -> list[_Language]:
    return [
        language
        for language in _languages()
        if any(first == name.partition("-")[0] for name in language.words)
    ]


@cache
def _first_words() -> frozenset[bytes]:
    names = (name for language in _languages() for name in language.words)
    return frozenset(name.partition("-")[0].encode() for name in names)


@cache
def _vocabulary() -> frozenset[str]:
    names = (name for language in _languages() for name in (*language.words, *language.links))
    return frozenset(part for name in names for part in name.split("-"))


@cache
def _languages() -> tuple[_Language, ...]:
    return tuple(language for code, language in _read_words().items() if code != "zh")


@cache
def _han() -> Mapping[str, _Word]:
    return _read_words()["zh"].words


@cache
def _read_words() -> dict[str, _Language]:
    rules: defaultdict[str, list[tuple[list[str], list[str]]]] = defaultdict(list)
    for line in read_terms(_WORDS_FILE):
        rule, _, listed = line.partition(":")
        code, *rest = rule.split()
        rules[code].append((rest, listed.split()))
    return {code: _language(code, lines) for code, lines in rules.items()}


def _language(code: str, lines: list[tuple[list[str], list[str]]]) -> _Language:
    values: dict[str, int] = {}
    multipliers: dict[str, int] = {}
    links: dict[str, int] = {}
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for (kind, *number), words in lines:
        if kind == "times":
            multipliers.update(dict.fromkeys(words, int(number[0])))
        elif kind == "link":
            links.update(dict.fromkeys(words, int(number[0])))
        elif kind.isdigit():
            values.update(zip(words, count(int(kind), int(number[0])), strict=False))
        else:
            for word in words:
                kinds[word].add(kind)
    if code == "de":
        values |= _german(values)
    words_of_numbers = {
        name: _Word(value, name in multipliers, frozenset(kinds[name]))
        for name, value in (values | multipliers).items()
    }
    return _Language(words_of_numbers, links)


def _german(values: Mapping[str, int]) -> dict[str, int]:
    """Return the German number words up to 999, which are written as one word."""
    units = {name: value for name, value in values.items() if 0 < value < 10}
    tens = {name: value for name, value in values.items() if value >= 20}
    small = {name: value for name, value in values.items() if value} | {
        f"{unit}und{ten}": value + more
        for (unit, value), (ten, more) in product(units.items(), tens.items())
    }
    hundreds = {
        f"{unit}hundert{link}{name}": 100 * times + value
        for unit, times in {"": 1, **units}.items()
        for name, value in {"": 0, **small}.items()
        for link in ("", "und")
        if name or not link
    }
    words = small | hundreds
    return words | {name.replace("ß", "ss"): value for name, value in words.items()}
