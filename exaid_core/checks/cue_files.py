"""Reads the cue files: one folder per language, one file per subject.

A line is a kind, a colon and a regular expression. Matching ignores case. A space matches white
space, hyphens or Markdown emphasis (in a look-behind, use `.`). A cue begins and ends at word
boundaries, except in scripts without spaces. The cues of all languages are searched in any text, so
no cue may be an ordinary word of another language.

A line `NAME = a, b` adds to a list of words for the lines after it. There, `{NAME}` is `a|b`,
`(?<!NAME)` is `(?<!a.)(?<!b.)`, and `(?<=NAME)` is `(?<=a.)|(?<=b.)`; in a look-behind, a word
boundary may stand before the name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from exaid_core.checks.term_list import read_terms, with_gaps
from mdagents_llm.text import clean

CHINESE_OR_JAPANESE = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff"
THAI = "\u0e01-\u0e4e"
"""Letters of Thai, for a regular expression's character class."""

# Where scripts meet ("排除STEMI") there is no space either. Case-insensitive matching of so large a
# class would be slow.
LETTER = rf"(?-i:[^\W{CHINESE_OR_JAPANESE}{THAI}])"
"""A letter or digit of a script that puts spaces between words."""

_LIST = re.compile("(?P<name>[A-Z_]{2,}) = (?P<words>.+)")
_USE_OF_A_LIST = re.compile(
    r"\{(?P<any>[A-Z_]{2,})\}|\((?P<kind>\?<[!=](?:\\b)?)(?P<before>[A-Z_]{2,})\)"
)

_UNSPACED = frozenset({"zh", "ja", "th"})
_FOLDER = Path(__file__).with_name("words")

# Optional Arabic signs: vowel marks, and the tatweel that stretches a word.
_OPTIONAL = re.compile("[\u0640\u064b-\u065f\u0670]")
# Arabic letters that writers use interchangeably.
_VARIANTS = ("اأإآٱ", "يىی", "ةه", "كک")
_ANY_VARIANT = str.maketrans(
    {letter: f"[{variants}]" for variants in _VARIANTS for letter in variants}
)
_FIRST_VARIANT = str.maketrans(
    {letter: variants[0] for variants in _VARIANTS for letter in variants}
)
_ARTICLES = "[وفبكل]{0,2}(?:ال)?"
"""Arabic prefixes written as one word with the next: "and", "so", "in", "like", "for", "the"."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A line of a cue file."""

    language: str
    kind: str
    """Kind of the cue within its file."""
    expression: str
    """Regular expression from the file, normalized by `normal`."""

    def pattern(self, *, before_a_digit: bool = False) -> str:
        """Return the regular expression that finds the cue in a text normalized by `normal`.

        Args:
            before_a_digit: Whether a digit or an underscore may follow.
        """
        pattern = self.words()
        if self.language in _UNSPACED:
            return pattern
        no_more = r"[^\W\d_]" if before_a_digit else LETTER
        return f"(?<!{LETTER}){pattern}(?!{no_more})"

    def words(self) -> str:
        """Return the regular expression without word boundaries."""
        pattern = f"(?:{with_gaps(self.expression)})"
        if self.language == "ar":
            return f"{_ARTICLES}{pattern.translate(_ANY_VARIANT)}"
        return pattern


def normal(text: str) -> str:
    """Return `text` normalized: NFKC, ASCII apostrophes, no optional Arabic vowel signs.

    Invisible characters are removed as well.
    """
    text = unicodedata.normalize("NFKC", clean(text)).replace("’", "'")
    if text.isascii():
        return text
    # NFKC decomposes the Thai vowel sara am, which everybody writes as one character.
    return _OPTIONAL.sub("", text).replace("\u0e4d\u0e32", "\u0e33")


def folded(text: str) -> str:
    """Return a normalized text in lower case, with interchangeable Arabic letters unified."""
    text = text.lower()
    return text if text.isascii() else text.translate(_FIRST_VARIANT)


@cache
def read_cues(subject: str) -> tuple[Cue, ...]:
    """Return the cues of all languages that have a file on a subject.

    Args:
        subject: Name of the cue file without `.txt`.
    """
    cues = []
    for file in sorted(_FOLDER.glob(f"*/{subject}.txt")):
        lists: dict[str, list[str]] = {}
        for line in read_terms(file):
            if words := _LIST.fullmatch(line):
                lists.setdefault(words["name"], []).extend(words["words"].split(", "))
                continue
            kind, _, expression = line.partition(":")
            try:
                expression = _with_lists(expression.strip(), lists)
            except KeyError as error:
                raise ValueError(f"{file} has no list {error} before {line[:60]!r}") from None
            cues.append(Cue(file.parent.name, kind, normal(expression)))
    return tuple(cues)


def _with_lists(expression: str, lists: Mapping[str, Sequence[str]]) -> str:
    """Return an expression with the words of the lists that it names."""

    def words_of(use: re.Match[str]) -> str:
        if use["any"]:
            return "|".join(lists[use["any"]])
        before = [f"({use['kind']}{word.replace(' ', '.')}.)" for word in lists[use["before"]]]
        return ("" if "!" in use["kind"] else "|").join(before)

    return _USE_OF_A_LIST.sub(words_of, expression)


def any_of(cues: Iterable[Cue], *kinds: str) -> str:
    """Return a regular expression that matches any cue of these kinds; nothing if there are none.

    Args:
        cues: Cues of a subject.
        kinds: Kinds of cues to match.
    """
    wanted = [cue for cue in cues if cue.kind in kinds]
    # Their common word boundaries are checked once, not once per cue.
    spaced = "|".join(cue.words() for cue in wanted if cue.language not in _UNSPACED)
    patterns = [cue.words() for cue in wanted if cue.language in _UNSPACED]
    if spaced:
        patterns.append(f"(?<!{LETTER})(?:{spaced})(?!{LETTER})")
    return f"(?:{'|'.join(patterns)})" if patterns else r"(?!)"
