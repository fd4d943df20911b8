"""Opens regular files only: a pipe, a socket or a device at a path is an error, never a wait."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# A pipe without a writer would block the process; a terminal could become its controlling terminal.
_WITHOUT_WAITING = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
)


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor.

    The check is on the opened descriptor, so that it cannot race with a change of the path.

    Args:
        path: Path of the file, or of a link to it.
        flags: Flags for `os.open`.
        mode: Mode of a newly created file, before the umask.

    Raises:
        OSError: The file cannot be opened, or is not a regular file.
    """
    try:
        opened = os.open(path, flags | _WITHOUT_WAITING, mode)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR):  # ENXIO: a socket or a pipe without reader
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


def refuse_special(path: Path) -> None:
    """Refuse to replace a device, a pipe or a socket by a file; a folder cannot be replaced anyway.

    Raises:
        OSError: The path is one of these, or a link to one.
    """
    status = status_of(path)
    if status is None:
        return  # no such file yet, or writing it will say why not
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise _no_file(path, is_folder=False)


def status_of(path: Path) -> os.stat_result | None:
    """Return the status of a file; None if there is none, or none any more."""
    try:
        return path.stat()
    except OSError:
        return None


def regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: The file cannot be opened, or is not a regular file.
    """
    return os.fdopen(open_regular(path), "rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    with regular_file(path) as file:
        return file.read()
