"""Append-only JSON Lines files that never expose a partial line; `jsonl` reads them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from pathlib import Path
from threading import Lock

from mdagents.records.jsonl import is_whole
from mdagents_llm.files.private import open_private
from mdagents_llm.files.regular_file import open_regular
from mdagents_llm.files.syncing import sync

_BLOCK = 65_536  # bytes


class LineLog:
    """Appends whole lines.

    When the file is opened, a torn last line, left by a kill, is dropped, and a whole record that
    lacks its line break gets one.

    Args:
        path: Path of the file; created if missing.
        syncs: Whether `append` calls fsync before it returns. A kill loses nothing either way, but
            lines survive a power failure only after an fsync; `synced` makes one for many lines.
        private: Whether only the owner can read the file.

    Raises:
        OSError: The file cannot be opened, or its last line break cannot be written.
    """

    def __init__(self, path: Path, *, syncs: bool, private: bool = False) -> None:
        self.path = path
        self._syncs = syncs
        opener = open_private if private else open_regular
        self._file = opener(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._size = self._on_disk = _end_of_last_line(self._file)
        tail = os.pread(self._file, os.fstat(self._file).st_size - self._size, self._size)
        self._syncing: asyncio.Future[None] | None = None
        self._is_open = True
        self._opening = Lock()  # held by a thread that syncs, so that the file stays open
        if is_whole(tail):
            self._size += len(tail) + os.write(self._file, b"\n")
        else:
            os.ftruncate(self._file, self._size)

    def append(self, line: bytes) -> None:
        """Write a line, given without its line break.

        Raises:
            OSError: The line cannot be written; no part of it is left in the file.
        """
        if not self._is_open:  # the descriptor may be another file's by now
            raise OSError(errno.EBADF, "the file is closed", str(self.path))
        data = line + b"\n"
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            if self._syncs:
                sync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    async def synced(self) -> None:
        """Wait until the lines appended so far survive a power failure.

        Callers that wait at the same time share one fsync, made in a thread.

        Raises:
            OSError: The file cannot be synced.
        """
        size = self._size
        while self._on_disk < size:
            if self._syncing is None:
                self._syncing = asyncio.ensure_future(self._sync_in_a_thread())
                self._syncing.add_done_callback(_retrieved)
            await asyncio.shield(self._syncing)

    async def _sync_in_a_thread(self) -> None:
        try:
            await asyncio.to_thread(self.sync)
        finally:
            self._syncing = None

    def sync(self) -> None:
        """Call fsync, unless the file is closed.

        Raises:
            OSError: The file cannot be synced.
        """
        with self._opening:
            size = self._size
            if self._is_open and self._on_disk < size:
                sync(self._file)
                self._on_disk = size

    def is_in_place(self) -> bool:
        """Return whether the file is still at its path, neither moved nor removed."""
        try:
            return os.path.samestat(os.fstat(self._file), self.path.stat())
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; nothing happens if it is closed."""
        with self._opening:
            if self._is_open:
                self._is_open = False
                os.close(self._file)


def _retrieved(syncing: asyncio.Future[None]) -> None:
    """Retrieve an error that no caller waits for any more; the next sync raises it again."""
    if not syncing.cancelled():
        syncing.exception()


def _end_of_last_line(file: int) -> int:
    end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
