"""Reads JSON Lines files, which `line_log` writes."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path

from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import regular_file

MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""Exceptions raised by parsing a line that is not JSON, or JSON of another shape."""


def damaged(path: Path, number: int, what: str, without: str) -> ConfigError:
    """Return the error for an unusable line, including how to recover from it.

    Args:
        path: Path of the file.
        number: Number of the line, from 1.
        what: Problem with the line; follows the line number in the message.
        without: Consequence of deleting the line.
    """
    return ConfigError(
        f"{path} line {number} {what}; delete that line (then {without}), or start with --fresh, "
        "which keeps this run under another name"
    )


def is_whole(tail: bytes) -> bool:
    """Return whether a last line without a line break is a whole record: a JSON object.

    An editor, a copy or a full disk may leave out the line break. Of an object, unlike a number, no
    beginning is JSON, so that a record which is still being written is never taken for a whole one.
    """
    try:
        return isinstance(json.loads(tail.removeprefix(BOM_UTF8)), dict)
    except MALFORMED:
        return False


def whole_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number from 1, offset in bytes, line with any line break); nothing without a file.

    Blank lines, a torn last line left by a kill, and a byte order mark are skipped.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        file = regular_file(path)
    except FileNotFoundError:
        return
    offset = 0
    with file:
        for number, line in enumerate(file, start=1):
            content = line.removeprefix(BOM_UTF8)
            if not content.isspace() and (line.endswith(b"\n") or is_whole(content)):
                yield number, offset + len(line) - len(content), content
            offset += len(line)


def lines_at(path: Path, offsets: Iterable[int]) -> Iterator[bytes]:
    """Yield the lines that begin at `offsets`, in that order.

    Raises:
        OSError: The file cannot be read.
    """
    with regular_file(path) as file:
        for offset in offsets:
            file.seek(offset)
            yield file.readline()


def number_of(path: Path, offset: int) -> int:
    """Return the number of the line that begins at `offset`, from 1.

    Raises:
        OSError: The file cannot be read.
    """
    with regular_file(path) as file:
        return 1 + file.read(offset).count(b"\n")
