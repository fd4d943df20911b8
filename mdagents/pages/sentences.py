"""Search for the sentence of agents' turns that best matches a phrase.

Words are compared by their beginnings, in any script; a rare word counts more than a common one.
A sentence that matches too little of the phrase is not returned.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import log
from typing import NamedTuple

from exaid_core.checks.normal_form import Wording, is_short, without_article
from exaid_core.tokenizer import UNMARKED, UNSPACED, sentence_ends

_ACRONYM = 1.5
"""Weight of an acronym, which is about the patient and not the summarizer's own wording."""
_ALIKE = 4
"""Minimum length of the common prefix of two different words, in characters."""
_LONG = 7
"""Length of the common prefix of two forms of a long word: `diagnosis`, `diagnostic`."""
_LONGEST_ENDING = 3
"""Maximum ending of a form of a short word, in characters.

`test` and `testing` are forms of one word; `path` and `pathology` are not.
"""

_SAYS_SOMETHING = re.compile(rf"[^\W\d_]{{2}}|[{UNSPACED}]")  # more than "3." and "B."
_CLAUSE_END = re.compile(rf"[;；؛]\s*|(?<=[{UNMARKED}])[ \t]+")
_ASCII_CLAUSE_END = re.compile(r";\s*")  # means the same there, and is faster
_LABEL = re.compile(r"\A\W*\d{1,2}[.)]\s+")  # label of a list item
_NUMBER = re.compile(r"\d+")  # the number in "30yo" or "5mg"


class Quote(NamedTuple):
    """A sentence or clause of a turn; the whole turn if an agent is named and no sentence fits."""

    turn: int
    """Index of the turn."""
    start: int
    """Start offset in the turn's text."""
    end: int
    """End offset in the turn's text."""


class Sentence(NamedTuple):
    """A sentence or clause of a text, without white space around it."""

    start: int
    end: int


class Word(NamedTuple):
    """A word of a phrase."""

    text: str
    """The word without an article."""
    beginning: str
    """First letters, which a form of the word shares."""
    is_acronym: bool
    """Whether the words that it abbreviates also match."""
    base: float
    """Weight regardless of frequency: `_ACRONYM` for an acronym, else 1."""


class Spoken:
    """Index of the sentences and clauses of a text by their words.

    Args:
        text: Text of a turn.
    """

    def __init__(self, text: str) -> None:
        self.sentences: list[Sentence] = []
        self._text = text
        self._looked_up: dict[Word, dict[int, float]] = {}  # phrases share most words
        having = defaultdict[str, list[int]](list)
        for start, end in clauses(text):
            if piece := text[start:end].strip():
                start = text.index(piece, start)
                words = Wording(_LABEL.sub("", piece)).words
                for word in dict.fromkeys(map(_bare, words)):
                    having[word].append(len(self.sentences))
                self.sentences.append(Sentence(start, start + len(piece)))
        self._having: Mapping[str, Sequence[int]] = having
        """Word -> places of the sentences that contain it."""
        self.beginnings = defaultdict[str, list[str]](list)
        """First letters -> words that begin with them."""
        for word in having:
            self.beginnings[word[:_ALIKE]].append(word)

    @cached_property
    def _initials(self) -> list[str]:
        """Initials of the words of each sentence, made on first use: few words are acronyms."""
        pieces = (self._text[start:end] for start, end in self.sentences)
        return [Wording(_LABEL.sub("", piece)).initials for piece in pieces]

    def having(self, word: Word) -> Mapping[int, float]:
        """Return place of sentence -> certainty, 0 to 1, that the sentence contains a word."""
        found = self._looked_up.get(word)
        if found is None:
            found = self._looked_up[word] = self._look_up(word)
        return found

    def _look_up(self, word: Word) -> dict[int, float]:
        found: dict[int, float] = {}
        for other in self.beginnings.get(word.beginning, []):
            alike = _likeness(word.text, other)
            for place in self._having[other] if alike else []:
                found[place] = max(found.get(place, 0.0), alike)
        if word.is_acronym:
            for place, initials in enumerate(self._initials):
                if word.text in initials:
                    found[place] = 1.0
        return found


spoken = lru_cache(maxsize=512)(Spoken)  # the turns of 32 questions, 12 MiB
"""Return the cached `Spoken` of a text: a page is rebuilt whenever one of many turns grows."""


