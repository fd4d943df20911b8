"""Reads questions from a Parquet file whose rows contain pictures, without holding the pictures.

Pictures are binary cells, or structs with a field `bytes` (Hugging Face's `Image`), alone or in
lists. In a record, the place of a picture in the file stands for its content. A binary cell may
also be a text: some programs write texts without saying that they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mdagents.datasets.field_names import is_option_or_answer, plain
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.files.json_text import compact_json

PLACE = "parquet"
"""Field of a record's picture with its place: name of the file, row, column, path in the cell."""

_AT_ONCE = 16
"""Number of rows that are read at once."""
_KEPT = 64 * 2**20
"""Maximum size of a column of a row group that is kept in memory, in bytes."""


def parquet_lines(path: Path) -> tuple[bytes, ...]:
    """Return each row as a line of JSON, with places instead of the contents of pictures.

    Raises:
        ConfigError: The file cannot be read as Parquet.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return _lines(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=2)  # a file is read several times: its numbering, its index
def _lines(path: Path, mtime: int, size: int) -> tuple[bytes, ...]:
    return tuple(compact_json(record) + b"\n" for record in parquet_records(path))


def parquet_records(path: Path, *, with_content: bool = False) -> Iterator[dict[str, Any]]:
    """Yield each row as JSON types, a few rows in memory at a time.

    Args:
        path: Path of the file.
        with_content: Whether a picture is its content, as bytes, instead of its place.

    Raises:
        ConfigError: The file cannot be read as Parquet, or has two columns with the same name that
            are part of a question. Of two others, the last one counts.
    """
    with _opened(path) as file:
        names = file.schema_arrow.names
        if twice := next((name for name in names if names.count(name) > 1 and _asks(name)), None):
            raise ConfigError(f"{path} has two columns '{twice}'; leave one of them out")
        number = 0
        for batch in file.iter_batches(batch_size=_AT_ONCE):
            for row in _rows(batch, path):
                places = {name: f"{path.name}/{number}/{quote(name, safe='')}" for name in row}
                yield {
                    name: _plain(cell, None if with_content else places[name])
                    for name, cell in row.items()
                }
                number += 1


def _asks(name: str) -> bool:
    """Return whether a column is named like a question, its options, answer or pictures."""
    named = plain(name)
    is_question = named in ("question", "options", "choices", "cop", "finaldecision")
    return is_question or is_option_or_answer(name) or "image" in named


def _rows(batch: Any, path: Path) -> Iterator[dict[str, Any]]:
    """Return the rows of a batch.

    Raises:
        ConfigError: A cell has no equivalent in Python, such as a date after the year 9999.
    """
    names, columns = batch.schema.names, []
    for name, column in zip(names, batch.columns, strict=True):
        try:
            columns.append(column.to_pylist(maps_as_pydicts="strict"))
        except (ValueError, OverflowError, LookupError) as error:
            raise ConfigError(
                f"{path} has a cell in column '{name}' that cannot be read "
                f"({_first_line(error)}); leave this column out, or write it as text"
            ) from None
    return (dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))


def read_picture(path: Path, place: str) -> bytes:
    """Return the content of a picture; empty if there is none.

    Args:
        path: Path of the file.
        place: Place of the picture as in its record, without the name of the file.

    Raises:
        ConfigError: The file cannot be read, or has no such place.
    """
    row, column, *within = map(unquote, place.split("/"))
    try:
        stat = path.stat()
        cell = _cell(path, (stat.st_mtime_ns, stat.st_size), int(row), column)
        for key in within:
            cell = cell[int(key)] if isinstance(cell, list) else cell[key]
        if isinstance(cell, dict):
            cell = cell.get("bytes")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError):
        raise ConfigError(f"{path} has no picture at {place}") from None
    return cell if isinstance(cell, bytes) else b""


def _cell(path: Path, stamp: tuple[int, int], row: int, column: str) -> Any:
    with _opened(path) as file:
        group = 0
        while row >= (rows := file.metadata.row_group(group).num_rows):
            row -= rows
            group += 1
        about = file.metadata.row_group(group)
        size = sum(
            about.column(number).total_uncompressed_size
            for number in range(about.num_columns)
            if about.column(number).path_in_schema.split(".")[0] == column
        )
        if size <= _KEPT:
            return _column(path, stamp, group, column)[row].as_py(maps_as_pydicts="strict")
        for batch in file.iter_batches(_AT_ONCE, row_groups=[group], columns=[column]):
            if row < batch.num_rows:
                return batch.column(0)[row].as_py(maps_as_pydicts="strict")
            row -= batch.num_rows
    raise IndexError(row)


@lru_cache(maxsize=4)
def _column(path: Path, stamp: tuple[int, int], group: int, column: str) -> Any:
    with _opened(path) as file:
        return file.read_row_group(group, columns=[column]).column(0)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with needs_extra("data", "a Parquet file"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{path} cannot be read as Parquet: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return (str(error).splitlines() or ["?"])[0]


def _plain(cell: Any, place: str | None) -> Any:
    """Return a cell as JSON types, with the places of pictures; None as place keeps them."""
    if isinstance(cell, bytes):
        if (text := _text(cell)) is not None:
            return text or None
        return cell if place is None else {PLACE: place}
    if isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes):
        others = {name: _plain(one, place and "") for name, one in cell.items() if name != "bytes"}
        if place is None:
            return {**others, "bytes": cell["bytes"]}
        return {**others, PLACE: place} if cell["bytes"] else others
    if isinstance(cell, dict):
        return {
            str(_plain(name, None)): _plain(one, place and f"{place}/{quote(str(name), safe='')}")
            for name, one in cell.items()
        }
    if isinstance(cell, list):
        return [_plain(one, place and f"{place}/{number}") for number, one in enumerate(cell)]
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return cell if isinstance(cell, str | int | bool | None) else str(cell)


def _text(content: bytes) -> str | None:
    """Return the text in UTF-8 that a binary cell holds; None for a picture."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
