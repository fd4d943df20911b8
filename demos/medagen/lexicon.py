"""Finds complaints in messages, even with misspelled words or without diacritics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product

from demos.medagen.dictionary import fold, is_word
from demos.medagen.schemas import Language
from demos.medagen.tokenizer import Words

_REMEMBERED = 20_000  # words whose readings are cached
_GAP = "_"
_AS_IT_STANDS = "="
_LONGEST_GAP = 8  # maximum number of words in a gap of a phrase
_SHORTEST_ENGLISH = 5  # minimum letters of a misspelled English word within a phrase
_SHORTEST_VIETNAMESE = 4  # minimum letters of a misspelled Vietnamese word within a phrase


@dataclass(frozen=True, slots=True)
class Found:
    """An occurrence of a concept in a message."""

    concept: str
    start: int
    """Position of the first word in the message."""
    end: int
    """Position after the last word."""
    between: tuple[int, ...] = ()
    """Positions within the occurrence that fill a gap of the phrase."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    concept: str
    parts: tuple[frozenset[str] | None, ...]
    """Alternative words at each place; None is a gap of up to eight words."""
    is_literal: bool
    """Whether every letter and diacritic must match exactly."""
    is_vietnamese: bool
    """Whether the phrase is Vietnamese, where one changed letter or mark often makes a new word."""

    def matches(
        self, words: Words, readings: Sequence[Mapping[str, int]], start: int, mistakes: int
    ) -> Iterator[Found]:
        """Yield the matches of the phrase at `start`, shortest first."""
        if self.is_literal and words.words[start] not in (self.parts[0] or ()):
            return
        if len(self.parts) == 1:
            if not mistakes:  # no other word of the phrase confirms a correction
                yield Found(self.concept, start, start + 1)
            return
        for last, between, wrong in self._ends(words, readings, start + 1, 1, mistakes):
            if not (wrong and between and self.is_vietnamese):
                yield Found(self.concept, start, last, between)

    def _ends(
        self,
        words: Words,
        readings: Sequence[Mapping[str, int]],
        at: int,
        number: int,
        mistakes: int,
    ) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Yield (end, gap positions, mistakes) of each match of the parts from `number` on."""
        if number == len(self.parts):
            yield at, (), mistakes
            return
        part = self.parts[number]
        if part is None:
            for skipped in range(_LONGEST_GAP + 1):
                for end, between, wrong in self._ends(
                    words, readings, at + skipped, number + 1, mistakes
                ):
                    yield end, (*range(at, at + skipped), *between), wrong
                if at + skipped >= len(readings) or words.parts_clauses(at + skipped):
                    return
        elif at < len(readings):
            wrong = min((readings[at][word] for word in part if word in readings[at]), default=2)
            if self.is_literal and words.words[at] not in part:
                wrong = 2
            if mistakes + wrong <= 1:
                yield from self._ends(words, readings, at + 1, number + 1, mistakes + wrong)


class Lexicon:
    """Phrases of concepts.

    A phrase is a sequence of words separated by spaces. `a|b+c` matches either the word a or the
    words b c, and `_` matches up to eight words of any kind. One misspelled word is accepted in a
    phrase of several words, because the others confirm it; a correctly spelled word is never read
    as another one.

    Args:
        concepts: Concept -> phrases.
        reads_errors: Whether misspelled words are recognized at all.
    """

    def __init__(
        self,
        concepts: Mapping[str, Sequence[str]],
        *,
        reads_errors: bool = True,
    ) -> None:
        self._reads_errors = reads_errors
        self._read = lru_cache(maxsize=_REMEMBERED)(self._readings)
        self._phrases: dict[str, list[_Phrase]] = defaultdict(list)
        self._by_folded: dict[str, set[str]] = defaultdict(set)
        self._near: dict[str, set[str]] = defaultdict(set)
        for concept, phrases in concepts.items():
            for phrase in chain.from_iterable(map(_spelled_out, phrases)):
                self._add(concept, phrase)

    def _add(self, concept: str, written: str) -> None:
        is_literal = written.startswith(_AS_IT_STANDS)
        written = written.removeprefix(_AS_IT_STANDS)
        parts = tuple(
            None if part == _GAP else frozenset(part.split("|")) for part in written.split()
        )
        first = parts[0] if parts else None
        if first is None or parts[-1] is None or "" in frozenset().union(*filter(None, parts)):
            raise ValueError(f"{concept}: {written!r} is no phrase")
        is_vietnamese = not written.isascii()
        phrase = _Phrase(concept, parts, is_literal, is_vietnamese)
        for word in first:
            self._phrases[word].append(phrase)
        for part in filter(None, parts):
            for word in part:
                folded = fold(word)
                self._by_folded[folded].add(word)
                for near in _neighbours(folded):
                    self._near[near].add(word)

    def find(self, words: Words) -> list[Found]:
        """Return all occurrences in their order, whether they are denied or not."""
        is_plain_vietnamese = words.language is Language.VIETNAMESE and not words.has_diacritics
        readings = [
            self._read(word, words.has_diacritics, is_plain_vietnamese) for word in words.words
        ]
        found: dict[tuple[str, int], Found] = {}
        for start, reading in enumerate(readings):
            for word, mistakes in reading.items():
                for phrase in self._phrases.get(word, ()):
                    if (phrase.concept, start) in found:
                        continue
                    first = next(phrase.matches(words, readings, start, mistakes), None)
                    if first is not None:
                        found[phrase.concept, start] = first
        return list(found.values())

    def _readings(
        self, word: str, has_diacritics: bool, is_plain_vietnamese: bool
    ) -> dict[str, int]:
        """Return lexicon word -> number of mistakes (0 or 1), for all that a word may mean."""
        folded = fold(word)
        if not word.isalpha():
            return {word: 0} if word in self._by_folded else {}
        same = self._by_folded.get(folded, ())
        may_lack_marks = is_plain_vietnamese and word == folded
        read = {meant: 0 for meant in same if may_lack_marks or meant == word}
        if read or not self._reads_errors or len(folded) < _SHORTEST_VIETNAMESE - 1:
            return read
        if is_word(word, has_diacritics=has_diacritics):
            return read
        read = dict.fromkeys(same, 1)
        for near in _neighbours(folded):
            for meant in self._near.get(near, ()):
                if is_misspelt(meant, folded):
                    read[meant] = 1
        return read


def _spelled_out(phrase: str) -> Iterator[str]:
    """Yield the phrases that result from expanding the alternatives of several words."""
    ways: list[list[str]] = []
    for part in phrase.split():
        single = [word for word in part.split("|") if "+" not in word]
        several = [words.replace("+", " ") for words in part.split("|") if "+" in words]
        ways.append([*(["|".join(single)] if single else []), *several])
    for way in product(*ways):
        yield " ".join(way)


def _neighbours(word: str) -> set[str]:
    """Return a word and every variant of it with one letter removed."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def is_misspelt(meant: str, written: str) -> bool:
    """Return whether one letter is missing, added or wrong, or two neighbors are swapped.

    A leading `a` is never an error: it denies ("afebrile").
    """
    shortest = _SHORTEST_ENGLISH if meant.isascii() else _SHORTEST_VIETNAMESE
    meant = fold(meant)
    if written == f"a{meant}":
        return False
    if len(meant) < shortest or abs(len(meant) - len(written)) > 1:
        return False
    if len(meant) != len(written):
        short, long = sorted((meant, written), key=len)
        return short in _neighbours(long)
    wrong = [at for at, (a, b) in enumerate(zip(meant, written, strict=True)) if a != b]
    if len(wrong) == 2:
        one, two = wrong
        return two == one + 1 and meant[one] == written[two] and meant[two] == written[one]
    return len(wrong) == 1
