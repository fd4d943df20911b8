"""The reason for which a reader refuses a file."""

from __future__ import annotations


class RefusedError(Exception):
    """The file is refused; the message continues a sentence that starts with the file's name."""
