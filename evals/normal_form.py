"""The normal form of terms and texts: no case, accents, plural or national spelling.

A text is split into pieces, each a word or a break. A term never spans a break.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

BREAK = "|"
"""Normal form of punctuation that no term spans."""

_ACCENTS = "\u0300-\u036f\u00ad"  # as characters of their own, after the letter; soft hyphens

# A decomposed accent is part of its letter. Hyphens, an en dash as a hyphen (Guillain–Barré,
# COVID–19), Markdown emphasis and whitespace only separate words; other punctuation is a break, as
# is an en dash between digits or beside a space.
_WORD = rf"[^\W_](?:[^\W_]|[{_ACCENTS}])*"
_PIECE = re.compile(
    rf"{_WORD}(?:['’ʼ]{_WORD})*|[^\w\s*`#~'’+%°^&‐‑–-]|(?<=\d)–(?=\d)|–(?!\S)|(?<!\S)–|\n"
)

_ACCENT = re.compile(f"[{_ACCENTS}]")
_FROM_PDF = re.compile("[ﬀ-ﬆ²³¹⁰-₉]")  # ligatures, superscripts and subscripts
_DIGRAPH = re.compile("ae|oe|æ|œ")
_AMERICAN = (
    (re.compile("(tum|col|vap|behavi|flav|fav|lab|od|hum)our"), r"\1or"),
    (re.compile("([bcdglmnrtv]i)s(e|es|ed|ing|ation|ations)$"), r"\1z\2"),
    (re.compile("(ly)s(e|es|ed|ing)$"), r"\1z\2"),
    (re.compile("(cent|lit|met|fib|goit)re$"), r"\1er"),
    (re.compile("sulph"), "sulf"),
    (re.compile("aluminium"), "aluminum"),
)
_GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "κ": "kappa", "ω": "omega"}
_KEEPS_ITS_S = ("ss", "us", "is", "as", "os")


class Piece(NamedTuple):
    """A word of a text, or a break."""

    form: str
    """Normal form of the word, or `BREAK`."""
    raw: str
    """Original text of the piece."""
    start: int
    """Start offset in the text."""
    end: int
    """End offset in the text, exclusive."""


def pieces(text: str) -> Iterator[Piece]:
    """Yield the words of a text and the breaks between them, in order."""
    for match in _PIECE.finditer(text):
        raw = match[0]
        form = normal_word(raw) if raw[0].isalnum() else BREAK
        yield Piece(form, raw, match.start(), match.end())


def normal_term(term: str) -> tuple[str, ...]:
    """Return the normal forms of the words of a term, including breaks."""
    return tuple(piece.form for piece in pieces(term))


def wrapped(forms: Iterable[str]) -> str:
    """Return words joined so that a substring search matches whole words only.

    Each word has its own spaces on both sides, so that no match starts or ends inside a word, and
    two adjacent terms are both found.
    """
    return "".join(BREAK if form == BREAK else f" {form} " for form in forms)


@lru_cache(maxsize=200_000)
def normal_word(word: str) -> str:
    """Return `word` in lowercase and American spelling, singular, without accents or possessive.

    Ligatures and subscripts, as in text from a PDF, become plain characters, and a single Greek
    letter its name.

    The result need not be a real word; terms and texts only have to get the same form.
    """
    form = word.lower().replace("’", "'").replace("ʼ", "'")
    form = form.removesuffix("'s").replace("'", "")
    if not form.isascii():
        form = _FROM_PDF.sub(lambda found: unicodedata.normalize("NFKC", found[0]), form)
        form = _GREEK.get(form) or _ACCENT.sub("", unicodedata.normalize("NFD", form))
        form = unicodedata.normalize("NFC", form)  # syllables of Hangul
    if len(form) < 4 or not form.isalpha():
        return form
    return _american(_singular(form))


def _american(form: str) -> str:
    if len(form) > 4:
        form = _DIGRAPH.sub("e", form)
    for pattern, american in _AMERICAN:
        form = pattern.sub(american, form)
    return form


def _singular(form: str) -> str:
    if not form.endswith("s") or form.endswith(_KEEPS_ITS_S):
        return form
    if form.endswith("ies") and len(form) > 5:
        return form[:-3] + "y"
    if form.endswith(("noses", "boses", "yses", "stases")):
        return form[:-2] + "is"
    if form.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return form[:-2]
    return form[:-1]
