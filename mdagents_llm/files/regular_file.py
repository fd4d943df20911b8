"""Opens regular files only: a pipe, a socket or a device at a path is an error, never a wait."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# A pipe without a writer would block the process, and a terminal could become its own.
_WITHOUT_WAITING = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
)


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a file and return its descriptor; what was opened is checked, so that nothing can race.

    Args:
        path: The file, or a link to one.
        flags: Of `os.open`.
        mode: Mode of a file that is made, before the umask.

    Raises:
        OSError: The file cannot be opened, or is not a regular file.
    """
    try:
        opened = os.open(path, flags | _WITHOUT_WAITING, mode)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR):  # ENXIO: a socket, a pipe nobody reads
            raise _no_file(path, is_folder=error.errno == errno.EISDIR) from error
        raise
    kind = os.fstat(opened).st_mode
    if stat.S_ISREG(kind):
        return opened
    os.close(opened)
    raise _no_file(path, is_folder=stat.S_ISDIR(kind))


def _no_file(path: Path, *, is_folder: bool) -> OSError:
    if is_folder:
        return IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
    return OSError(errno.EINVAL, "not a regular file", str(path))


def regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: See `open_regular`.
    """
    return os.fdopen(open_regular(path), "rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: See `open_regular`.
    """
    with regular_file(path) as file:
        return file.read()
