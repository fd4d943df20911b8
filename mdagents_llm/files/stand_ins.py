"""Recognizes content that stands for another file: a pointer of Git LFS, an archive, a web page."""

from __future__ import annotations

_POINTER = b"version https://git-lfs"
_PAGE = "a web page; download the file itself"
_KINDS = {
    _POINTER: "a Git LFS pointer; fetch the file with git lfs pull",
    b"\x1f\x8b": "compressed with gzip; unpack it (gunzip)",
    b"pk\x03\x04": "a ZIP archive or a workbook; unpack it, or save its table as .csv",
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
}
"""Start in lower case -> what the content is, and what to do."""

LONGEST_START = 64
"""Number of bytes that tell."""


def is_pointer(start: bytes) -> bool:
    """Return whether content is a pointer of Git LFS, given its first bytes."""
    return start.startswith(_POINTER)


def stand_in(start: bytes) -> str:
    """Return what content is that stands for a file of records, and what to do; else empty.

    Args:
        start: First `LONGEST_START` bytes.
    """
    plain = start.lstrip().lower()
    return next((what for kind, what in _KINDS.items() if plain.startswith(kind)), "")
