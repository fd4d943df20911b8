"""Search for the sentence of agents' turns that best matches a phrase.

Words are compared by their beginnings, in any script; a rare word counts more than a common one.
A sentence that matches too little of the phrase is not returned.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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


class Spoken:
    """Index of the sentences and clauses of a text by their words.

    Args:
        text: Text of a turn.
    """

    def __init__(self, text: str) -> None:
        self.sentences: list[Sentence] = []
        self._wordings: list[Wording] = []  # of the sentences
        self._looked_up: dict[tuple[str, bool], dict[int, float]] = {}  # phrases share most words
        having = defaultdict[str, list[int]](list)
        for start, end in clauses(text):
            if piece := text[start:end].strip():
                start = text.index(piece, start)
                wording = Wording(_LABEL.sub("", piece))
                for word in dict.fromkeys(map(_bare, wording.words)):
                    having[word].append(len(self.sentences))
                self.sentences.append(Sentence(start, start + len(piece)))
                self._wordings.append(wording)
        self._having: Mapping[str, Sequence[int]] = having
        """Word -> places of the sentences that contain it."""
        self.beginning = defaultdict[str, list[str]](list)
        """First letters -> words that begin with them."""
        for word in having:
            self.beginning[word[:_ALIKE]].append(word)

    def may_have(self, words: Sequence[tuple[str, bool]], enough: float) -> bool:
        """Return False if no sentence has a sufficient share of some words, which is quick to tell.

        Args:
            words: Words of a phrase, each with whether it is an acronym.
            enough: Share of the words, 0 to 1, that a sentence must exceed.
        """
        told = total = 0.0
        for word, is_acronym in words:
            weight = _ACRONYM if is_acronym else 1.0
            total += weight
            if is_acronym or word[:_ALIKE] in self.beginning:
                told += weight
        return told > enough * total

    def having(self, word: str, *, is_acronym: bool) -> Mapping[int, float]:
        """Return place of sentence -> certainty, 0 to 1, that the sentence contains a word.

        Args:
            word: Word of a phrase, without an article.
            is_acronym: Whether the words that it abbreviates also match.
        """
        found = self._looked_up.get((word, is_acronym))
        if found is None:
            found = self._looked_up[word, is_acronym] = self._look_up(word, is_acronym)
        return found

    def _look_up(self, word: str, is_acronym: bool) -> dict[int, float]:
        found: dict[int, float] = {}
        for other in self.beginning.get(word[:_ALIKE], []):
            alike = _likeness(word, other)
            for place in self._having[other] if alike else []:
                found[place] = max(found.get(place, 0.0), alike)
        if is_acronym:
            for place, wording in enumerate(self._wordings):
                if word in wording.initials:
                    found[place] = 1.0
        return found


spoken = lru_cache(maxsize=512)(Spoken)  # the turns of 32 questions, 12 MiB
"""Return the cached `Spoken` of a text: a page is rebuilt whenever one of many turns grows."""


@lru_cache(maxsize=64)  # a phrase is searched for in several sets of turns
def _searched(phrase: str) -> Sequence[tuple[str, bool]]:
    """Return the different words of a phrase, each with whether it is an acronym, in order."""
    wording = Wording(phrase)
    acronyms = wording.acronyms
    words = dict.fromkeys(
        _bare(word)
        for word in wording.words
        if not is_short(word) or word in acronyms or not word.isalpha()
    )
    return [(word, word in acronyms and len(word) > 2) for word in words]


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a phrase."""

    having: Mapping[int, float]
    """Number of a sentence -> certainty, 0 to 1, that it contains the word."""
    count: float
    """Weight regardless of frequency: `_ACRONYM` for an acronym, else 1."""
    weight: float
    """Weight by rarity: higher if fewer sentences contain the word."""


class Sources:
    """Sentences that a phrase may come from.

    Args:
        texts: Turn index -> text of the turn.
    """

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._sentences: list[tuple[int, Sentence]] = []  # with the turn, numbered from 0
        self._spoken: list[tuple[int, Spoken]] = []  # with the number of the first sentence
        for turn, text in sorted(texts.items()):
            said = spoken(text)
            self._spoken.append((len(self._sentences), said))
            self._sentences += [(turn, one) for one in said.sentences]
        self._words: dict[tuple[str, bool], _Word] = {}  # phrases of a summary share many

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
        best: Quote | None = None
        most = 0.0
        for number, told in sorted(self._told(_searched(phrase), enough).items()):
            turn, one = self._sentences[number]
            is_better = told > most or (told == most and best != otherwise)
            if is_better and (not turns or turn in turns):
                best, most = Quote(turn, one.start, one.end), told
        return best

    def _told(self, words: Sequence[tuple[str, bool]], enough: float) -> dict[int, float]:
        """Return number -> matched weight of each sentence that matches enough of some words.

        The share must also exceed `enough` without rarity weights: one rare word of two does not.
        """
        if not any(said.may_have(words, enough) for _, said in self._spoken):
            return {}
        found = [self._word(*word) for word in words]
        weights: dict[int, float] = {}
        total = total_count = 0.0
        for word in found:  # in order, so that sums are equal in every process
            total, total_count = total + word.weight, total_count + word.count
            for sentence, alike in word.having.items():
                weights[sentence] = weights.get(sentence, 0.0) + word.weight * alike
        return {
            sentence: weight
            for sentence, weight in weights.items()
            if weight > enough * total
            and sum(word.count * word.having.get(sentence, 0.0) for word in found)
            > enough * total_count
        }

    def _word(self, word: str, is_acronym: bool) -> _Word:
        found = self._words.get((word, is_acronym))
        if found is None:
            beginning = word[:_ALIKE]
            having = {
                first + place: alike
                for first, said in self._spoken
                if is_acronym or beginning in said.beginning  # few turns have most words
                for place, alike in said.having(word, is_acronym=is_acronym).items()
            }
            count = _ACRONYM if is_acronym else 1.0
            weight = count * log(1 + len(self._sentences) / max(sum(having.values()), 1))
            found = self._words[word, is_acronym] = _Word(having, count, weight)
        return found


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
    ends = {*sentence_ends(text), *(end.end() for end in _CLAUSE_END.finditer(text)), *starts}
    yield from with_words(text, ends)


def with_words(text: str, ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the pieces that end at `ends`; one without a word joins the next."""
    start = 0
    for end in sorted(ends):
        if end == len(text) or _SAYS_SOMETHING.search(text, start, end):
            if end > start:
                yield start, end
            start = end