@lru_cache(maxsize=64)  # a phrase is searched for in several sets of turns
def _words_of(phrase: str) -> Sequence[Word]:
    """Return the different words of a phrase to search for, in order."""
    wording = Wording(phrase)
    acronyms = wording.acronyms
    texts = dict.fromkeys(
        _bare(word)
        for word in wording.words
        if not is_short(word) or word in acronyms or not word.isalpha()
    )
    words = []
    for text in texts:
        is_acronym = text in acronyms and len(text) > 2
        words.append(Word(text, text[:_ALIKE], is_acronym, _ACRONYM if is_acronym else 1.0))
    return words


class Sources:
    """Sentences that a phrase may come from.

    Args:
        texts: Turn index -> text of the turn.
    """

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._spoken = {turn: spoken(text) for turn, text in sorted(texts.items())}
        self._size = sum(len(said.sentences) for said in self._spoken.values())
        # Phrases of a summary share many words.
        self._looked_up: dict[Word, tuple[float, Sequence[tuple[int, Mapping[int, float]]]]] = {}

    def best(
        self,
        phrase: str,
        enough: float,
        turns: Collection[int] = (),
        otherwise: Quote | None = None,
    ) -> Quote | None:
        """Return the sentence that best matches a phrase; in a tie, `otherwise` or the latest.

        Args:
            phrase: Any text.
            enough: Share of the phrase, 0 to 1, that a match must exceed.
            turns: Indices of the turns to search; empty searches all.
            otherwise: Sentence that wins a tie.
        """
        told: dict[tuple[int, int], float] = {}  # (turn, place of the sentence) -> weight
        counted: dict[tuple[int, int], float] = {}
        total = total_count = 0.0
        for word in _words_of(phrase):  # in order, so that sums are equal in every process
            weight, having = self._found(word)
            total, total_count = total + weight, total_count + word.base
            for turn, places in having:
                if turns and turn not in turns:
                    continue
                for place, alike in places.items():
                    at = (turn, place)
                    told[at] = told.get(at, 0.0) + weight * alike
                    counted[at] = counted.get(at, 0.0) + word.base * alike
        best: Quote | None = None
        most = 0.0
        # One rare word of two is not enough: the share must also be exceeded without weights.
        likely = [at for at, count in counted.items() if count > enough * total_count]
        for turn, place in sorted(likely):
            weight = told[turn, place]
            if weight > enough * total and (
                weight > most or (weight == most and best != otherwise)
            ):
                best, most = Quote(turn, *self._spoken[turn].sentences[place]), weight
        return best

    def _found(self, word: Word) -> tuple[float, Sequence[tuple[int, Mapping[int, float]]]]:
        """Return the weight of a word, higher if fewer sentences contain it, and those by turn."""
        found = self._looked_up.get(word)
        if found is None:
            having = [
                (turn, places)
                for turn, said in self._spoken.items()
                if (word.is_acronym or word.beginning in said.beginnings)
                and (places := said.having(word))
            ]
            count = sum([sum(places.values()) for _, places in having])
            weight = word.base * log(1 + self._size / max(count, 1))
            found = self._looked_up[word] = weight, having
        return found


@lru_cache(maxsize=4096)  # most words are frequent ones
def _bare(word: str) -> str:
    """Return a word without its Arabic article, or a number without attached characters."""
    if word.isascii() and word.isalpha():
        return word
    number = _NUMBER.match(word)
    return number[0] if number else without_article(word)


def _likeness(word: str, other: str) -> float:
    """Return 1 for two forms of a word, less for a shared prefix alone, and 0 otherwise."""
    if word == other:
        return 1.0
    shorter = min(len(word), len(other))
    common = next((n for n in range(shorter) if word[n] != other[n]), shorter)
    if common < _ALIKE or word.isdecimal():
        return 0.0
    is_form = common >= shorter - 1 and max(len(word), len(other)) - common <= _LONGEST_ENDING
    return 1.0 if is_form or common >= _LONG else (common - 2) / 8


def clauses(text: str, starts: Iterable[int] = ()) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each clause; a label ("3.", "B.") belongs to the next clause.

    Args:
        text: Any text.
        starts: Further offsets at which a clause begins.
    """
    end_of_clause = _ASCII_CLAUSE_END if text.isascii() else _CLAUSE_END
    ends = {*sentence_ends(text), *(end.end() for end in end_of_clause.finditer(text)), *starts}
    yield from with_words(text, ends)


def with_words(text: str, ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the pieces that end at `ends`; one without a word joins the next."""
    start = searched = 0
    for end in sorted(ends):
        # A word may begin with the last character of the part that was searched before.
        if end == len(text) or _SAYS_SOMETHING.search(text, max(start, searched - 1), end):
            if end > start:
                yield start, end
            start = end
        searched = end
