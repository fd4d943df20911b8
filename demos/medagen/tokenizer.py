"""Splits messages into lowercase words, and detects clauses, diacritics and language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from demos.medagen.dictionary import (
    are_vietnamese,
    fold,
    has_foreign_clause,
    is_foreign,
    is_rather_vietnamese,
    is_word,
)
from demos.medagen.forms import read_form
from demos.medagen.schemas import Language

_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+|[.!?;:…\n(),/–—]")
_APOSTROPHES = re.compile("['’‘ʼ`´]")
_WRITTEN_AS = {
    re.compile(r"\b(?:can\s?not|cnat|catn|carnt)\b"): "cant",
    re.compile(r"\bcould not\b"): "couldnt",
    re.compile(r"\b(my|him|her|your|it) self\b"): r"\1self",
    re.compile(r"\b(them|our) selves\b"): r"\1selves",
    re.compile(r"(?<=\s)-{1,3}(?=\s)"): "–",
    re.compile("="): ":",
    re.compile(
        r"\b(chest|heart|arm|jaw|belly|stomach|back|neck|leg|eye)[._]?"
        r"(pains?|attack|hurts|tightness|pressure)\b"
    ): r"\1 \2",
    re.compile(r"\bl (?=(?:arm|leg|hand|foot|side|face|chest|shoulder|jaw)\b)"): "left ",
    re.compile(r"\br (?=(?:arm|leg|hand|foot|side|face|chest|shoulder|jaw)\b)"): "right ",
    re.compile(r"(?<=\s)w/o(?=\s)"): "without",
    re.compile(r"(?<=\s)w/(?=\s?[a-z])"): "with ",
    re.compile(r"\s?&\s?|(?<=\w)\s\+\s(?=[^\W\d])"): " and ",
    re.compile(r"(?<=\d)(\s?)kms\b"): r"\1km",  # elsewhere "kms" stands for "kill myself"
}
"""Other ways to write a word or a punctuation mark -> as phrases write it."""
_OVERDOSED = re.compile("\\bod['’‘ʼ`´]e?d\\b")
"""Without its apostrophe, it would be "odd"."""
_INVISIBLE = re.compile("[\u00ad\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
"""Characters without width that part no words."""
_WIDTHLESS_SPACES = re.compile("\\b\\w+(?:\u200b\\w+)+")
_BREAKS = frozenset(".!?;:…\n()–—")
_LABELS = frozenset(
    [
        *("spo", "sp", "pr", "pul", "sys", "dia", "map", "bpm", "mmhg", "hr", "rr", "bp", "s"),
        *("ng", "ml", "ceton", "xeton", "keton"),
    ]
)
"""Labels and units of devices for vital signs, and the end of "90s": words of no language."""


@dataclass(frozen=True, slots=True)
class Words:
    """A message split into words."""

    words: Sequence[str]
    """Lowercase words, and punctuation marks that separate clauses."""
    language: Language
    has_diacritics: bool
    """Whether the message is written with Vietnamese diacritics."""
    is_foreign: bool
    """Whether the message as a whole is in neither language; `language` is then English, unless
    each word could be Vietnamese."""

    def parts_clauses(self, at: int) -> bool:
        """Return whether a clause or a list item ends at a position."""
        return self.is_break(at) or self.words[at] == ","

    def is_break(self, at: int) -> bool:
        """Return whether a clause ends at a position."""
        return self.words[at] in _BREAKS

    def has_foreign(self) -> bool:
        """Return whether the message or one of its clauses is in neither language."""
        return self.is_foreign or has_foreign_clause(_clauses_of(self.words))


def split(text: str) -> Words:
    """Split a message into words."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).lower())
    text = _WIDTHLESS_SPACES.sub(_joined_if_a_word, _OVERDOSED.sub("overdosed", text))
    text = read_form(_APOSTROPHES.sub("", text))
    for written, word in _WRITTEN_AS.items():
        text = written.sub(word, text)
    words = _TOKEN.findall(text.replace("_", " "))
    folded = [fold(word) for word in words]
    marked = sum(a != b for a, b in zip(words, folded, strict=True))
    # An English text may contain an accent or two, as in "café".
    has_diacritics = marked >= 2 or (marked > 0 and len(words) < 4)
    is_other = is_foreign(list(chain.from_iterable(_clauses_of(words))))
    language = Language.ENGLISH
    letters = [word for word in folded if word.isalpha()]
    may_be_vietnamese = not is_other or are_vietnamese(letters)
    if may_be_vietnamese and (has_diacritics or is_rather_vietnamese(letters)):
        language = Language.VIETNAMESE
    return Words(words, language, has_diacritics, is_other)


def _joined_if_a_word(parts: re.Match[str]) -> str:
    whole = parts[0].replace("\u200b", "")
    return whole if is_word(whole, has_diacritics=False) else parts[0].replace("\u200b", " ")


def _clauses_of(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each clause, without numbers and the labels of devices."""
    clause: list[str] = []
    for word in words:
        if word in _BREAKS or word == ",":
            yield clause
            clause = []
        elif word.isalpha() and word not in _LABELS:
            clause.append(word)
    yield clause


def language_of(texts: Sequence[str]) -> Language:
    """Return the language of the last message that has letters; English if none has."""
    for text in reversed(texts):
        if any(letter.isalpha() for letter in text):
            return split(text).language
    return Language.ENGLISH
