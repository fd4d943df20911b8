"""Finds options that a text lists by letter, as in `A. Iron` or `(B) Zinc`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase

from mdagents.datasets.empty_options import is_empty
from mdagents_llm.text import single_spaced

LETTER_AND_DOT = re.compile(r"^[ \t]*([A-Z])[.)](?=\s|\Z)", re.MULTILINE)
"""Marks of options in published data sets: `A.` or `A)` at the start of a line."""
_INDENT = r"[ \t\u00a0\u200b\u2060\u3000\ufeff]*(?:[-*•][ \t]+)?"
ANY_MARK = re.compile(
    rf"^{_INDENT}(?:\*\*)?(?:\(([A-Za-z])\)|([A-Za-z])[.):])(?:\*\*)?(?=\s|\Z)",
    re.MULTILINE,
)
"""Marks of options in prompts: `A.`, `A)`, `A:`, `(A)` or `a)` at the start of a line."""
IN_ONE_LINE = re.compile(r"(?<!\S)\(([A-Za-z])\)(?=\s)")
"""Marks of options that follow each other in one line: `(A) Iron (B) Zinc`."""
RARE_MARK = re.compile(
    rf"^{_INDENT}(?:(?i:option|choice)[ \t]+\(?([A-J])\)?[ \t]*[.):](?=\s)|\[([A-J])\](?=\s)"
    r"|\*\*([A-J])\*\*(?=\s)|([A-JＡ-Ｊ])[.)．、：）]|（([A-JＡ-Ｊ])）)",
    re.MULTILINE,
)
"""Marks that are read if there are no others: `A.Iron`, `A、铁`, `Option A: Iron`, `[A] Iron`."""
RARE_IN_ONE_LINE = re.compile(r"(?<!\S)([A-JＡ-Ｊ])(?:[.):](?=\s)|[.)．、：）](?=[^\x00-\x7f]))")
"""Marks that are read in one line if there are no others: `A) Iron B) Zinc`, `A.铁 B.锌`."""

_BEFORE_LIST = (".", "?", "!", ":", "\n", "。", "？", "！", "：")
"""Ends of the text before a list: the end of a sentence, or of a line."""
_MOST = 10
"""Maximum number of options: A to J."""
_SPECIES = re.compile(r"\s*[A-Z]\. [a-z]")
"""`E. coli`, which is no option if the others begin with a capital."""
_HEADING = re.compile(
    r"(?<![^\W_])(?:Answer )?(?:Options|Choices)[ \t]*:"
    r"|(?:^|(?<=[.?!;:\n]))[ \t]*(?i:answer )?(?i:options|choices)[ \t]*:"
    r"|\b(?i:answer )?(?i:options|choices)\s*:(?=\s*\(?[A-Ja-j][).:])"
    r"|(?:选项|選項|选择|Opciones|Optionen)\s*[:：]",
    re.MULTILINE,
)
"""Heading of a list of options: with a capital, at the start of a sentence, or before a letter.
Elsewhere the words are part of a sentence: `two options: surgery or radiation`."""

_MARK = r"[*_'\"]{0,3}\s?[).:、．：）\]】|–-]{1,2}[*_]{0,2}\s*['\"]?"
_OPENING = re.compile(
    r"(?:[-*•|][ \t]+)?[({\[（【*_'\"]{0,3}(?<![^\W_])(?:[A-Ja-jＡ-Ｊ]|10|[1-9])"
    rf"{_MARK}\Z|\[\s?['\"]\Z"
)
"""What precedes the first option of a list: `A.`, `**(A)**`, `{'A': '` or `['`."""
_LONGEST_OPENING = 24  # characters
_LABEL = re.compile(r"(?<![^\W_])([A-Ja-j]|10|[1-9])(?=[*_'\"]{0,3}\s?[).:、\]】|–-])")
_BETWEEN = re.compile(r"[\w\s()\[\]{}.,;:'\"*/|、。】【•·–-]*")
"""Labels, and signs between options."""
_WORD = re.compile(r"[^\W_]+")
_BARE_LABEL = re.compile(r"[A-Za-z]|\d|10")
"""Label in a list with a heading, where it needs no sign: `Options: A Iron B Zinc`."""
_TAG = re.compile(r"</?(?:br|p|li|ol|ul|b|strong|div)\s?/?>", re.IGNORECASE)
_TAG_AT_END = re.compile(rf"{_TAG.pattern}\Z", re.IGNORECASE)
_REQUEST = re.compile(
    r"(?:the )?(?:correct |final |best )?answer(?: is)?\s?:?|(?:正确)?答案?\s?[:：]?"
    r"|(?:please )?(?:answer|respond|reply)\b.{0,80}\b(?:letter|option|choice)\b.{0,40}",
    re.IGNORECASE,
)
"""A line after a list that asks for the answer."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of an option in a text."""

    letter: str
    """Letter as written."""
    start: int
    """Offset of the mark in the text, in characters."""
    end: int
    """Offset of the first character after the mark."""


