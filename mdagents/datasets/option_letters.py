"""Resolves a text to an option: a letter such as `c` or `(C)`, `C) text`, or the text alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from mdagents.datasets.option_places import names_several
from mdagents.datasets.questions import LETTERS

_MARKED = re.compile(r"(?:(?:option|answer|choice)\s*:?\s*)?\(?([A-Za-z])[).:]?", re.IGNORECASE)
_COLUMN = re.compile(r"op[\s_-]?([a-j])", re.IGNORECASE)
"""Name of a column with an option, as MedMCQA names them."""
_MARKED_TEXT = re.compile(
    r"(?:option\s+)?(?:\(([A-Za-z])\)|([A-Za-z])\s*[).:])\s*(\S.*)", re.IGNORECASE | re.DOTALL
)

_LABELED = re.compile(
    r"(?:(?:[Oo]ption|[Cc]hoice) )?(?:\(([A-J])\)|([A-J])([).:]))\s*(.*)", re.DOTALL
)
_LABEL_WITHIN = re.compile(r"\([A-J]\)")  # as in "(A) and (B)"
_GOES_ON = re.compile(r"(?:(?:and|or|nor|but(?: not)?)\s+|[,;&+/]\s*)\(?[A-J]\b(?!-)")
"""Rest of a text that begins with a mention of options, and not with a label: "(A) and B"."""
_ONLY = re.compile(r"(?:only|alone)\W*", re.IGNORECASE)
_EPITHET = re.compile(r"[a-z-]+(?:a|ae|ale|ans|ens|ense|i|ile|is|um|us)")
"""Second word of the name of a species; many a disease ends like it: `anemia`, `sepsis`."""
_OF_SPECIES = re.compile(r"[a-z]{3,}(?:ii|[a-z]ans|ensis|idis|ile|ilis)")
"""Second word of the name of a species that is hardly ever anything else."""
_PLAIN = ("yes", "no", "true", "false", "maybe")
_BEGINNINGS = (
    *("Option ", "option ", "Choice ", "choice "),
    *(f"{letter}{mark}" for letter in "ABCDEFGHIJ" for mark in ").:"),
)
"""Beginnings of texts with a label that do not begin with a parenthesis."""


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
        text: Letter in one of many forms, the name of a column such as `opc`, the text of an
            option, or both: `C) text`. A letter before the text of another option matches neither.
            Case counts only if options differ in nothing else: `Na` is not `NA` where both are.
        options: Letter -> text.
    """
    meant = {letter for letter, option in options.items() if _plain(option) == _plain(text)}
    if len(meant) > 1:
        meant = {one for one in meant if _spaced(options[one]) == _spaced(text)} or meant
    if (letter := letter_marked(text)) in options:
        meant.add(letter)
    if not meant and (column := _COLUMN.fullmatch(text.strip())):  # OPD may be a text
        meant = {column[1].upper()} & options.keys()
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
    found = _labels(options)
    if not found:  # nearly always
        return dict(options)
    has_label_within = any(_LABEL_WITHIN.search(match[4]) for match in found.values())
    if has_label_within or _mention_options(found.values()):
        return dict(options)
    are_few = len(found) < 3 and any(
        match[3] == "." and match[4].casefold() not in _PLAIN for match in found.values()
    )
    # Two texts may begin like this by chance: A. fumigatus, B. dermatitidis.
    if are_few or sorted(map(_label, found.values())) != sorted(found):
        return dict(options)
    return {letter: found[letter][4] if letter in found else options[letter] for letter in options}


