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
from string import ascii_lowercase

import wordfreq

_RAREST = 700
"""Rarest word of a list, in centibels below certainty: 1 in 10 million words. Rarer "words" are
mostly spelling errors."""
_FEW = 3
"""Minimum number of words whose rarity shows that they are of another language."""
_LONG = 5
"""Minimum number of letters of a single word that is judged by itself."""
_LONGER = 8
"""Minimum number of letters of a rare English word, such as the name of a medicine, that is hardly
of another language. In a shorter one, a wrong letter shows no error: "smerter" is not "smarter"."""
_LONGEST = 30
"""Maximum number of letters of a word that is searched for errors."""
_RARE = -5.75
"""Mean logarithm of frequency below which the words of a text are of another language. Clauses of
patients reach it in their language only with several medical words and nothing else."""
_MEDICAL = (
    *("itis", "osis", "emia", "uria", "algia", "ectomy", "pathy", "plegia", "lithiasis"),
    *("pnea", "pnoea", "rrhea", "rrhoea", "rrhagia", "phagia", "phobia"),
)
"""Ends of medical terms in English."""
_VOWELS = frozenset("aeiouy")
_VIETNAMESE_MARKS = frozenset("\u0309\u0323\u031b")
"""Hook above, dot below and horn."""
_MARGIN = 1.0
"""Minimum mean logarithm by which the words of another language must be more frequent."""
_UNKNOWN = 1e-8
"""Frequency assumed for a word that is not in a list."""
_OTHERS = ("es", "fr", "de", "pt", "it", "nl", "pl", "tr", "id", "fil", "ro", "sv", "cs")
"""Languages in Latin script that are recognized besides English and Vietnamese."""
_COMPOUNDING = ("de", "nl", "sv")
"""Languages that write two words as one, such as "Brustschmerzen"."""


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


def are_vietnamese(words: Iterable[str]) -> bool:
    """Return whether each of lowercase words without diacritics may be Vietnamese."""
    return _vietnamese_without_diacritics().issuperset(words)


def is_foreign(words: Sequence[str]) -> bool:
    """Return whether a text is in neither English nor Vietnamese.

    A text in another script counts as foreign, and so does one whose words are rare in both
    languages, such as Hindi in Latin letters, or more frequent in another language. Words that
    look like misspelled English or medical terms do not count as rare.

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
        return bool(unknown) and len(letters) >= _LONG and _is_of_another(letters)
    if len(unknown) == len(words) and not any(word.endswith(_MEDICAL) for word in words):
        return True
    if _is_rare(words, unknown):
        return True
    short = [word for word in words if len(word) <= _LONG]
    long = [word for word in words if len(word) > _LONG]
    english = _fit(short, _frequencies("en")) + _fit(long, _frequencies("en", "large"))
    ours = max(english, _fit(words, _vietnamese_frequencies()))
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


def _is_of_another(word: str) -> bool:
    """Return whether a word, or each of its two parts, is common in a language of `_OTHERS`.

    What is in no list is mostly an English word with an error, or the name of a medicine.
    """
    if word in _frequencies("en", "large"):
        return False
    if any(word in _frequencies(other) for other in _OTHERS):
        return not _resembles_english(word)
    return any(
        word[:at] in _frequencies(other) and word[at:] in _frequencies(other)
        for other in _COMPOUNDING
        for at in range(_LONG, min(len(word), _LONGEST) - _LONG + 1)
    )


def _is_rare(words: Sequence[str], unknown: Sequence[str]) -> bool:
    """Return whether words are rare in English and Vietnamese, on average or half of them."""
    if any(map(_is_marked_as_vietnamese, words)):
        return False
    english = {word for word in unknown if _resembles_english(word)}
    unknown = [word for word in unknown if word not in english]
    words = [word for word in words if word not in english]
    if len(words) < _FEW:
        return False
    fit = max(_fit(words, _frequencies("en", "large")), _fit(words, _vietnamese_frequencies()))
    is_half_unknown = len(unknown) > 1 and len(unknown) * 2 >= len(words)
    return is_half_unknown or (fit < _RARE * len(words) and len(unknown) + len(words) > _FEW)


@lru_cache(maxsize=20_000)
def _resembles_english(word: str) -> bool:
    """Return whether a rare word is a medical term, an abbreviation, or has one wrong letter."""
    is_longer = len(word) >= _LONGER
    if is_longer and (word in _frequencies("en", "large") or word.endswith(_MEDICAL)):
        return True
    if word.isascii() and _VOWELS.isdisjoint(word):
        return True
    if not _LONG < len(word) <= _LONGEST:
        return False
    near = chain(
        (word[:at] + word[at + 1 :] for at in range(len(word))),
        (
            word[:at] + letter + word[rest:]
            for at in range(len(word) + 1)
            for rest in ((at, at + 1) if is_longer else (at,))
            for letter in ascii_lowercase
        ),
    )
    return not _words("en", "large" if is_longer else "small").isdisjoint(near)


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