def marks_in(text: str, mark: re.Pattern[str]) -> list[Mark]:
    """Return the marks in a text, in order; a full-width letter counts as its usual form.

    Args:
        text: Text with lists.
        mark: Pattern of a mark, whose first group that matches is the letter.
    """
    return [Mark(_usual_form(match), *match.span()) for match in mark.finditer(text)]


def _usual_form(match: re.Match[str]) -> str:
    letter = next(filter(None, match.groups()))
    return letter if letter.isascii() else unicodedata.normalize("NFKC", letter)


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
    return _lists_of(marks_in(text, mark), only_one=only_one)


def _lists_of(marks: Sequence[Mark], *, only_one: bool = False) -> list[Sequence[Mark]]:
    lists: list[list[Mark]] = []
    for one in marks:
        if one.letter in "Aa" and not (lists and only_one):
            if lists and len(lists[-1]) == 1:
                lists.pop()  # no list, and a text may hold a hundred thousand of them
            lists.append([one])
        elif lists and one.letter == chr(ord(lists[-1][0].letter) + len(lists[-1])):
            lists[-1].append(one)
    return [found for found in lists if len(found) > 1]


def shuffled_list(text: str, mark: re.Pattern[str]) -> Sequence[Mark]:
    """Return the list at the end of a text that has the letters A to n in another order.

    It begins a line or follows a sentence, unlike `vitamin (C)`, and is not the end of one list and
    the whole of the next; empty if there is no such list.

    Args:
        text: Text with lists.
        mark: Pattern of a mark, whose first group that matches is the letter.
    """
    marks = marks_in(text, mark)
    lists, marks = _lists_of(marks), marks[-_MOST:]
    for first in range(len(marks) - 1):
        letters = [one.letter for one in marks[first:]]
        wanted = [chr(ord(min(letters)) + place) for place in range(len(letters))]
        if wanted[0] not in "Aa" or letters == wanted or sorted(letters) != wanted:
            continue
        if any(_continues(text, one, *marks[first : first + 2]) for one in lists):
            continue
        before = text[: marks[first].start].rstrip(" \t")
        species = [_SPECIES.match(text, one.start) is not None for one in marks[first:]]
        if (not before or before.endswith(_BEFORE_LIST)) and (all(species) or not species[0]):
            return marks[first:]
    return ()


def _continues(text: str, marks: Sequence[Mark], first: Mark, second: Mark) -> bool:
    """Return whether a mark continues a list, instead of beginning one with the mark after it.

    The question between two lists has lines of its own, so the mark belongs to the list from which
    fewer lines separate it.
    """
    if first not in marks[1:]:
        return False
    before = text[marks[marks.index(first) - 1].end : first.start]
    return before.count("\n") <= text.count("\n", first.end, second.start)


def rare_list(text: str) -> tuple[re.Pattern[str], Sequence[Mark]] | None:
    """Return the last list of options with rare marks, and their pattern; None without one.

    A text has such marks elsewhere too, as in `A.baumannii`, so that the list must be whole: no
    option is empty, not all are abbreviations, and no question follows words in lowercase. In one
    line it has three options after a sentence, or more, no mark left over, no commas between them,
    and no question behind it.
    """
    found: list[tuple[re.Pattern[str], Sequence[Mark]]] = []
    for mark in (RARE_MARK, RARE_IN_ONE_LINE):
        lists = option_lists(text, mark)
        texts = texts_of(text, lists[-1]) if lists else [""]
        if not all(texts):
            continue
        marks = lists[-1]
        is_asked_behind = re.search(r"[?？]", text[marks[0].end :]) is not None
        before = text[: marks[0].start].rstrip(" \t\"'”)")
        if mark is RARE_MARK:
            is_whole = not (
                (is_asked_behind and all(one[0].islower() for one in texts))
                or all(re.match(r"[A-Z]\.", one) for one in texts)  # "A.M.", "B.P."
            )
        else:
            is_whole = (
                not is_asked_behind
                and (len(marks) > 3 or (len(marks) == 3 and before.endswith(_BEFORE_LIST)))
                and len(marks_in(text[marks[0].start :], mark)) == len(marks)
                and not any(one.endswith((",", ";")) for one in texts)
            )
        if is_whole:
            found.append((mark, marks))
    return max(found, key=lambda one: one[1][0].end, default=None)


def texts_of(text: str, marks: Sequence[Mark]) -> list[str]:
    """Return the text after each mark of a list, up to the next mark or the end of the text."""
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    return [text[mark.end : end].strip() for mark, end in zip(marks, ends, strict=True)]


def without_options(question: str, options: Collection[str]) -> str:
    """Return a question without a list of all its options at its end, with or without a heading.

    The options are presented below the question anyway, and perhaps in another order. A request
    after the list, such as `Answer:`, is left out as well; any other text keeps the list.

    Args:
        question: Text of the question, without white space at its end.
        options: Texts of the options, without white space around them; those that are empty or
            `n/a` need not be listed.
    """
    if not has_all(single_spaced(question), options):  # nearly always
        return question
    texts = filter(None, (" ".join(text.split()) for text in options))
    spans = _spans(question, sorted(texts, key=len, reverse=True))
    start = _start_of_list(question, spans) if spans else None
    return question if start is None else _without_tags(question[:start]) or question


