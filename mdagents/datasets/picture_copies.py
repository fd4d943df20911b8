"""Copies the pictures of questions that are written to another file, so that their paths hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdagents.datasets.dataset import Dataset, IndexEntry, folder_of
from mdagents.datasets.parquet_rows import PLACE
from mdagents.datasets.pictures.places import IMAGES, content_name, find_in_parquet
from mdagents.datasets.record_lines import ending
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.files.whole_file import replace_file


def copy_pictures(dataset: Dataset, entries: Sequence[IndexEntry], folder: Path) -> int:
    """Copy the files with the pictures of questions to the folder of another question file.

    A file keeps its path relative to the folder of its data set; an archive is copied as a whole.
    Pictures of a Parquet file become files (`with_copies`).

    Args:
        dataset: Data set of the questions.
        entries: Questions that are written.
        folder: Folder of the other file.

    Returns:
        Number of copied files; 0 if both files have the same folder.

    Raises:
        ConfigError: A file cannot be read or written, or another one is in its place.
    """
    source = folder_of(dataset.path)
    if source.resolve() == folder.resolve():
        return 0
    files = {
        picture.file
        for entry in entries
        if entry.pictures
        for picture in dataset.load(entry).pictures
        if picture.file is not None and ending(picture.file) != ".parquet"
    }
    for file in sorted(files):
        try:
            content = read_regular(file)
        except OSError as error:
            raise ConfigError(f"cannot copy {file}: {error.strerror}") from error
        _write(folder / file.relative_to(source), content)
    return len(files)


def with_copies(line: str, dataset: Dataset, folder: Path, *, write: bool = True) -> str:
    """Return a record of a Parquet file whose pictures are files in the folder `images`.

    Args:
        line: Record as JSON.
        dataset: Data set of the record.
        folder: Folder of the file that the record is written to.
        write: Whether to write the pictures.

    Raises:
        ConfigError: A picture cannot be read or written.
    """
    source = folder_of(dataset.path)
    if ending(dataset.path) != ".parquet" or source.resolve() == folder.resolve():
        return line

    def copied(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(copied, value))
        if not isinstance(value, dict):
            return value
        if not isinstance(value.get(PLACE), str):
            return {name: copied(one) for name, one in value.items()}
        content = find_in_parquet(value[PLACE], source).read()
        path = f"{IMAGES}/{content_name(content)}"
        if write:
            _write(folder / path, content)
        return {name: one for name, one in value.items() if name != PLACE} | {"path": path}

    return json.dumps(copied(json.loads(line)), ensure_ascii=False) + "\n"


def _write(path: Path, content: bytes) -> None:
    try:
        if path.exists():
            if read_regular(path) != content:
                raise ConfigError(f"another picture is at {path}; choose an empty folder")
            return
        replace_file(path, content)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
