"""Finds options that a text lists by letter, as in `A. Iron` or `(B) Zinc`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mdagents.datasets.empty_options import is_empty

LETTER_AND_DOT = re.compile(r"^[ \t]*([A-Z])[.)](?=\s|\Z)", re.MULTILINE)
"""Marks of options in published data sets: `A.` or `A)` at the start of a line."""
ANY_MARK = re.compile(
    r"^[ \t]*(?:[-*•][ \t]+)?(?:\*\*)?(?:\(([A-Za-z])\)|([A-Za-z])[.):])(?:\*\*)?(?=\s|\Z)",
    re.MULTILINE,
)
"""Marks of options in prompts: `A.`, `A)`, `A:`, `(A)` or `a)` at the start of a line."""
IN_ONE_LINE = re.compile(r"(?<!\S)\(([A-Za-z])\)(?=\s)")
"""Marks of options that follow each other in one line: `(A) Iron (B) Zinc`."""

_BEFORE_LIST = (".", "?", "!", ":", "\n")
"""Ends of the text before a list: the end of a sentence, or of a line."""
_MOST = 10
"""Maximum number of options: A to J."""
_SPECIES = re.compile(r"\s*[A-Z]\. [a-z]")
"""`E. coli`, which is no option if the others begin with a capital."""
_HEADING = re.compile(
    r"\b(?:Answer )?(?:Options|Choices)[ \t]*:"
    r"|(?:^|(?<=[.?!;:\n]))[ \t]*(?i:answer )?(?i:options|choices)[ \t]*:"
    r"|\b(?i:answer )?(?i:options|choices)\s*:(?=\s*\(?[A-Ja-j][).:])",
    re.MULTILINE,
)
"""Heading of a list of options: with a capital, at the start of a sentence, or before a letter.
Elsewhere the words are part of a sentence: `two options: surgery or radiation`."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of an option in a text."""

    letter: str
    """Letter as written."""
    start: int
    """Offset of the mark in the text, in characters."""
    end: int
    """Offset of the first character after the mark."""


def option_lists(
    text: str, mark: re.Pattern[str], *, only_one: bool = False
) -> list[Sequence[Mark]]:
    """Return the lists of options in a text: consecutive letters from A, two or more.

    A letter that does not continue its list is text of the option before it.

    Args:
        text: Text with lists.
        mark: Pattern of a mark, whose first group that matches is the letter.
        only_one: Whether another A is text as well; otherwise it begins the next list.
    """
    lists: list[list[Mark]] = []
    for match in mark.finditer(text):
        letter = next(filter(None, match.groups()))
        if letter in "Aa" and not (lists and only_one):
            if lists and len(lists[-1]) == 1:
                lists.pop()  # no list, and a text may hold a hundred thousand of them
            lists.append([Mark(letter, *match.span())])
        elif lists and letter == chr(ord(lists[-1][0].letter) + len(lists[-1])):
            lists[-1].append(Mark(letter, *match.span()))
    return [marks for marks in lists if len(marks) > 1]


def shuffled_list(text: str, mark: re.Pattern[str]) -> Sequence[Mark]:
    """Return the list at the end of a text that has the letters A to n in another order.

    It begins a line or follows a sentence, unlike `vitamin (C)`; empty if there is no such list.

    Args:
        text: Text with lists.
        mark: Pattern of a mark, whose first group that matches is the letter.
    """
    marks = [
        Mark(next(filter(None, match.groups())), *match.span()) for match in mark.finditer(text)
    ][-_MOST:]
    for first in range(len(marks) - 1):
        letters = [one.letter for one in marks[first:]]
        wanted = [chr(ord(min(letters)) + place) for place in range(len(letters))]
        if wanted[0] not in "Aa" or letters == wanted or sorted(letters) != wanted:
            continue
        before = text[: marks[first].start].rstrip(" \t")
        species = [_SPECIES.match(text, one.start) is not None for one in marks[first:]]
        if (not before or before.endswith(_BEFORE_LIST)) and (all(species) or not species[0]):
            return marks[first:]
    return ()


def texts_of(text: str, marks: Sequence[Mark]) -> list[str]:
    """Return the text after each mark of a list, up to the next mark or the end of the text."""
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    return [text[mark.end : end].strip() for mark, end in zip(marks, ends, strict=True)]


def without_options(question: str, options: Collection[str]) -> str:
    """Return a question without a list of all its options at its end, with or without a heading.

    The options are presented below the question anyway, and perhaps in another order.

    Args:
        question: Text of the question, without white space at its end.
        options: Texts of the options, without white space around them; those that are empty or
            `n/a` need not be listed.
    """
    texts = tuple(options)
    if not question.endswith(texts) and not question.rstrip(" .").endswith(texts):
        return question  # nearly always
    texts = tuple(filter(None, texts))
    starts = [(match.start(), match.end()) for match in _HEADING.finditer(question)][-1:]
    for mark in (ANY_MARK, IN_ONE_LINE):
        starts += [(marks[0].start,) * 2 for marks in option_lists(question, mark)[-1:]]
        in_any_order = list(mark.finditer(question))[-len(texts) :]  # as MDAgents shuffles them
        starts += [(first.start(),) * 2 for first in in_any_order[:1]]
    for end, start in starts:
        if question[:end].strip() and _are_listed(texts, " ".join(question[start:].split())):
            return question[:end].rstrip()
    return question


def _are_listed(texts: Collection[str], listed: str) -> bool:
    """Return whether a text lists all options, and nothing else but their letters."""
    for text in sorted(texts, key=len, reverse=True):
        words = " ".join(text.split())
        if (at := listed.find(words)) >= 0:
            listed = f"{listed[:at]} {listed[at + len(words) :]}"
        elif not is_empty(text):
            return False
    return all(len(word) == 1 and word.isalpha() for word in re.findall(r"\w+", listed))
