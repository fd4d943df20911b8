"""Splits messages into lowercase words, and detects clauses, diacritics and language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from demos.medagen.schemas import Language

_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+|[.!?;:…\n(),/–—]")
_APOSTROPHES = re.compile("['’‘ʼ`´]")
_BREAKS = frozenset(".!?;:…\n()–—")
_COMMON_VIETNAMESE = """
toi minh em anh chi con chau ba me bo bi va khong ko hok cua cho may ngay nay hom qua gio roi thi la
co duoc dc nhung nen voi tu luc rat dang da nguoi be vo chong ong dau sot ho non met kho tho ngua
nong lanh nhieu it qua sao vay gi the nao mot hai ba bon nam
"""
_COMMON_ENGLISH = """
the a an is are was my i im ive he she it his her have has had been and or for of in on with me you
what when can cant this that just since about from at to do dont not no
"""
_VIETNAMESE = frozenset(_COMMON_VIETNAMESE.split())
_ENGLISH = frozenset(_COMMON_ENGLISH.split())
_MAY_BE_BOTH = _VIETNAMESE & _ENGLISH


@dataclass(frozen=True, slots=True)
class Words:
    """A message split into words."""

    words: Sequence[str]
    """Lowercase words, and punctuation marks that separate clauses."""
    folded: Sequence[str]
    """Lowercase words without diacritics."""
    language: Language
    has_diacritics: bool
    """Whether the message is written with Vietnamese diacritics."""

    def parts_clauses(self, at: int) -> bool:
        """Return whether a clause or a list item ends at a position."""
        return self.is_break(at) or self.words[at] == ","

    def is_break(self, at: int) -> bool:
        """Return whether a clause ends at a position."""
        return self.words[at] in _BREAKS


@lru_cache(maxsize=20_000)
def fold(word: str) -> str:
    """Return a word without diacritics, with `đ` as `d`."""
    plain = unicodedata.normalize("NFD", word.replace("đ", "d").replace("Đ", "D"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def split(text: str) -> Words:
    """Split a message into words."""
    text = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text).lower())
    words = _TOKEN.findall(text.replace("_", " "))
    folded = [fold(word) for word in words]
    marked = sum(a != b for a, b in zip(words, folded, strict=True))
    # An English text may contain an accent or two, as in "café".
    has_diacritics = marked >= 2 or (marked > 0 and len(words) < 4)
    return Words(words, folded, _language(folded, has_diacritics), has_diacritics)


def _language(folded: Sequence[str], has_diacritics: bool) -> Language:
    if has_diacritics:
        return Language.VIETNAMESE
    vietnamese = sum(word in _VIETNAMESE - _MAY_BE_BOTH for word in folded)
    english = sum(word in _ENGLISH - _MAY_BE_BOTH for word in folded)
    return Language.VIETNAMESE if vietnamese > english else Language.ENGLISH


def language_of(texts: Sequence[str]) -> Language:
    """Return the language of the last message that has letters; English if none has."""
    for text in reversed(texts):
        if any(letter.isalpha() for letter in text):
            return split(text).language
    return Language.ENGLISH
