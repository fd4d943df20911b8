"""Text cleanup for UTF-8 output and for single lines."""

from __future__ import annotations


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


def printable(text: str) -> str:
    """Return `text` with a space for each non-printable character, such as a line break."""
    return "".join(c if c.isprintable() else " " for c in text)
