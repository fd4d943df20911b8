"""Reads the live feed of a run as it grows, from wherever the reader was."""

from __future__ import annotations

import os
from pathlib import Path

from mdagents.live.lines import FeedLine, decoded
from mdagents_llm.files.regular_file import regular_file


class FeedReader:
    """Reads `live.jsonl`, whose beginning may be left out and written anew at any time.

    Args:
        path: The file, which may be missing.
        after: The number of the last line that is known already.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        self._path = path
        self._last = after
        self._inode = 0
        self._offset = 0

    def read(self) -> list[FeedLine]:
        """Return the lines that were not read before; a torn last one is left for later."""
        try:
            with regular_file(self._path) as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._offset:
                    self._inode, self._offset = status.st_ino, 0
                file.seek(self._offset)
                content = file.read()
        except OSError:  # none, none yet, or no file
            return []
        end = content.rfind(b"\n") + 1
        self._offset += end
        found = [line for line in map(decoded, content[:end].split(b"\n")) if line is not None]
        found = [line for line in found if line.n > self._last]
        if found:
            self._last = found[-1].n
        return found
