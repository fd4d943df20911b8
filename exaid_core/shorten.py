"""Cuts a text that is too long without changing the meaning of the rest."""

from __future__ import annotations

import re

from exaid_core.term_list import phrases
from exaid_core.words import character_ends, sentence_ends, word_spans

ELLIPSIS = "…"

# Characters that are read after the limit: enough for the words that decide about the last gap.
_LOOKAHEAD = 200
_LONGEST_PHRASE = 4
"""Words on each side of a negation that belong to it."""

_WORD = re.compile(r"\S+")
_DANGLING = " \t\n,;:.…([{/–—"

_BEFORE_A_NUMBER = "([<>≤≥=~≈±+−-.,"
_ENDS_CLAUSE = re.compile(r"[.,;:!?)\]]$")
_COMPARATOR = re.compile(r"[(\[]?(?:[<>≤≥=~≈±]+|[+−-])")
_UNIT = re.compile(r"[a-zµμ%°‰/×]|(?:IU|U|L|Hz|kPa|Fr|Gy|Bq|[kMG]Bq|MHz|Eq|M)\b")
_RANGE_SIGNS = phrases("-, −, –, —, /, x, ×, *, ·, ±, +/-, to, and, or, of, in, over")
_MAGNITUDES = phrases("hundred, thousand, million, billion")
_DIVIDERS = phrases("per, /")

_CONJUNCTIONS = phrases(
    "and, or, but, nor, yet, so, then, however, although, though, while, whereas, because, since"
)
# Words that follow a number without being its unit.
_NOT_UNITS = _CONJUNCTIONS | phrases("with, on, in, at, for, is, was, were, are, to, by, from, as")

# Each is one or two words. They deny, or advise against, what follows.
_NEGATIONS = phrases(
    "no, not, non, never, none, nil, nor, neither, without, cannot, lacks, lacking, lack of,"
    "deny, denies, denied, denying, unlikely, less likely, absent, absence of, free of,"
    "exclude, excludes, excluded, rule out, rules out, ruled out, ruling out, negative for,"
    "evidence against, rather than, instead of, unless, except, hardly, fails to, failed to,"
    "refuses, refused, declines, declined, contraindicated, avoid, stop, withhold, discontinue"
)
# Those that may deny the words before them: "thrombolysis is not indicated".
_DENIES_BEFORE = phrases(
    "not, never, cannot, unlikely, less likely, absent, excluded, ruled out, contraindicated,"
    "unless, except"
)


def shorten(text: str, limit: int) -> str:
    """Return `text` if it fits, else as much of its beginning as makes sense alone, and `…`.

    The cut falls between words. A number stays with its unit, a range or a fraction whole; a
    negation stays with what it denies (at most four words to each side within its clause), or
    both go.

    Args:
        text: Any text.
        limit: Most characters of the result, with the ellipsis.

    Raises:
        ValueError: `limit` is less than 1.
    """
    if limit < 1:
        raise ValueError(f"a text cannot be shortened to {limit} characters")
    if len(text) <= limit:
        return text
    words = list(_WORD.finditer(text, 0, limit + _LOOKAHEAD))
    bound = _bound_gaps([word[0] for word in words])
    for index in reversed(range(len(words) - 1)):
        end = words[index].end()
        if end < limit and index not in bound and (kept := text[:end].rstrip(_DANGLING)):
            return kept + ELLIPSIS
    return ELLIPSIS


def split_text(text: str, limit: int) -> list[str]:
    """Return the text in pieces of at most `limit` characters; joined they are the text.

    Each piece is as long as it can be and ends with a sentence; where not even one fits, between
    words, if possible where `shorten` would cut; and inside a word only where the word is too long.

    Args:
        text: Any text.
        limit: Most characters of a piece.

    Raises:
        ValueError: `limit` is less than 1.
    """
    if limit < 1:
        raise ValueError(f"a text cannot be split into pieces of {limit} characters")
    pieces, start = [], 0
    while len(text) - start > limit:
        end = start + _end_of_piece(text[start : start + limit + _LOOKAHEAD], limit)
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]] if text[start:] else pieces


def _end_of_piece(text: str, limit: int) -> int:
    if sentences := [end for end in sentence_ends(text) if end <= limit]:
        return sentences[-1]
    characters = dict.fromkeys(end for end in character_ends(text) if end <= limit)
    spans = word_spans(text)
    bound = _bound_gaps([text[start:end] for start, end in spans])
    starts = [start for start, _ in spans[1:]]
    free = [start for gap, start in enumerate(starts) if gap not in bound]
    for places in (free, starts, characters):
        if ends := [end for end in places if end in characters]:
            return ends[-1]
    return limit  # one character of many code points


def _bound_gaps(words: list[str]) -> set[int]:
    """Return the indices of the words after which the text must not be cut."""
    bound: set[int] = set()
    plain = [_plain(word) for word in words]
    for index in range(len(words) - 1):
        # No cut after a conjunction or a dash; a dash would be stripped and expose the word before.
        if plain[index] in _CONJUNCTIONS or not words[index].strip(_DANGLING):
            bound.add(index)
        bound.update(_amount(words, index))
        bound.update(_negated(words, plain, index))
    return bound


def _plain(word: str) -> str:
    return word.strip("*_()[]\"'“”‘’.,;:!?").lower().replace("’", "'")


def _amount(words: list[str], index: int) -> range:
    """Return the gaps, at most two, from the word at `index` on that would split an amount."""
    word, after = words[index : index + 2]
    beyond = words[index + 2] if index + 2 < len(words) else ""
    one, two = range(index, index + 1), range(index, index + 2)
    if after in _DIVIDERS:
        return two
    if _COMPARATOR.fullmatch(word) or word.lower() in _MAGNITUDES:
        return one
    if not word.rstrip("%")[-1:].isnumeric():
        return range(0)
    if after.lower() in _RANGE_SIGNS and _starts_with_number(beyond):
        return two
    is_unit = _UNIT.match(after) and _plain(after) not in _NOT_UNITS
    return one if is_unit or _starts_with_number(after) else range(0)


def _starts_with_number(word: str) -> bool:
    return word.lstrip(_BEFORE_A_NUMBER)[:1].isnumeric()


def _negated(words: list[str], plain: list[str], index: int) -> range:
    """Return the gaps around a negation that starts at `index`, as far as its phrase reaches."""
    pair = " ".join(plain[index : index + 2])
    if pair in _NEGATIONS:
        name, end = pair, index + 1
    elif plain[index] in _NEGATIONS or plain[index].endswith("n't"):
        name, end = plain[index], index
    else:
        return range(0)
    start = index
    if name in _DENIES_BEFORE or name.endswith("n't"):
        start = _start_of_phrase(words, plain, index)
    return range(start, _end_of_phrase(words, plain, end))


def _start_of_phrase(words: list[str], plain: list[str], index: int) -> int:
    for before in range(index - 1, max(index - 1 - _LONGEST_PHRASE, -1), -1):
        if _ENDS_CLAUSE.search(words[before]) or plain[before] in _CONJUNCTIONS:
            return before + 1
    return max(index - _LONGEST_PHRASE, 0)


def _end_of_phrase(words: list[str], plain: list[str], negation: int) -> int:
    last = min(negation + _LONGEST_PHRASE, len(words) - 1)
    for word in range(negation, last):
        if _ENDS_CLAUSE.search(words[word]) or plain[word + 1] in _CONJUNCTIONS:
            # One word follows in any case: a negation must not be the last word.
            return max(word, negation + 1)
    return last
