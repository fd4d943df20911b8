"""Writes a file as a whole: a reader sees the earlier one or the new one, never a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mdagents_llm.files.private import make_private_folder, open_private


@contextmanager
def whole_file(
    path: Path, *, sync: bool = False, parents: bool = True, private: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that takes the place of the one at `path` when the block ends without an error.

    Args:
        path: The file; its folder is made if it is not there.
        sync: Whether it is on the disk, not only with the operating system, by then.
        parents: Whether the folders above its folder are made as well.
        private: Whether only its owner can read it; so it is with its folder, if that is made.

    Raises:
        OSError: The file cannot be written. After any error an earlier file is kept and no part of
            a new one is left.
    """
    if private:
        make_private_folder(path.parent)
    else:
        path.parent.mkdir(parents=parents, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb", opener=open_private if private else None) as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
