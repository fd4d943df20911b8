"""Detects options that refer to the places of other options: "All of the above", "Both A and C".

The meaning of such an option changes, or is lost, when the other options move.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

_QUANTITY = (
    r"(?:(?:not|only|just|more than|at least) )?"
    r"(?:all|none|any|both|either|neither|each|some|one|two|three|nothing)"
    r"(?: one| two| three| or more)?"
)
_THINGS = r"(?:options?|choices?|answers?|alternatives?|responses?|statements?)"
_VERDICT = r"(?:correct|true|right|wrong|false|incorrect|possible)"
_LETTER = rf"(?:{_THINGS} )?[(\['\"‘“]?([a-z])[)\]'\"’”.]?"
_AND = r"\s*(?:,\s*(?:and\b|or\b|&)?|;|\band\b|\bor\b|\bnor\b|&|\+|/|\bbut not\b)\s*"
_CUE = rf"(?:both|either|neither|only|same as|all (?:except|but)|none (?:except|but)|{_THINGS}) "
_LETTERS = re.compile(
    rf"(?P<before>(?:{_CUE})*)(?P<letters>{_LETTER}(?:{_AND}{_LETTER})*)"
    rf"(?P<after>(?: (?:only|both|alone|together|(?:is|are) (?:both )?{_VERDICT}))*)"
)
_ABOUT_OTHERS = re.compile(
    "|".join(
        (
            rf"{_QUANTITY}(?: of)? (?:the|these|those)"
            r" (?:above|foregoing|preceding|previous)\b.{0,60}",
            rf"{_QUANTITY}(?: of)? above"
            rf"(?:\W+(?:{_THINGS}|mentioned|given|said|is|are|except)\b.{{0,60}})?",
            rf"{_QUANTITY}(?: of)?(?: the| these| those)?"
            r"(?: other| given| listed| mentioned| following)*"
            rf" (?:these|those|them|others|following|{_THINGS})"
            r"(?: (?:is|are|given|listed|mentioned|here|equally|all|apply|applies"
            rf"|{_THINGS}|{_VERDICT}))*",
            rf"(?:all|both|none|neither)(?: is| are)? {_VERDICT}",
            # Without a noun, these can only mean the other options. "None" has its own meaning.
            r"all|both|any|either|neither",
            rf"(?:{_CUE})*{_THINGS} \d(?:{_AND}\d)*",
        )
    )
)


def speaking_of_places(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the letters of the options that refer to the places of others.

    Args:
        options: Letter -> text, in the order of the data set.
    """
    naming = naming_letters(options)
    return tuple(
        letter for letter, text in options.items() if letter in naming or _is_about_others(text)
    )


def naming_letters(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the letters of options that name other options by letter, or carry their own letter.

    An example of the latter is "b. Iron". Letters that stand for statements in the question do not
    count: in that case all options name letters, "a and c", "b and d", or one names itself or a
    later option.
    """
    if all(re.match(rf"\W?{letter}(?:\W|$)", o, re.IGNORECASE) for letter, o in options.items()):
        return tuple(options)
    named = {letter: _named(text) for letter, text in options.items()}
    found = []
    for letter, (names, has_cue) in named.items():
        targets = {other for other in options if other != letter and (has_cue or other < letter)}
        if names and names <= targets and any(not named[name][0] for name in names):
            found.append(letter)
    return tuple(found)


def _is_about_others(text: str) -> bool:
    return _ABOUT_OTHERS.fullmatch(_plain(text)) is not None


def _named(text: str) -> tuple[frozenset[str], bool]:
    """Return (letters that make up the whole text, whether it calls them options)."""
    match = _LETTERS.fullmatch(_plain(text))
    if match is None:
        return frozenset(), False
    letters = re.findall(r"\b[a-z]\b", match["letters"])
    has_cue = bool(match["before"] or match["after"])
    if len(letters) < 2 and not has_cue:
        return frozenset(), False
    return frozenset(letter.upper() for letter in letters), has_cue


@lru_cache(maxsize=1024)  # an option is read several times in a row
def _plain(text: str) -> str:
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return re.sub(r"^[(\[]?[a-j][).\]:]\s+(?=\w{2})", "", folded).strip(" .,;:!-–")