def letters_in_list(texts: Sequence[object]) -> dict[str, object] | None:
    """Return letter -> text for the options of a list, in its order.

    The letters are A, B, … by place, unless the texts carry the same letters in another order:
    `(C) Gold`, `(A) Iron`, `(B) Zinc`. Those are then the letters, and are left out of the texts.

    Args:
        texts: Texts, at most as many as there are letters; others than texts carry no letter.

    Returns:
        Letter -> text; None if the texts begin with letters that may be part of names as well:
        `C. albicans`, `A. fumigatus`, `B. dermatitidis`. Two such species are texts.
    """
    by_place = dict(zip(LETTERS, texts, strict=False))
    found = _labels(by_place)
    labels = {place: _label(match) for place, match in found.items()}
    letters = set(labels.values())
    are_letters = len(letters) == len(labels) and letters in (
        {*labels},
        {*LETTERS[: len(labels)]},
    )
    if not are_letters or [*labels] == [*labels.values()]:
        return by_place
    marks = {match[3] for match in found.values()}
    if len(marks) > 1 or _mention_options(found.values()):
        return by_place
    names = [match[4] for match in found.values() if match[4].casefold() not in _PLAIN]
    if marks == {"."} and names:
        are_species = all(name[0].islower() for name in names)
        if len(found) < 3 and are_species:
            return by_place
        if len(found) < 3 or are_species:
            return None
    others = (letter for letter in by_place if letter not in letters)  # of empty texts
    named = {place: labels.get(place) or next(others) for place in by_place}
    return {
        named[place]: found[place][4] if place in found else text
        for place, text in by_place.items()
    }


def has_doubtful_letters(texts: Sequence[object]) -> bool:
    """Return whether a list of options has letters that its reader cannot know how to take.

    Args:
        texts: Texts with consecutive labels that do not begin with A (`B. Iron`, `C. Zinc`), or
            species in the order of their letters: `A. baumannii`, `B. fragilis`, `C. difficile`.
    """
    by_place = dict(zip(LETTERS, texts, strict=False))
    found = list(_labels(by_place).values())
    letters = "".join(map(_label, found))
    if len(found) < 2 or letters not in LETTERS:
        return False
    if letters.startswith("A"):  # fewer than three keep their letters
        are_species = all(one[3] == "." and _EPITHET.fullmatch(one[4]) for one in found)
        is_clear = any(_OF_SPECIES.fullmatch(one[4]) for one in found)
        return len(found) > 2 and are_species and is_clear
    names = [one[4] for one in found if one[4].casefold() not in _PLAIN]
    is_of_names = all(one[3] == "." for one in found) and all(name[0].islower() for name in names)
    return not (is_of_names and names) and not _mention_options(found)


def _labels(options: Mapping[str, object]) -> dict[str, re.Match[str]]:
    """Return letter -> label for the texts that are not empty; empty if one has no label."""
    found: dict[str, re.Match[str]] = {}
    for letter, text in options.items():
        if text is None:
            continue
        if not isinstance(text, str):
            return {}
        if text[:1].isalpha() and not text.startswith(_BEGINNINGS):
            return {}  # nearly always
        if text.strip():
            match = _LABELED.fullmatch(text.strip())
            if match is None or not match[4].strip():
                return {}
            found[letter] = match
    return found


def _label(match: re.Match[str]) -> str:
    """Return the letter of a label."""
    return match[1] or match[2]


def _mention_options(found: Collection[re.Match[str]]) -> bool:
    """Return whether texts mention options: `(A) and B`, or `(A) only` beside `(B) only`."""
    are_only = sum(bool(_ONLY.fullmatch(match[4])) for match in found) > 1
    return are_only or any(
        names_several(match[0]) or (match[1] and _GOES_ON.match(match[4])) for match in found
    )


def with_letters(options: Mapping[str, object]) -> dict[str, object]:
    """Return options keyed by uppercase letters if all keys are letters: `a`, `(A)`, `option_a`."""
    letters = {key: letter_marked(key) for key in options}
    if "" in letters.values() or len(set(letters.values())) < len(letters):
        return dict(options)
    return {letters[key]: text for key, text in options.items()}


def _plain(text: object) -> str | None:
    spaced = _spaced(text)
    return None if spaced is None else spaced.casefold()


def _spaced(text: object) -> str | None:
    return " ".join(text.split()) if isinstance(text, str) else None
