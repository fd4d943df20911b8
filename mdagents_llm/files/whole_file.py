"""Atomic file writes: a reader sees the old file or the new one, never a partial one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mdagents_llm.files import syncing
from mdagents_llm.files.private import make_private_folder, open_private
from mdagents_llm.files.regular_file import refuse_special


@contextmanager
def whole_file(
    path: Path, *, sync: bool = False, parents: bool = True, private: bool = False
) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the one at `path` when the block ends without an error.

    Args:
        path: Path of the file; its folder is created if missing.
        sync: Whether to flush the file to disk (fsync) before the replacement.
        parents: Whether to create missing parents of the folder as well.
        private: Whether only the owner can read the file, and its folder if it is created.

    Raises:
        OSError: The file cannot be written, or is a device, a pipe or a socket. After any error the
            old file is kept and no partial file is left behind.
    """
    refuse_special(path)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with _opened(temporary, parents=parents, private=private) as file:
            yield file
            if sync:
                file.flush()
                syncing.sync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _opened(path: Path, *, parents: bool, private: bool) -> BinaryIO:
    """Open a new file for writing; its folder is created if missing."""
    opener = open_private if private else None
    try:
        return open(path, "wb", opener=opener)
    except FileNotFoundError:
        if private:
            make_private_folder(path.parent)
        else:
            path.parent.mkdir(parents=parents, exist_ok=True)
        return open(path, "wb", opener=opener)
