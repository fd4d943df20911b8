"""Compares the words of texts in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property

from exaid_core.tokenizer import UNSPACED

_STEM = 5
"""Number of leading characters that are compared: `hypotensive` matches `hypotension`."""
_SHORT = 3
"""Maximum characters of a grammatical word rather than one about the patient, in most languages."""
_RUN = 4
"""Number of consecutive words whose repetition in the same order counts as copied."""

_BEYOND_LATIN = re.compile("[^\x00-\u02ff]+")  # the accents among them
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
_ASCII_WORD = re.compile("[A-Za-z0-9]+")
_SHORT_WORD = re.compile(rf"(?<!\d )\b[^\W\d_]{{1,{_SHORT}}}\b")  # except the unit of a number
_ARABIC_ARTICLE = re.compile("^[وفبك]?ال")
_ACRONYM_LENGTHS = range(2, 7)


class Wording:
    """The words of a text without accents; in scripts without spaces, pairs of characters.

    Args:
        text: Any text.
    """

    def __init__(self, text: str) -> None:
        self._is_ascii = text.isascii()
        self._plain = text if self._is_ascii else _without_accents(text) or text
        self.words: list[str] = (
            _ASCII_WORD.findall(text.casefold())
            if self._is_ascii
            else [word.casefold() for word in self._as_written]
        )
        """Case-folded words in order."""

    @cached_property
    def _as_written(self) -> list[str]:
        """Words in order, not case-folded."""
        if self._is_ascii:
            return _ASCII_WORD.findall(self._plain)
        return [word for run in _WORD.findall(self._plain) for word in _pairs(run)]

    @cached_property
    def about(self) -> set[str]:
        """Stems of the words about the patient."""
        if self._is_ascii:  # the same, without a call for each word
            return {w[:_STEM] for w in self.words if len(w) > _SHORT or w.isdecimal()}
        return {_stem(word) for word in self.words if not is_short(word)}

    @cached_property
    def stems(self) -> set[str]:
        """Stems of all words."""
        return {_stem(word) for word in self.words}

    @cached_property
    def size(self) -> float:
        """Number of different words about the patient, counted by `size_of`."""
        return size_of(self.about)

    @cached_property
    def size_without_numbers(self) -> float:
        """Number of different words about the patient that are no numbers."""
        return size_of(stem for stem in self.about if not stem.isdecimal())

    @cached_property
    def runs(self) -> set[tuple[str, ...]]:
        """All runs of consecutive words."""
        return set(runs_of(self.words))

    @cached_property
    def short_words(self) -> set[str]:
        """Grammatical words, without acronyms and units."""
        found = _SHORT_WORD.findall(self._plain)
        return {word.casefold() for word in found if not word.isupper()}

    @cached_property
    def acronyms(self) -> set[str]:
        """Acronyms in lower case."""
        return {
            word.casefold()
            for word in self._as_written
            if len(word) in _ACRONYM_LENGTHS and word.isalpha() and word.isupper()
        }

    @cached_property
    def initials(self) -> str:
        """First letters of all words."""
        return "".join(word[0] for word in self.words)

    def tells(self, other: Wording) -> set[str]:
        """Return the stems about the patient in another text that this text contains.

        An acronym matches its long form: `MI` matches `myocardial infarction`.
        """
        told = other.about & self.stems
        told |= {_stem(word) for word in other.acronyms if word in self.initials}
        for acronym in self.acronyms:
            start = other.initials.find(acronym)
            if start >= 0:
                told |= set(map(_stem, other.words[start : start + len(acronym)]))
        return told & other.about

    def share_of(self, runs: Set[tuple[str, ...]]) -> float:
        """Return the share of this text's runs that are among `runs`, 0 to 1."""
        own = list(runs_of(self.words))
        return sum(run in runs for run in own) / len(own) if own else 0.0


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return _BEYOND_LATIN.sub(_without_marks, decomposed)


def _without_marks(run: re.Match[str]) -> str:
    return "".join(c for c in run[0] if not unicodedata.category(c).startswith("M"))


def _pairs(run: str) -> Iterable[str]:
    if len(run) > 2 and not run.isascii() and _UNSPACED_RUN.fullmatch(run):
        return (run[start : start + 2] for start in range(len(run) - 1))
    return [run]


def size_of(stems: Iterable[str]) -> float:
    """Return the number of words; pairs of a script without spaces count half."""
    counted = list(stems)
    return len(counted) - 0.5 * sum(is_unspaced(stem) for stem in counted if not stem.isascii())


def is_unspaced(word: str) -> bool:
    """Return whether a word of `Wording` belongs to a script without spaces."""
    return not word.isascii() and _UNSPACED_RUN.match(word) is not None


def runs_of(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each run of consecutive words."""
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def is_short(word: str) -> bool:
    """Return whether a word of `Wording` is more likely grammatical than about the patient."""
    return len(word) <= _SHORT and not word.isdecimal() and not is_unspaced(word)


def _stem(word: str) -> str:
    return without_article(word)[:_STEM]


def without_article(word: str) -> str:
    """Return a word without the prefixed Arabic article."""
    return word if word.isascii() else _ARABIC_ARTICLE.sub("", word)
