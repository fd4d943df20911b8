"""Cuts texts for prompts to a number of words, without parting amounts and English denials."""

import re
from functools import lru_cache

from exaid_core.checks.term_list import phrases
from exaid_core.tokenizer import word_spans

_DANGLING = " \t\n,;:.…([{/–—，、。；：（「『【《〈،؛۔।¿¡"
_LOOKAHEAD = 200
_LONGEST_WORD = 64
"""Maximum characters of a word; a longer run between spaces can be cut anywhere."""
_LONGEST_PHRASE = 4
"""Number of words on each side of a denial that belong to it."""

_ENDS_CLAUSE = re.compile(r"[.,;:!?)\]，、。；：！？）」』】،؛؟۔।]$")
_COMPARATOR = re.compile(r"[(\[]?(?:[<>≤≥=~≈±]+|[+−-])")
_UNIT = re.compile(r"[a-zµμ%°‰/×]|(?:IU|U|L|Hz|kPa|Fr|Gy|Bq|[kMG]Bq|MHz|Eq|M)\b")
_RANGE_SIGNS = phrases("-, −, –, —, /, x, ×, *, ·, ±, +/-, to, and, or, of, in, over")
_CONJUNCTIONS = phrases(
    "and, or, but, nor, yet, so, then, however, although, though, while, whereas, because, since"
)
_NOT_UNITS = _CONJUNCTIONS | phrases("with, on, in, at, for, is, was, were, are, to, by, from, as")
_DENIALS = phrases(
    "no, not, non, never, none, nil, nor, neither, without, cannot, lacks, lacking, lack of,"
    "deny, denies, denied, denying, unlikely, less likely, absent, absence of, free of,"
    "exclude, excludes, excluded, rule out, rules out, ruled out, ruling out, negative for,"
    "evidence against, rather than, instead of, unless, except, hardly, fails to, failed to,"
    "refuses, refused, declines, declined, contraindicated, avoid, stop, withhold, discontinue"
)
_DENIES_BEFORE = phrases(
    "not, never, cannot, unlikely, less likely, absent, excluded, ruled out, contraindicated,"
    "unless, except"
)
"""Denials that may apply to the words before them: "thrombolysis is not indicated"."""
_LARGE_NUMBERS = frozenset({"hundred", "thousand", "million", "billion"})
_PER = ("per", "/")
_BINDING = _CONJUNCTIONS | _LARGE_NUMBERS | {denial.split()[0] for denial in _DENIALS}
"""First words of whatever binds the words near it, except numbers and signs."""


def clip(text: str, limit: int) -> str:
    """Return `text` if it fits, else as many of its first words as make sense, plus `…`.

    A number stays with its unit, and a denial with up to four words on each side in its clause.

    Args:
        text: Any text.
        limit: Maximum characters of the result.
    """
    if len(text) <= limit:
        return text
    head = text[: limit + _LOOKAHEAD]
    spans = word_spans(head)
    words = [head[start:end] for start, end in spans]
    for index in reversed(range(len(spans) - 1)):
        end = spans[index][1]
        if end >= limit or _is_bound(words, index):
            continue
        if kept := head[:end].rstrip(_DANGLING):
            return kept + "…"
    # A run of characters that is no word: a URL, a sequence.
    is_no_word = bool(spans) and spans[0][1] - spans[0][0] > _LONGEST_WORD
    return (head[: limit - 1].strip() if is_no_word else "") + "…"


def _is_bound(words: list[str], gap: int) -> bool:
    """Return whether a word binds the gap after the word at `gap`."""
    first, last = gap - _LONGEST_PHRASE - 1, gap + _LONGEST_PHRASE
    near = range(max(first, 0), min(last, len(words) - 2) + 1)
    return any(
        gap in _bound_by(words, index)
        for index in near
        if _can_bind(words[index]) or words[index + 1] in _PER
    )


@lru_cache(maxsize=4096)  # as for `_plain`
def _can_bind(word: str) -> bool:
    """Return whether a word can bind a gap, unless a word of `_PER` follows; most cannot."""
    plain = _plain(word)
    return (
        plain in _BINDING
        or plain.endswith("n't")
        or word.endswith("/")
        or word.rstrip("%")[-1:].isnumeric()
        or not word.strip(_DANGLING)
        or _COMPARATOR.fullmatch(word) is not None
    )


def _bound_by(words: list[str], index: int) -> set[int]:
    """Return the gaps that the word at `index` binds, by the index of the word before a gap."""
    dangles = _plain(words[index]) in _CONJUNCTIONS or not words[index].strip(_DANGLING)
    return {*_amount(words, index), *_denied(words, index), *([index] if dangles else [])}


@lru_cache(maxsize=4096)  # a word is compared several times, and texts share most of theirs
def _plain(word: str) -> str:
    return word.strip("*_()[]\"'“”‘’.,;:!?，、。；：！？（）").lower().replace("’", "'")


def _amount(words: list[str], index: int) -> range:
    word, after = words[index : index + 2]
    beyond = words[index + 2] if index + 2 < len(words) else ""
    one, two = range(index, index + 1), range(index, index + 2)
    if after in _PER:
        return two
    if _COMPARATOR.fullmatch(word) or word.lower() in _LARGE_NUMBERS:
        return one
    if word.endswith("/") or not word.rstrip("%")[-1:].isnumeric():
        return range(0)
    if after.lower() in _RANGE_SIGNS and _starts_with_number(beyond):
        return two
    is_unit = _UNIT.match(after) and _plain(after) not in _NOT_UNITS
    return one if is_unit or _starts_with_number(after) else range(0)


def _starts_with_number(word: str) -> bool:
    return word.lstrip("([<>≤≥=~≈±+−-.,")[:1].isnumeric()


def _denied(words: list[str], index: int) -> range:
    """Return the gaps within the phrase of a denial that starts at `index`; empty without one."""
    plain = [_plain(word) for word in words[index : index + 2]]
    name, end = " ".join(plain), index + 1
    if name not in _DENIALS or " " not in name:
        name, end = plain[0], index
    if name not in _DENIALS and not name.endswith("n't"):
        return range(0)
    start = index
    if name in _DENIES_BEFORE or name.endswith("n't"):
        while start > max(index - _LONGEST_PHRASE, 0) and _continues(words, start - 1, index):
            start -= 1
    last = end
    while last < min(end + _LONGEST_PHRASE, len(words) - 1) and not (
        _ENDS_CLAUSE.search(words[last]) or _plain(words[last + 1]) in _CONJUNCTIONS
    ):
        last += 1
    return range(start, min(max(last, end + 1), len(words) - 1))


def _continues(words: list[str], before: int, denial: int) -> bool:
    """Return whether the word at `before` belongs to the clause of the denial after it."""
    is_heading = before == denial - 1 and words[before].endswith(":")
    ends = _ENDS_CLAUSE.search(words[before]) and not is_heading
    return not ends and _plain(words[before]) not in _CONJUNCTIONS
