"""Reads the cue files: one folder for each language, one file for each subject.

A line is a regular expression, in most files after its kind and a colon. Case does not count. A
space stands for white space, hyphens or Markdown emphasis (in a look-behind `.` stands for it). A
cue begins and ends with a word, except in scripts that write no spaces. All languages are looked
for in any text, so that no cue may be an ordinary word of another language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from exaid_core.channel import clean
from exaid_core.term_list import read_terms, with_gaps

LANGUAGES = ("en", "es", "de", "fr", "vi", "zh", "ja", "th", "ar")
"""ISO 639-1 codes, the names of the folders."""

CHINESE_OR_JAPANESE = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff"
THAI = "\u0e01-\u0e4e"
"""Letters of a script, for a character class."""

# Where languages meet ("排除STEMI") there is no space either. To fold the case of so large a class
# would take long.
LETTER = rf"(?-i:[^\W{CHINESE_OR_JAPANESE}{THAI}])"
"""A letter or digit of a script that puts spaces between words."""

_UNSPACED = frozenset({"zh", "ja", "th"})
_FOLDER = Path(__file__).parent

# Signs of Arabic that writers leave out or add at will: vowels, and the line that stretches a word.
_OPTIONAL = re.compile("[\u0640\u064b-\u065f\u0670]")
# Letters that they write one for the other.
_VARIANTS = ("اأإآٱ", "يىی", "ةه", "كک")
_ANY_VARIANT = str.maketrans(
    {letter: f"[{variants}]" for variants in _VARIANTS for letter in variants}
)
_FIRST_VARIANT = str.maketrans(
    {letter: variants[0] for variants in _VARIANTS for letter in variants}
)
_ARTICLES = "[وفبكل]{0,2}(?:ال)?"
"""Written as one word with what follows: "and", "so", "in", "like", "for", "the"."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A line of a cue file."""

    language: str
    kind: str
    """Empty in a file without kinds."""
    expression: str
    """As in the file, in the form that `normal` gives a text."""

    def pattern(self, *, within_a_word: bool = False) -> str:
        """Return the regular expression that finds the cue in a `normal` text.

        Args:
            within_a_word: Whether a letter or a digit may follow.
        """
        pattern = self.words()
        if self.language in _UNSPACED:
            return pattern
        return f"(?<!{LETTER}){pattern}" + ("" if within_a_word else f"(?!{LETTER})")

    def words(self) -> str:
        """Return the regular expression without the bounds of a word."""
        pattern = f"(?:{with_gaps(self.expression)})"
        if self.language == "ar":
            return f"{_ARTICLES}{pattern.translate(_ANY_VARIANT)}"
        return pattern


def normal(text: str) -> str:
    """Return `text` with one spelling for each character: NFKC, ASCII apostrophes, no vowel signs.

    Vowel signs are those that Arabic may leave out. Invisible characters are gone, too.
    """
    text = unicodedata.normalize("NFKC", clean(text)).replace("’", "'")
    if text.isascii():
        return text
    # NFKC takes the Thai vowel apart that everybody writes as one sign.
    return _OPTIONAL.sub("", text).replace("\u0e4d\u0e32", "\u0e33")


def folded(text: str) -> str:
    """Return a `normal` text in lower case, with one letter for those that Arabic mixes."""
    text = text.lower()
    return text if text.isascii() else text.translate(_FIRST_VARIANT)


@cache
def read_cues(subject: str, *, kinds: bool = True) -> tuple[Cue, ...]:
    """Return the cues of all languages.

    Args:
        subject: Name of the file, without `.txt`.
        kinds: Whether each line begins with its kind.
    """
    cues = []
    for language in LANGUAGES:
        for line in read_terms(_FOLDER / language / f"{subject}.txt"):
            kind, _, expression = line.partition(":") if kinds else ("", "", line)
            cues.append(Cue(language, kind, normal(expression.strip())))
    return tuple(cues)


def any_of(cues: Iterable[Cue], *kinds: str) -> str:
    """Return a regular expression that matches any cue of these kinds; without one, nothing.

    Args:
        cues: Cues of a subject.
        kinds: Kinds that are wanted.
    """
    wanted = [cue for cue in cues if cue.kind in kinds]
    # What is common to all is tried once, not once for each.
    spaced = "|".join(cue.words() for cue in wanted if cue.language not in _UNSPACED)
    patterns = [cue.words() for cue in wanted if cue.language in _UNSPACED]
    if spaced:
        patterns.append(f"(?<!{LETTER})(?:{spaced})(?!{LETTER})")
    return f"(?:{'|'.join(patterns)})" if patterns else r"(?!)"
