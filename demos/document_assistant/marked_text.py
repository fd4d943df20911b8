"""Writes text with raised, lowered, struck-out and hidden parts as plain text."""

from __future__ import annotations

import re

# Control characters that XML does not allow, so that no document contains them.
RAISED = ("\x01", "\x02")
LOWERED = ("\x03", "\x04")
PLACES = {"superscript": RAISED, "subscript": LOWERED}
"""Name in Office files -> marks."""
STRUCK = ("\x05", "\x06")
HIDDEN_TEXT = "(hidden text, which is not read)"

_HIDDEN = "\x07"
_TO_PARENTHESES = str.maketrans("[]", "()")
_NO_GAP = re.compile("\x06\x05|\x02\x01|\x04\x03")
"""Where one part ends and the next part of the same kind begins: programs split words."""
_FRACTION = re.compile(
    "(?P<whole>[0-9] ?)?\x01(?P<over>[0-9]+)(?:\x02[/⁄∕]\x03|[/⁄∕]\x02\x03|\x02\x03[/⁄∕])"
    "(?P<under>[0-9]+)\x04"
)
_EXPONENT = re.compile(r"[-+−]?[0-9]+(?:\.[0-9]+)?|[i-nptx-z]|\(.*\)")
_NO_EXPONENT = re.compile(r"[0-9]*[-+−]|\[.*\]")
"""A charge (Ca2+) and the number of a source in brackets."""
_SOURCES = re.compile(r"[0-9]+(?:[-–][0-9]+)?(?:[,;] ?[0-9]+(?:[-–][0-9]+)?)+")
"""Numbers of sources, such as `1,2`."""
_NOTE = re.compile(r"\([0-9]+(?:[-–,;] ?[0-9]+)*\)")
"""Number of a note after a word or a unit, such as `(3)`."""
_EXPRESSION = re.compile(r"[0-9]|\w\s*[-+−*/×·]\s*\w")


def marked(text: str, *marks: tuple[str, str]) -> str:
    """Return a text between marks, which `plain_text` interprets."""
    for start, end in marks if text else ():
        text = f"{start}{text}{end}"
    return text


def hidden(text: str) -> str:
    """Return a mark in place of a hidden text; nothing for spaces."""
    return _HIDDEN if text.strip() else ""


def plain_text(text: str) -> str:
    """Return a marked text as plain text.

    A raised number or term gets a `^`, since 10⁹ is another number than 109, and a number that is
    lowered after a digit gets a `_`. Raised numbers of sources are written as `[1,2]`, typeset
    fractions as `1/2`, and struck-out text as `[struck out: 100 EUR]`. A note takes the place of
    hidden text.
    """
    text = _NO_GAP.sub("", _NO_GAP.sub("", text))
    text = _FRACTION.sub(_fraction, text)
    text = re.sub("(?P<letter>[^\\W\\d_])?\x01(?P<raised>[^\x01\x02]*)\x02", _raised, text)
    text = re.sub("(?<=[0-9])\x03([0-9]+)\x04", r"_\1", text)
    text = re.sub("\x05([^\x05\x06]*)\x06", lambda found: _struck(found[1]), text)
    text = re.sub(f"{_HIDDEN}+", HIDDEN_TEXT, text)
    return re.sub("[\x01-\x06]", "", text)


def _fraction(found: re.Match[str]) -> str:
    whole = f"{found['whole'].strip()} " if found["whole"] else ""
    return f"{whole}{found['over']}/{found['under']}"


def _raised(found: re.Match[str]) -> str:
    letter, text = found["letter"] or "", found["raised"]
    return letter + (text if letter and _NOTE.fullmatch(text.strip()) else _exponent(text))


def _exponent(text: str) -> str:
    core = text.strip()
    if _SOURCES.fullmatch(core):
        return text.replace(core, f"[{core}]")
    if _EXPONENT.fullmatch(core):
        return text.replace(core, f"^{core}")
    if _EXPRESSION.search(core) and not _NO_EXPONENT.fullmatch(core):
        return text.replace(core, f"^({core})")
    return text


def _struck(text: str) -> str:
    """Mark each line of a struck-out text, since sources are named by their lines.

    Its own brackets become parentheses, so that the mark ends where the text does.
    """
    text = text.translate(_TO_PARENTHESES)
    return re.sub(r"[^\s\x07](?:[^\n\x07]*[^\s\x07])?", r"[struck out: \g<0>]", text)
