"""Reads the live feed of a run as it grows, from the last position."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from mdagents.live.lines import FeedLine, decoded
from mdagents_llm.files.regular_file import regular_file


class FeedReader:
    """Reads `live.jsonl`, which may be rewritten without its beginning at any time.

    Args:
        path: File of the feed, which may be missing.
        after: Number of the last known line.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        self._path = path
        self._last = after
        self._inode = 0
        self._offset = 0

    def read(self) -> list[FeedLine]:
        """Return the unread lines; an incomplete last line is left for later."""
        try:
            with regular_file(self._path) as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._offset:
                    self._inode, self._offset = status.st_ino, 0
                start = self._offset
                found = self._lines(file)
                follows = bool(found) and found[0].n == self._last + 1
                if 0 < start < self._offset and not follows:
                    # A file that was rewritten twice may have the inode of the first.
                    self._offset = 0
                    found = self._lines(file)
        except OSError:  # removed, not yet written, or not a regular file
            return []
        found = [line for line in found if line.n > self._last]
        if found:
            self._last = found[-1].n
        return found

    def _lines(self, file: BinaryIO) -> list[FeedLine]:
        file.seek(self._offset)
        content = file.read()
        end = content.rfind(b"\n") + 1
        self._offset += end
        return [line for line in map(decoded, content[:end].split(b"\n")) if line is not None]
