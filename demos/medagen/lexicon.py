"""Finds complaints in messages, even with misspelled words or wrong diacritics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product

from demos.medagen.tokenizer import Words, fold

_REMEMBERED = 20_000  # words whose readings are cached
_GAP = "_"
_AS_IT_STANDS = "="
_LONGEST_GAP = 4  # maximum number of words in a gap of a phrase
_SHORTEST_ALONE = 5  # minimum letters of a one-word phrase that may be misspelled
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
    """Alternative words at each place; None is a gap of up to four words."""
    is_literal: bool
    """Whether every letter and diacritic must match exactly."""
    may_be_misspelt: bool
    """Whether a one-word phrase may match with a spelling error."""
    is_vietnamese: bool
    """Whether the phrase is Vietnamese, where one changed letter or mark often makes a new word."""

    def matches(
        self, words: Words, readings: Sequence[Mapping[str, int]], start: int, mistakes: int
    ) -> Iterator[Found]:
        """Yield the matches of the phrase at `start`, shortest first."""
        if self.is_literal and words.words[start] not in (self.parts[0] or ()):
            return
        if len(self.parts) == 1:
            is_long = len(words.words[start]) >= _SHORTEST_ALONE
            if not mistakes or (is_long and self.may_be_misspelt):
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
    words b c, and `_` matches up to four words of any kind.

    Args:
        concepts: Concept -> phrases.
        real_words: Words that are never read as a misspelling of another word.
        reads_errors: Whether misspelled words are recognized at all.
        may_be_misspelt: Concepts whose one-word phrases may be misspelled. In longer phrases of any
            concept, one error is accepted, because the other words confirm the match.
    """

    def __init__(
        self,
        concepts: Mapping[str, Sequence[str]],
        real_words: Iterable[str] = (),
        *,
        reads_errors: bool = True,
        may_be_misspelt: Collection[str] = (),
    ) -> None:
        self._may_be_misspelt = may_be_misspelt
        self._reads_errors = reads_errors
        self._read = lru_cache(maxsize=_REMEMBERED)(self._readings)
        self._phrases: dict[str, list[_Phrase]] = defaultdict(list)
        self._by_folded: dict[str, set[str]] = defaultdict(set)
        self._near: dict[str, set[str]] = defaultdict(set)
        self._real = frozenset(real_words)
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
        lenient = concept in self._may_be_misspelt and not is_vietnamese
        phrase = _Phrase(concept, parts, is_literal, lenient, is_vietnamese)
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
        readings = [self._read(word, words.has_diacritics) for word in words.words]
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

    def _readings(self, word: str, has_diacritics: bool) -> dict[str, int]:
        """Return lexicon word -> number of mistakes (0 or 1), for all that a word may mean."""
        folded = fold(word)
        if not word.isalpha():
            return {word: 0} if word in self._by_folded else {}
        is_marked = word != folded
        read: dict[str, int] = {}
        for meant in self._by_folded.get(folded, ()):
            is_exact = meant == word or (not is_marked and not has_diacritics)
            read[meant] = 0 if is_exact else 1
        if not self._reads_errors:
            return {meant: 0 for meant, mistakes in read.items() if not mistakes}
        if word in self._real or read.get(word) == 0 or len(folded) < _SHORTEST_VIETNAMESE - 1:
            return read
        for near in _neighbours(folded):
            for meant in self._near.get(near, ()):
                if meant not in read and is_misspelt(meant, folded):
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
    """Return whether one letter is missing, added or wrong, or two neighbors are swapped."""
    shortest = _SHORTEST_ENGLISH if meant.isascii() else _SHORTEST_VIETNAMESE
    meant = fold(meant)
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
