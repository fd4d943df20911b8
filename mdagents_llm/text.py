"""Text cleanup for readers, for UTF-8 output and for single lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_BETWEEN_WORDS = re.compile(r"[\W_]+")
_LINE_BREAK = re.compile("\r\n?|[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
_SURROGATES = "\ud800-\udfff"
_TAGS = "\U000e0000-\U000e0fff"  # tags and variation selectors: both can carry a hidden message
_UNSEEN = re.compile(f"[{_CONTROL}{_BIDI}{_INVISIBLE}{_SURROGATES}{_TAGS}]")


def well_formed(text: str) -> str:
    """Return `text` with U+FFFD for each lone surrogate, which JSON can hold and UTF-8 cannot.

    Raises:
        AttributeError: `text` is not a string.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def utf8(text: str) -> bytes:
    """Return the bytes of a text in UTF-8, with U+FFFD for each lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def printable(text: str) -> str:
    """Return `text` with a space for each non-printable character, such as a line break."""
    return "".join(c if c.isprintable() else " " for c in text)


def clean(text: str) -> str:
    """Return `text` without characters that a reader cannot see.

    This removes control characters except newline and tab, bidirectional controls, zero-width and
    other invisible characters, lone surrogates, and tag characters (U+E0000 and up). Every kind of
    line break becomes a newline, so that words stay apart.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", _LINE_BREAK.sub("\n", text))


def one_line(text: str) -> str:
    """Return `text` cleaned and on one line, with single spaces between its words."""
    return " ".join(clean(text).split())


def single_spaced(text: str) -> str:
    """Return a text without white space at its ends, and with single spaces between its words."""
    if text.isprintable() and "  " not in text:  # no other white space; faster, and nearly always
        return text.strip(" ")
    return " ".join(text.split())


def in_lower_case(text: str) -> str:
    """Return a text in lower case with the same length, so that places in it stay the same.

    A pattern is several times faster on such a text than with `re.IGNORECASE` on the original.
    """
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def between(before: str, after: str) -> str:
    """Return what separates two parts of a reply: a line break unless punctuation or space does.

    Parts may be sentences of their own, or pieces of one sentence with a citation each.
    """
    if not before or before[-1].isspace() or before[-1] in "([{":
        return ""
    return "" if after[:1].isspace() or after[:1] in ".,;:!?)]}%" else "\n"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 question`, `1,273 questions`, `2 summaries`.

    Args:
        count: Number of things.
        noun: Name of one thing.
        plural: Name of several; empty: the noun with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def first_names(names: Sequence[object], most: int) -> str:
    """Return the first names of a list on one line, and an ellipsis if there are more.

    Args:
        names: Names, or numbers.
        most: Number of names that are shown.
    """
    shown = ", ".join(map(str, names[:most]))
    return f"{shown}, …" if len(names) > most else shown


def spelled_as(value: object, names: Iterable[str]) -> object:
    """Return an object of JSON whose keys have the spelling of `names`.

    A key may differ from its name in case and in all that is no letter or digit (`Key Findings`,
    `keyFindings`, `**Status/Action:**`). Two keys of the same name are left as they are.
    """
    if not isinstance(value, dict):
        return value
    spellings = {_letters(name): name for name in names}
    letters = [_letters(str(key)) for key in value]
    count = Counter(letters)
    return {
        spellings.get(of, key) if count[of] == 1 else key: content
        for of, (key, content) in zip(letters, value.items(), strict=True)
    }


def _letters(name: str) -> str:
    return _BETWEEN_WORDS.sub("", name).casefold()
