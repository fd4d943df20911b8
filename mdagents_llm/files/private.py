"""Files and folders that only their owner can read: what patients write, and what is said of it.

They are made with their mode, so that there is no moment at which others could open them. On
Windows modes have no effect; there the folders of a user are closed to other users.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from mdagents_llm.files.regular_file import open_regular

_FILE, _FOLDER = 0o600, 0o700


def open_private(path: str | Path, flags: int) -> int:
    """Open a regular file that only its owner can read: an `opener` of `open`.

    One that others can read is closed to them.

    Raises:
        OSError: The file cannot be opened.
    """
    file = open_regular(Path(path), flags, _FILE)
    tighten(Path(path))
    return file


def make_private_file(path: Path, *, tightens: bool = True) -> None:
    """Make an empty file that only its owner can read, if none is there.

    It opens no file that is there: a database that this process has open would lose its locks.

    Args:
        path: The file.
        tightens: Whether one that is there and that others can read is closed to them.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE))
        path.chmod(_FILE)  # whatever the umask has taken from it
    except FileExistsError:
        if tightens:
            tighten(path)


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner can enter, if none is there; those above are as usual.

    Raises:
        OSError: It cannot be made.
    """
    try:
        path.mkdir(_FOLDER)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        make_private_folder(path)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    path.chmod(_FOLDER)  # whatever the umask has taken from it


def tighten(path: Path) -> None:
    """Close a file or a folder to all but its owner; one of another owner stays as it is.

    Raises:
        OSError: There is none.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        with suppress(PermissionError):
            path.chmod(mode & 0o700)
