"""The words of languages, from the word frequencies of wordfreq.

The lists are files of the installed package: no network is used.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain

import wordfreq

_RAREST = 700
"""Rarest word of a list, in centibels below certainty: 1 in 10 million words. Rarer "words" are
mostly spelling errors."""
_FEW = 3
"""Minimum number of words whose rarity shows that they are of another language."""
_LONG = 5
"""Minimum number of letters of a single word that is judged by itself."""
_RARE = -5.75
"""Mean logarithm of frequency below which the words of a text are of another language. Clauses of
patients reach it in their language only with several medical words and nothing else."""
_VIETNAMESE_MARKS = frozenset("\u0309\u0323\u031b")
"""Hook above, dot below and horn."""
_MARGIN = 1.0
"""Minimum mean logarithm by which the words of another language must be more frequent."""
_UNKNOWN = 1e-8
"""Frequency assumed for a word that is not in a list."""
_OTHERS = ("es", "fr", "de", "pt", "it", "nl", "pl", "tr", "id", "fil", "ro", "sv", "cs")
"""Languages in Latin script that are recognized besides English and Vietnamese."""


@lru_cache(maxsize=20_000)
def fold(word: str) -> str:
    """Return a word without diacritics, with `đ` as `d`."""
    plain = unicodedata.normalize("NFD", word.replace("đ", "d").replace("Đ", "D"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


@cache
def _words(language: str, size: str = "small") -> frozenset[str]:
    bins = wordfreq.get_frequency_list(language, size)
    return frozenset(chain.from_iterable(bins[: _RAREST + 1]))


@cache
def _vietnamese_without_diacritics() -> frozenset[str]:
    return frozenset(fold(word) for word in _words("vi"))


@cache
def _frequencies(language: str, size: str = "small") -> Mapping[str, float]:
    frequencies: dict[str, float] = wordfreq.get_frequency_dict(language, size)
    return frequencies


@cache
def _vietnamese_frequencies() -> Mapping[str, float]:
    """Return the frequencies of words with their diacritics, and of the same words without."""
    written = _frequencies("vi")
    plain: dict[str, float] = defaultdict(float)
    for word, frequency in written.items():
        plain[fold(word)] += frequency
    return {**plain, **written}


def is_word(word: str, *, has_diacritics: bool) -> bool:
    """Return whether a lowercase word is correctly spelled in English or Vietnamese.

    Args:
        word: Lowercase word.
        has_diacritics: Whether the writer uses Vietnamese diacritics. If not, a Vietnamese word
            without its diacritics counts as correct.
    """
    if word in _words("en", "large") or word in _words("vi"):
        return True
    return not has_diacritics and word in _vietnamese_without_diacritics()


def is_rather_vietnamese(words: Sequence[str]) -> bool:
    """Return whether lowercase words without diacritics fit Vietnamese better than English."""
    return _fit(words, _vietnamese_frequencies()) > _fit(words, _frequencies("en"))


def is_foreign(words: Sequence[str]) -> bool:
    """Return whether a text is in neither English nor Vietnamese.

    A text in another script counts as foreign, and so does one whose words are rare in both
    languages, such as Hindi in Latin letters, or more frequent in another language.

    Args:
        words: Lowercase words of the text.
    """
    letters = "".join(words)
    if not letters:
        return False
    if sum(_is_latin(letter) for letter in letters) * 2 < len(letters):
        return True
    unknown = [word for word in words if not is_word(word, has_diacritics=False)]
    if len(words) == 1:
        is_rarest = bool(unknown) and letters not in _frequencies("en", "large")
        return is_rarest and len(letters) >= _LONG
    if len(unknown) == len(words) or _is_rare(words, unknown):
        return True
    ours = max(_fit(words, _frequencies("en")), _fit(words, _vietnamese_frequencies()))
    return any(_fit(words, _frequencies(other)) > ours + _MARGIN * len(words) for other in _OTHERS)


def has_foreign_clause(clauses: Iterable[Sequence[str]]) -> bool:
    """Return whether a clause that is long enough to be judged by itself is foreign.

    Args:
        clauses: Lowercase words of each clause.
    """
    return any(
        sum(len(word) > 1 for word in clause) >= _FEW
        and not all(is_word(word, has_diacritics=False) for word in clause)
        and is_foreign(clause)
        for clause in clauses
    )


def _is_rare(words: Sequence[str], unknown: Sequence[str]) -> bool:
    """Return whether words are rare in English and Vietnamese, on average or half of them."""
    if len(words) < _FEW or any(map(_is_marked_as_vietnamese, words)):
        return False
    english = _fit(words, _frequencies("en", "large"))
    mean = max(english, _fit(words, _vietnamese_frequencies())) / len(words)
    is_half_unknown = len(unknown) > 1 and len(unknown) * 2 >= len(words)
    return is_half_unknown or (mean < _RARE and len(unknown) + len(words) > _FEW)


def _is_marked_as_vietnamese(word: str) -> bool:
    """Return whether a letter has two marks, or one that few other languages have: "ừ", "ạ"."""
    marks = [
        [mark for mark in unicodedata.normalize("NFD", letter) if unicodedata.combining(mark)]
        for letter in word
    ]
    return any(len(one) > 1 or not _VIETNAMESE_MARKS.isdisjoint(one) for one in marks)


def _fit(words: Sequence[str], frequencies: Mapping[str, float]) -> float:
    """Return how well the words fit a language: the sum of the logarithms of their frequencies."""
    return sum(math.log10(frequencies.get(word, _UNKNOWN)) for word in words)


def _is_latin(letter: str) -> bool:
    return fold(letter).isascii()
