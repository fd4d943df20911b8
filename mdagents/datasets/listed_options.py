"""Finds options that a text lists by letter, as in `A. Iron` or `(B) Zinc`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LETTER_AND_DOT = re.compile(r"^[ \t]*([A-Z])[.)](?=\s)", re.MULTILINE)
"""Marks of options in published data sets: `A.` or `A)` at the start of a line."""
ANY_MARK = re.compile(
    r"^[ \t]*(?:[-*•][ \t]+)?(?:\*\*)?(?:\(([A-Za-z])\)|([A-Za-z])[.):])(?:\*\*)?(?=\s)",
    re.MULTILINE,
)
"""Marks of options in prompts: `A.`, `A)`, `A:`, `(A)` or `a)` at the start of a line."""
IN_ONE_LINE = re.compile(r"(?<!\S)\(([A-Za-z])\)(?=\s)")
"""Marks of options that follow each other in one line: `(A) Iron (B) Zinc`."""


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


def texts_of(text: str, marks: Sequence[Mark]) -> list[str]:
    """Return the text after each mark of a list, up to the next mark or the end of the text."""
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    return [text[mark.end : end].strip() for mark, end in zip(marks, ends, strict=True)]