def lists_by_letter(question: str, options: Mapping[str, str]) -> bool:
    """Return whether a question has each option after its letter: `A. Iron`.

    Args:
        question: Text of the question.
        options: Letter -> text.
    """
    return has_all(single_spaced(question), options.values()) and all(
        re.search(rf"(?<![^\W_])[{letter}{letter.lower()}]{_MARK}{_words(text)}(?!\w)", question)
        for letter, text in options.items()
    )


def has_all(question: str, options: Collection[str]) -> bool:
    """Return whether a question, with single spaces between its words, contains all its options.

    Options that are empty or `n/a` need not be there.
    """
    return all(" ".join(text.split()) in question or is_empty(text) for text in options)


def _words(text: str) -> str:
    return r"\s+".join(map(re.escape, text.split()))


def _spans(question: str, texts: Sequence[str]) -> list[tuple[int, int]]:
    """Return where a text has each option last, in the order of the text; empty if one is missing.

    Args:
        question: Text of the question.
        texts: Texts of the options, the longest first, as a shorter one may be part of it.
    """
    spans: list[tuple[int, int]] = []
    for text in texts:
        pattern = re.compile(rf"(?<!\w){_words(text)}(?!\w)")
        found = [match.span() for match in pattern.finditer(question)]
        apart = [
            one for one in found if all(one[1] <= start or one[0] >= end for start, end in spans)
        ]
        if not apart and not is_empty(text):
            return []
        labeled = [one for one in apart if _opening(question, one[0])]  # a text may be a letter
        spans += (labeled or apart)[-1:]
    return sorted(spans)


def _opening(question: str, start: int) -> re.Match[str] | None:
    return _OPENING.search(question[max(start - _LONGEST_OPENING, 0) : start])


def _start_of_list(question: str, spans: Sequence[tuple[int, int]]) -> int | None:
    """Return where a list of options at the end of a text begins, with its heading.

    Args:
        question: Text of the question.
        spans: Where it has the options, in order.

    Returns:
        Offset in the text; None if its end is anything else than a list with a heading, with
        labels, or with a bracket before it.
    """
    first = spans[0][0]
    lines = question[spans[-1][1] :].splitlines()
    gaps = [question[end:start] for (_, end), (start, _) in pairwise(spans)]
    rest = [line for line in lines if not _REQUEST.fullmatch(line.strip(" ."))]
    headings = [found for found in _HEADING.finditer(question) if found.end() <= first]
    if headings and _has_only_labels([question[headings[-1].end() : first], *gaps]):
        return None if _labels(rest) is None else _start_of_heading(question, headings[-1])
    opening = _opening(question, first)
    labels = _labels([opening[0], *gaps, *rest]) if opening else None
    if opening is None or labels is None:
        return None
    start = first - len(opening[0])
    count = len(labels)
    are_letters = sorted(labels) in (list(ascii_uppercase[:count]), list(ascii_lowercase[:count]))
    are_numbers = labels == list(map(str, range(1, count + 1)))
    is_complete = not labels or (count >= len(spans) and (are_letters or are_numbers))
    if (
        _without_tags(question[:start]).rstrip(" -–").endswith((":", "："))
    ):  # "Her drugs: 1. Iron 2. Zinc"
        begins_line = "\n" in question[len(question[:start].rstrip()) : start]
        is_complete &= are_letters and (begins_line or "(" in opening[0])
    return start if is_complete else None


def _labels(gaps: Sequence[str]) -> list[str] | None:
    """Return the labels that stand between options; None if anything else does."""
    labels: list[str] = []
    for gap in gaps:
        plain = _plain(gap)
        found = _LABEL.findall(plain)
        if len(found) < len(_WORD.findall(plain)) or not _BETWEEN.fullmatch(plain):
            return None
        labels += found
    return labels


def _has_only_labels(gaps: Sequence[str]) -> bool:
    """Return whether nothing but labels and signs stands between a heading and its options."""
    return all(_BARE_LABEL.fullmatch(word) for gap in gaps for word in _WORD.findall(_plain(gap)))


def _start_of_heading(question: str, heading: re.Match[str]) -> int:
    """Return where a heading begins, or the signs of its font: `**Options:**`."""
    behind = question[heading.end() :]
    font = behind[: len(behind) - len(behind.lstrip("*_"))]
    return len(question[: heading.start()].removesuffix(font))


def _plain(gap: str) -> str:
    return unicodedata.normalize("NFKC", _TAG.sub(" ", gap))


def _without_tags(text: str) -> str:
    """Return a text without HTML tags and white space at its end."""
    text = text.rstrip()
    while tag := _TAG_AT_END.search(text[-_LONGEST_OPENING:]):
        text = text[: -len(tag[0])].rstrip()
    return text
