"""Files of lines that are only ever appended to, and never show half a line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_BLOCK = 65_536  # bytes


class LineLog:
    """Appends whole lines. A torn last line, left by a kill, is dropped when the file is opened.

    Args:
        path: The file; made if it is not there.
        sync: Whether a line is on disk, not only with the operating system, when `append`
            returns: a kill loses nothing either way, a power cut only with True.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.path = path
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = _end_of_last_line(self._file)
        os.ftruncate(self._file, self._size)

    def append(self, line: bytes) -> None:
        """Write a line, given without its line break.

        Raises:
            OSError: It cannot be written; no part of it is left in the file.
        """
        data = line + b"\n"
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            if self._sync:
                os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (offset in bytes, line with its line break) of a file; none when it is missing.

    A torn last line, left by a kill, is left out.

    Raises:
        OSError: The file cannot be read.
    """
    if not path.is_file():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield offset, line
            offset += len(line)


def lines_at(path: Path, offsets: Iterable[int]) -> Iterator[bytes]:
    """Yield the lines that begin at `offsets`, in that order.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        for offset in offsets:
            file.seek(offset)
            yield file.readline()


def _end_of_last_line(file: int) -> int:
    end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
