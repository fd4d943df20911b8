"""Finds what people complain of in their words, also where a letter or the diacritics are wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product

from demos.medagen.words import Words, fold

_REMEMBERED = 20_000  # words whose meaning is kept
_GAP = "_"
_AS_IT_STANDS = "="
_LONGEST_GAP = 4  # words between two of a phrase
_SHORTEST_ALONE = 5  # letters of a word that may be misspelt and is the whole phrase
_SHORTEST_ENGLISH = 5  # letters of one that may be misspelt in a phrase
_SHORTEST_VIETNAMESE = 4


@dataclass(frozen=True, slots=True)
class Found:
    """Words that stand for a complaint."""

    concept: str
    start: int
    """The first of its words in the message."""
    end: int
    """The one after the last."""
    between: tuple[int, ...] = ()
    """Those of them that are no words of the phrase."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    concept: str
    parts: tuple[frozenset[str] | None, ...]
    """Words that may stand there; None: up to four others, or none."""
    is_literal: bool
    """Whether each letter and its marks must be as they are here."""
    may_be_misspelt: bool
    """Whether it is read with an error, if it is a word alone."""
    is_vietnamese: bool
    """In Vietnamese most syllables are another one with a letter or a mark changed."""

    def matches(
        self, words: Words, readings: Sequence[Mapping[str, int]], start: int, mistakes: int
    ) -> Iterator[Found]:
        """Yield where the phrase stands that begins at `start`, the shortest first."""
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
        """Yield where the parts from `number` on end, the words between them, and mistakes."""
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

    A phrase is words with spaces between; `a|b+c` is either the word a or the words b c, `_` up to
    four words of any kind.

    Args:
        concepts: Name -> phrases.
        real_words: Words that are never taken for another one that is misspelt.
        reads_errors: Whether a word may be misspelt at all.
        may_be_misspelt: Concepts whose phrases of one word may be; of all, an error is read only
            where another word of the phrase stands beside it.
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
        """Return all that is said, whether it is denied or not, in its order."""
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
        """Return the words of the lexicon that a word may be -> mistakes in it, 0 or 1."""
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
    """Yield a phrase for each of its alternatives that are several words."""
    ways: list[list[str]] = []
    for part in phrase.split():
        single = [word for word in part.split("|") if "+" not in word]
        several = [words.replace("+", " ") for words in part.split("|") if "+" in words]
        ways.append([*(["|".join(single)] if single else []), *several])
    for way in product(*ways):
        yield " ".join(way)


def _neighbours(word: str) -> set[str]:
    """Return a word and all that is left of it without one letter."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def is_misspelt(meant: str, written: str) -> bool:
    """Tell whether a letter is missing, too many, wrong, or changed place with its neighbour."""
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
