"""Resolves a text to an option: a letter such as `c` or `(C)`, `C) text`, or the text alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

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
_RARELY_LABELED = re.compile(
    r"(?:option |choice )?(?:\*\*)?(?:[(\[（【]\s?([a-jＡ-Ｊａ-ｊ])\s?[)\]）】]"
    r"|([a-jＡ-Ｊａ-ｊ])"
    r"(\s?[)、．）：]|\s?[.:](?=\s|\*\*|[^\x00-\x7f])|\s?[-–—](?=\s)|\*\*))(?:\*\*)?\s*(.*)",
    re.DOTALL | re.IGNORECASE,
)
"""Labels that are read only if a list is in another order: `c) Iron`, `C、铁`, `[C] Iron`."""
_LABEL_WITHIN = re.compile(r"\([A-J]\)")  # as in "(A) and (B)"
_GOES_ON = re.compile(r"(?:(?:and|or|nor|but(?: not)?)\s+|[,;&+/]\s*)\(?[A-J]\b(?!-)")
"""Rest of a text that begins with a mention of options, and not with a label: "(A) and B"."""
_SEQUENCE = re.compile(r"[\W_]*[A-J](?:[\W_]+[A-J]){2,}[\W_]*", re.IGNORECASE)  # B - A - C
_NAMES_LETTER = re.compile(r"[(\[（【]\s?[A-J]\s?[)\]）】]|\A[\W_]*[A-J][\W_]*\Z", re.IGNORECASE)
"""Rest of a text that names another letter, as in `(b) → (a)` or `B - A`."""
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
    letter = rest = ""
    if both := _MARKED_TEXT.fullmatch(text.strip()):
        letter, rest = (both[1] or both[2]).upper(), both[3]
    elif label := _rare_label(text.strip()):
        letter, rest = label.letter, label.text
    if letter in options and _plain(options[letter]) == _plain(rest):
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
    has_label_within = any(_LABEL_WITHIN.search(label.text) for label in found.values())
    if has_label_within or _mention_options(found.values()):
        return dict(options)
    are_few = len(found) < 3 and any(
        label.mark == "." and label.text.casefold() not in _PLAIN for label in found.values()
    )
    # Two texts may begin like this by chance: A. fumigatus, B. dermatitidis.
    if are_few or sorted(label.letter for label in found.values()) != sorted(found):
        return dict(options)
    return {
        letter: found[letter].text if letter in found else options[letter] for letter in options
    }


def letters_in_list(texts: Sequence[object]) -> dict[str, object] | None:
    """Return letter -> text for the options of a list, in its order.

    The letters are A, B, … by place, unless the texts carry the same letters in another order:
    `(C) Gold`, `(A) Iron`, `(B) Zinc`. Those are then the letters, and are left out of the texts.

    Args:
        texts: Texts, at most as many as there are letters; others than texts carry no letter.

    Returns:
        Letter -> text; None if the texts begin with letters that may be part of names as well:
        `C. albicans`, `A. fumigatus`, `B. dermatitidis`. Two such species are texts, and so are
        `B - A - C` and `A - B - C`.
    """
    by_place = dict(zip(LETTERS, texts, strict=False))
    found = _labels(by_place)
    rare = {} if found else _labels(by_place, _rare_label)
    found = found or rare
    labels = {place: label.letter for place, label in found.items()}
    letters = set(labels.values())
    are_letters = len(letters) == len(labels) and letters in (
        {*labels},
        {*LETTERS[: len(labels)]},
    )
    if not are_letters or [*labels] == [*labels.values()]:
        return by_place
    marks = {label.mark for label in found.values()}
    if len(marks) > 1 or _mention_options(found.values()) or _are_parts(rare.values()):
        return by_place
    if sum(bool(_NAMES_LETTER.search(label.text)) for label in rare.values()) > 1:
        return None
    names = [one.text for one in found.values() if one.text.casefold() not in _PLAIN]
    if marks & {".", "-"} and names:
        are_species = all(name[0].islower() for name in names)
        if len(found) < 3 and are_species and marks == {"."}:
            return by_place
        if len(found) < 3 or are_species:
            return None
    others = (letter for letter in by_place if letter not in letters)  # of empty texts
    named = {place: labels.get(place) or next(others) for place in by_place}
    return {
        named[place]: found[place].text if place in found else text
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
    letters = "".join(label.letter for label in found)
    if len(found) < 2 or letters not in LETTERS:
        return False
    if letters.startswith("A"):  # fewer than three keep their letters
        are_species = all(one.mark == "." and _EPITHET.fullmatch(one.text) for one in found)
        is_clear = any(_OF_SPECIES.fullmatch(one.text) for one in found)
        return len(found) > 2 and are_species and is_clear
    names = [one.text for one in found if one.text.casefold() not in _PLAIN]
    is_of_names = all(one.mark == "." for one in found) and all(name[0].islower() for name in names)
    return not (is_of_names and names) and not _mention_options(found)


class _Label(NamedTuple):
    """The label of an option."""

    letter: str
    """Letter in uppercase."""
    mark: str | None
    """Sign after the letter if it may be part of a name as well; None in parentheses."""
    text: str
    """Text after the label."""
    whole: str
    """Text with its label."""


def _usual_label(text: str) -> _Label | None:
    """Return the label of a text that begins like `(A) Iron`, `A. Iron` or `A: Iron`."""
    if text[:1].isalpha() and not text.startswith(_BEGINNINGS):
        return None  # nearly always
    match = _LABELED.fullmatch(text)
    return _Label(match[1] or match[2], match[3], match[4], text) if match else None


def _rare_label(text: str) -> _Label | None:
    """Return the label of a text that begins like `(a) Iron`, `A、铁`, `[A] Iron` or `A - Iron`."""
    match = _RARELY_LABELED.fullmatch(text)
    if match is None:
        return None
    mark = (match[3] or "").strip().replace("–", "-").replace("—", "-")
    letter = unicodedata.normalize("NFKC", match[1] or match[2]).upper()
    # `c - peptide` and `c. albicans` are names
    return _Label(letter, mark if mark in (".", "-") else None, match[4], text)


def label_of(text: str) -> tuple[str, str] | None:
    """Return (letter in uppercase, text after it) for a text with a label; None without one."""
    label = _usual_label(text) or _rare_label(text)
    return (label.letter, label.text) if label and label.text.strip() else None


def _labels(
    options: Mapping[str, object], label_of: Callable[[str], _Label | None] = _usual_label
) -> dict[str, _Label]:
    """Return letter -> label for the texts that are not empty; empty if one has no label."""
    found: dict[str, _Label] = {}
    for letter, text in options.items():
        if text is None:
            continue
        if not isinstance(text, str):
            return {}
        if text.strip():
            label = label_of(text.strip())
            if label is None or not label.text.strip():
                return {}
            found[letter] = label
    return found


def _mention_options(found: Collection[_Label]) -> bool:
    """Return whether texts mention options: `(A) and B`, or `(A) only` beside `(B) only`."""
    are_only = sum(bool(_ONLY.fullmatch(label.text)) for label in found) > 1
    return are_only or any(
        names_several(label.whole) or (label.mark is None and _GOES_ON.match(label.text))
        for label in found
    )


def _are_parts(found: Collection[_Label]) -> bool:
    """Return whether letters are parts of texts: `B - A - C`, or `(b) rises` and `(a) rises`."""
    in_sequence = sum(bool(_SEQUENCE.fullmatch(label.whole)) for label in found) > 1
    return in_sequence or (len(found) > 1 and len({label.text for label in found}) == 1)


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
