"""Reads the phrases by which replies state, deny and attribute answers.

`words/` has a file for each language, and one for those of which only labels are read. A line is a
kind, a colon, and phrases that are separated by " | ". A phrase is a regular expression for a text
whose words are separated by one space. `words/en.txt` describes the kinds. Phrases of all languages
are searched in any text, so none may be an ordinary word of another language.
"""

import re
import unicodedata
from collections import defaultdict
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("words")
_UNSPACED = frozenset({"ja", "ko", "th", "zh"})
_CAPTURING = re.compile(r"(?<!\\)\((?!\?)")


@cache
def _phrases() -> dict[tuple[str, bool], list[str]]:
    """Return (kind, whether the language separates words) -> phrases."""
    found: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for file in sorted(_FOLDER.glob("[!.]*.txt")):
        # normalized as replies are: Thai and Bengali have letters that NFKC takes apart
        for line in unicodedata.normalize("NFKC", file.read_text("utf-8")).splitlines():
            if line and not line.startswith("#"):
                kind, _, phrases = line.partition(": ")
                found[kind, file.stem not in _UNSPACED] += phrases.split(" | ")
    return dict(found)


def phrases(kind: str) -> list[str]:
    """Return the phrases of a kind in the languages that separate words, in the files' order."""
    return _phrases()[kind, True]


def any_of(*kinds: str) -> str:
    """Return a regular expression without groups that matches any phrase of these kinds.

    A phrase begins and ends at word boundaries, except in scripts without spaces.
    """
    spaced = [phrase for kind in kinds for phrase in _phrases().get((kind, True), ())]
    patterns = [phrase for kind in kinds for phrase in _phrases().get((kind, False), ())]
    if spaced:
        patterns.insert(0, rf"\b(?:{'|'.join(spaced)})(?!\w)")
    if not patterns:
        raise KeyError(kinds)
    return f"(?:{_CAPTURING.sub('(?:', '|'.join(patterns))})"


def pattern(expression: str) -> re.Pattern[str]:
    """Compile a regular expression that ignores case."""
    return re.compile(expression, re.IGNORECASE)
