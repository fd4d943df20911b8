"""Files and folders that only their owner can read, for patient data and the replies to it.

They are created with their final mode, so that others can never open them in between. On Windows
modes have no effect; there a user's folders are closed to other users.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from mdagents_llm.files.regular_file import open_regular

_FILE, _FOLDER = 0o600, 0o700


def open_private(path: str | Path, flags: int) -> int:
    """Open a regular file that only its owner can read; for use as the `opener` of `open`.

    An existing file that others can read is closed to them.

    Raises:
        OSError: The file cannot be opened.
    """
    file = open_regular(Path(path), flags, _FILE)
    tighten(Path(path))
    return file


def make_private_file(path: Path, *, tightens: bool = True) -> None:
    """Create an empty file that only its owner can read, unless it exists.

    An existing file is not opened: a database that this process has open would lose its locks.

    Args:
        path: Path of the file.
        tightens: Whether an existing file that others can read is closed to them.

    Raises:
        OSError: The file cannot be created.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE))
        path.chmod(_FILE)  # restores bits that the umask removed
    except FileExistsError:
        if tightens:
            tighten(path)


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner can enter, unless it exists.

    Missing parent folders are created with the default mode.

    Raises:
        OSError: The folder cannot be created.
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
    path.chmod(_FOLDER)  # restores bits that the umask removed


def tighten(path: Path) -> None:
    """Make a file or folder accessible to its owner only; one of another user is left unchanged.

    Raises:
        OSError: The path does not exist.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        with suppress(PermissionError):
            path.chmod(mode & 0o700)
