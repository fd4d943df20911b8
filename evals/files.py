"""Hash and atomically write whole files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import replace_file, writing


def file_hash(path: Path) -> str:
    """Return `sha256:` followed by the hash of a file's bytes.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def is_read_only(folder: Path) -> bool:
    """Return whether a folder exists and is not to be written to, even by root, who could."""
    return folder.is_dir() and not (os.access(folder, os.W_OK) and folder.stat().st_mode & 0o222)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, creating its folder; readers see the old or the new content.

    Raises:
        StorageError: The file cannot be written.
    """
    with writing(path):
        replace_file(path, content)
