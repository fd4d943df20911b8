"""Resolves a text to an option: a letter such as `c` or `(C)`, `C) text`, or the text alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MARKED = re.compile(r"(?:(?:option|answer|choice)\s*:?\s*)?\(?([A-Za-z])[).:]?", re.IGNORECASE)
_MARKED_TEXT = re.compile(
    r"(?:option\s+)?(?:\(([A-Za-z])\)|([A-Za-z])\s*[).:])\s*(\S.*)", re.IGNORECASE | re.DOTALL
)

_LABELED = re.compile(r"(?:\(([A-J])\)|([A-J])([).:]))\s*(.*)", re.DOTALL)
_LABEL_WITHIN = re.compile(r"\([A-J]\)")  # as in "(A) and (B)"
_PLAIN = ("yes", "no", "true", "false", "maybe")
_LETTER_AND_MARK = tuple(f"{letter}{mark}" for letter in "ABCDEFGHIJ" for mark in ").:")


def letter_marked(text: str) -> str:
    """Return the letter, in uppercase, of a text that is only a letter; else an empty string.

    Args:
        text: Text such as `c`, `(C)`, `C.` or `Option C`.
    """
    found = _MARKED.fullmatch(re.sub(r"[\s_-]+", " ", text).strip())
    return found[1].upper() if found else ""


def letters_meant(text: str, options: Mapping[str, object]) -> set[str]:
    """Return the letters of the options that a text may mean.

    Args:
        text: Letter in one of many forms, the text of an option, or both: `C) text`. A letter
            before the text of another option matches neither.
        options: Letter -> text.
    """
    meant = {letter for letter, option in options.items() if _plain(option) == _plain(text)}
    if (letter := letter_marked(text)) in options:
        meant.add(letter)
    if both := _MARKED_TEXT.fullmatch(text.strip()):
        letter = (both[1] or both[2]).upper()
        if letter in options and _plain(options[letter]) == _plain(both[3]):
            meant.add(letter)
    return meant


def without_labels(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without letters of their own, if each text begins with one: `(A) Iron`.

    Such a letter would be another one once the options are shown in another order.

    Args:
        options: Letter -> text; an empty text stays.
    """
    found: dict[str, re.Match[str]] = {}
    for letter, text in options.items():
        if text[:1].isalpha() and not text.startswith(_LETTER_AND_MARK):
            return dict(options)  # nearly always
        if text.strip():
            match = _LABELED.fullmatch(text.strip())
            if match is None or not match[4].strip() or _LABEL_WITHIN.search(match[4]):
                return dict(options)
            found[letter] = match
    are_few = len(found) < 3 and any(
        match[3] == "." and match[4].casefold() not in _PLAIN for match in found.values()
    )
    # Two texts may begin like this by chance: A. fumigatus, B. dermatitidis.
    if are_few or sorted(match[1] or match[2] for match in found.values()) != sorted(found):
        return dict(options)
    return {letter: found[letter][4] if letter in found else options[letter] for letter in options}


def with_letters(options: Mapping[str, object]) -> dict[str, object]:
    """Return options keyed by uppercase letters if all keys are letters: `a`, `(A)`, `option_a`."""
    letters = {key: letter_marked(key) for key in options}
    if "" in letters.values() or len(set(letters.values())) < len(letters):
        return dict(options)
    return {letters[key]: text for key, text in options.items()}


def _plain(text: object) -> str | None:
    return " ".join(text.split()).casefold() if isinstance(text, str) else None
