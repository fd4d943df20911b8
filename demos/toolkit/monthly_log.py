"""A log that begins a new file each month; several processes may write to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import filelock

from infra.errors import StorageError


class MonthlyLog:
    """Appends lines to a file; at a new month the earlier lines go to `NAME.YYYY-MM.log`.

    Args:
        file: The file; its folder is made.
        now: The clock, UTC.
    """

    def __init__(self, file: Path, now: Callable[[], datetime]) -> None:
        self._file = file
        self._now = now
        self._lock = filelock.FileLock(file.with_name(f".{file.name}.lock"), timeout=10)

    def write(self, line: str) -> None:
        """Append a line that begins with the time, in UTC to the second.

        Raises:
            StorageError: It cannot be written: what an audit does not hold must not happen.
        """
        at = self._now()
        told = f"{at:%Y-%m-%dT%H:%M:%SZ} {line}\n"
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._lock, self._file.open("a+", encoding="utf-8") as log:
                log.seek(0)
                month = log.read(len("YYYY-MM"))
                if month and month != f"{at:%Y-%m}":
                    self._file.rename(self._file.with_name(f"{self._file.stem}.{month}.log"))
                    self._file.write_text(told, encoding="utf-8")
                else:
                    log.write(told)
        except (OSError, filelock.Timeout) as error:
            why = getattr(error, "strerror", None) or "another process keeps it"
            raise StorageError(f"{self._file} cannot be written: {why}") from error
