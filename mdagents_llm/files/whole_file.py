"""Atomic file writes: a reader sees the old file or the new one, never a partial one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from mdagents_llm.errors import BenchError, StorageError
from mdagents_llm.files import syncing
from mdagents_llm.files.private import make_private_folder, open_private
from mdagents_llm.files.regular_file import refuse_special

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


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
    with (
        _replacing(path, sync=sync, parents=parents, private=private) as descriptor,
        open(descriptor, "wb", closefd=False) as file,
    ):
        yield file


def replace_file(
    path: Path,
    content: bytes,
    *,
    sync: bool = False,
    parents: bool = True,
    private: bool = False,
) -> None:
    """Write a file of known content, with the arguments and errors of `whole_file`.

    A thread beside the event loop hands the interpreter over at each call into the system, and the
    loop waits to get it back: this makes half as many as a buffered file.
    """
    with _replacing(path, sync=sync, parents=parents, private=private) as descriptor:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:] if written else content)


@contextmanager
def writing(path: Path, error: type[BenchError] = StorageError) -> Iterator[None]:
    """Raise an `OSError` of the block as an error that says that `path` cannot be written."""
    try:
        yield
    except OSError as reason:
        raise error(f"cannot write {path}: {reason.strerror or reason}") from reason


@contextmanager
def _replacing(path: Path, *, sync: bool, parents: bool, private: bool) -> Iterator[int]:
    """Open a temporary file that replaces the one at `path`; the value is its descriptor."""
    refuse_special(path)
    if not path.name:  # "." or "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        descriptor = _opened(temporary, parents=parents, private=private)
        try:
            yield descriptor
            if sync:
                syncing.sync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _opened(path: Path, *, parents: bool, private: bool) -> int:
    """Open a new file for writing; its folder is created if missing."""
    opener = open_private if private else partial(os.open, mode=0o666)
    try:
        return opener(path, _NEW)
    except FileNotFoundError:
        if private:
            make_private_folder(path.parent)
        else:
            path.parent.mkdir(parents=parents, exist_ok=True)
        return opener(path, _NEW)
