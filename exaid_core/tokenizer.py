"""Splits text into words, sentences and characters in any script, including those without spaces.

In scripts without spaces, ICU's dictionaries find the word boundaries; everything else follows
Unicode Standard Annex 29. Words between spaces are never divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Literal

UNMARKED = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"
"""Letters of Thai and Lao, whose sentences end without punctuation, for a character class."""
UNSPACED = (
    UNMARKED
    + "\u1000-\u103f\u1050-\u108f\u109a-\u109f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9"
    "\U00020000-\U0003347f"  # Han
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b168"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
)
"""Letters of scripts without spaces that ICU has a dictionary for, for a character class.

These are the letters with Line_Break=SA (Unicode Standard Annex 14) and those of the East Asian
scripts, without digits and punctuation.
"""

_SENTENCE_ENDS = frozenset(".?!\n։؝؞؟۔܀܁܂।॥၊။።፧፨។៕᠃᠉᱾᱿꓿。｡！？．﹒﹖﹗︒︕︖")
"""Newline and the marks of living scripts with the property Sentence_Terminal (Unicode Standard
Annex 44), except the rarer Latin ones, such as the interrobang."""

_Unit = Literal["character", "word", "sentence"]
_LONGEST_RUN = 128
"""Maximum characters without a space or mark that are looked up in a dictionary together."""
_LOCALE = "root"  # includes the dictionaries of all languages
_ENDS_UNMARKED = re.compile(rf"[{UNMARKED}][ \t]+\Z")
_BETWEEN_SPACES = re.compile(r"\S+")
_CLOSING = "，、。，．｡､：；！？）」』】〉》〕”’％"
_UNSPACED_LETTER = f"[{UNSPACED}]"
_COUNTED = rf"(?P<unspaced>[{UNSPACED}]+)|[^{UNSPACED}\s]+|\s+"
_PARTS = rf"[{UNSPACED}]+|[^{UNSPACED}\s{_CLOSING}]+|[{_CLOSING}]+"


@dataclass(slots=True)
class WordCount:
    """Counts the words of a text that arrives in tokens.

    A run between spaces counts as one word. If it has letters of scripts without spaces, their
    words are counted one by one, and each stretch of other characters is one word: before them in
    any case, between or after them only with a letter or digit. The count is for the text so far:
    it can fall when the next token completes a word.
    """

    total: int = 0
    """Number of words so far."""
    _in_word: bool = False
    _run: str | None = None
    """Unspaced letters at the end of the text; empty after a mark that follows such letters; None
    elsewhere."""
    _run_words: int = 0

    def add(self, token: str) -> None:
        """Count the words of a token, which may be empty."""
        if self._run is None and (token.isascii() or is_spaced(token)):
            if token:
                continues_word = self._in_word and not token[0].isspace()
                self.total += len(token.split()) - continues_word
                self._in_word = not token[-1].isspace()
            return
        for part in _compiled(_COUNTED).finditer(token):
            text = part[0]
            if part["unspaced"]:
                self._add_unspaced(text)
            elif self._run is None or text[0].isspace():
                self._run = None
                self.add(text)
            elif any(map(str.isalnum, text)):
                self._run = None
                self._in_word = True
                self.total += 1
            else:
                self._run = ""

    def _add_unspaced(self, text: str) -> None:
        if self._run:
            self.total -= self._run_words
            text = self._run + text
        for start in range(0, len(text), _LONGEST_RUN):
            self._run = text[start : start + _LONGEST_RUN]
            self._run_words = sum(
                any(map(str.isalnum, word)) for word in _broken("word", self._run)
            )
            self.total += self._run_words
        self._in_word = True


def count_words(text: str) -> int:
    """Return the number of words in a text in any script, as `WordCount` counts them."""
    count = WordCount()
    count.add(text)
    return count.total


def ends_sentence(text: str) -> bool:
    """Return whether a text ends like a sentence or line, ignoring trailing spaces and tabs.

    In Thai and Lao, where only spaces separate sentences, a trailing space counts as an end.
    """
    if text.rstrip(" \t")[-1:] in _SENTENCE_ENDS:
        return True
    return not text.isascii() and _ENDS_UNMARKED.search(text) is not None


def is_spaced(text: str) -> bool:
    """Return whether a text has no letters of scripts without spaces."""
    return text.isascii() or not _compiled(_UNSPACED_LETTER).search(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the span of each word in order; closing punctuation belongs to its word."""
    words = _BETWEEN_SPACES.finditer(text)
    if is_spaced(text):
        return [word.span() for word in words]
    return [span for word in words for span in _divided(word)]


def _divided(word: re.Match[str]) -> Iterator[tuple[int, int]]:
    if is_spaced(word[0]):
        yield word.span()
        return
    spans: list[tuple[int, int]] = []
    for part in _compiled(_PARTS).finditer(word[0]):
        start, end = (word.start() + offset for offset in part.span())
        if part[0][0] in _CLOSING and spans:
            spans[-1] = (spans[-1][0], end)
        elif is_spaced(part[0]):
            spans.append((start, end))
        else:
            spans += pairwise([start, *(start + each for each in _ends("word", part[0]))])
    yield from spans


def sentence_ends(text: str) -> list[int]:
    """Return the ends of all sentences, trailing white space included; the last ends the text."""
    return list(_ends("sentence", text))


def character_ends(text: str) -> list[int]:
    """Return the ends of all user-perceived characters (grapheme clusters), ascending."""
    return list(_ends("character", text))


def _ends(unit: _Unit, text: str) -> Iterator[int]:
    # ICU takes UTF-8, which cannot encode a lone surrogate; "?" has the same length.
    encodable = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
    return accumulate(map(len, _broken(unit, encodable)))


def _broken(unit: _Unit, text: str) -> Iterable[str]:
    """Return the parts of a text that ICU finds, which make up the text."""
    # Loaded late: ICU takes 3 MB, and most texts are not divided.
    from icu4py.breakers import CharacterBreaker, SentenceBreaker, WordBreaker

    breakers = {"character": CharacterBreaker, "word": WordBreaker, "sentence": SentenceBreaker}
    return breakers[unit](text, _LOCALE)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern with the letters of `UNSPACED`, which take 2 ms to compile."""
    return re.compile(pattern)
