"""A log file that rotates monthly; several processes may write to it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import filelock

from mdagents_llm.errors import StorageError
from mdagents_llm.files.private import make_private_folder, open_private, tighten

_MONTH = re.compile(r"\d{4}-\d{2}(?=-\d{2}T)")


class MonthlyLog:
    """Appends lines to a file, which is renamed to `NAME.YYYY-MM.log` when a new month begins.

    Each line is written completely or not at all, even on a full disk or after a line that a killed
    process left unfinished. A file of an earlier month is never replaced: if it already exists,
    because a clock was set back, the next one is `NAME.YYYY-MM.2.log`.

    Args:
        file: Path of the log. Its folder is created; only the owner can read the file.
        now: Clock in UTC.
    """

    def __init__(self, file: Path, now: Callable[[], datetime]) -> None:
        self._file = file
        self._now = now
        self._lock = filelock.FileLock(file.with_name(f".{file.name}.lock"), timeout=10)

    def write(self, line: str) -> None:
        """Append a line, prefixed with the UTC time to the second.

        Raises:
            StorageError: The line cannot be written. The caller must then not act, because nothing
                may happen that the audit log does not record.
        """
        try:
            make_private_folder(self._file.parent)
            with self._lock:
                at = self._now()  # read under the lock: another process may have rotated the file
                self._begin_month(f"{at:%Y-%m}")
                self._append(f"{at:%Y-%m-%dT%H:%M:%SZ} {line}\n".encode(errors="backslashreplace"))
        except OSError as error:
            why = error.strerror or "another process keeps it"
            raise StorageError(f"{self._file} cannot be written: {why}") from error

    def _begin_month(self, month: str) -> None:
        try:
            with self._file.open(encoding="utf-8", errors="replace") as log:
                earlier = next(filter(None, (_MONTH.match(line) for line in log)), None)
        except FileNotFoundError:
            return
        if earlier is None or earlier[0] == month:
            return
        kept = self._file.with_name(f"{self._file.stem}.{earlier[0]}{self._file.suffix}")
        number = 1
        while kept.exists():
            number += 1
            kept = kept.with_name(f"{self._file.stem}.{earlier[0]}.{number}{self._file.suffix}")
        self._file.rename(kept)
        tighten(kept)

    def _append(self, line: bytes) -> None:
        with open(self._file, "ab+", buffering=0, opener=open_private) as log:
            end = log.seek(0, os.SEEK_END)
            if end:
                log.seek(end - 1)
                if log.read(1) != b"\n":
                    line = b"\n" + line
            try:
                if log.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                log.truncate(end)
                raise
