"""Reading and writing whole files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exaid_core.trace.files import MAX_LINE_BYTES, RecordError, read_records
from infra.errors import ConfigError, StorageError
from infra.files.whole_file import whole_file


def records_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of the line from 1, object) of each record of a file.

    Args:
        path: `.jsonl` or `.jsonl.gz` for a record a line; `.json` for one record in all.

    Raises:
        RecordError: The file cannot be read as such.
    """
    if path.suffix != ".json":
        yield from read_records(path)
        return
    try:
        if path.stat().st_size > MAX_LINE_BYTES:
            raise RecordError(path, 1, f"longer than {MAX_LINE_BYTES} bytes")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(path, 1, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(path, 1, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordError(path, 1, "not a JSON object")
    yield 1, content


def file_hash(path: Path) -> str:
    """Return `sha256:` and the hash of a file's bytes.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, with its folder; a reader sees the old one or the new one.

    Raises:
        StorageError: The file cannot be written.
    """
    try:
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
