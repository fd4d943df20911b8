"""Reads the records of a question file: JSON Lines, one JSON value, a table (CSV) or Parquet."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from mdagents.datasets.parquet_rows import parquet_lines
from mdagents.datasets.pictures.question_picture import LARGEST_FILE
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.files.regular_file import regular_file
from mdagents_llm.files.stand_ins import LONGEST_START, stand_in

ENDINGS = (".jsonl", ".json", ".csv", ".parquet")
"""File name extensions of question files, in lower case."""

_DELIMITERS = ",;\t"
_NAMED_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?[,;\t]*\s*', re.IGNORECASE)
_LARGEST_CELL = 2 * LARGEST_FILE  # characters
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def ending(path: Path) -> str:
    """Return the extension of a file name, with its dot and in lower case."""
    return path.suffix.lower()


def read_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (offset in bytes, line number from 1, line) for each line of a file.

    For a list, an object with a record for each id, or a table, yield each record as a JSON line,
    with its index from 0 as the offset.

    Raises:
        ConfigError: The file cannot be read.
    """
    if ending(path) != ".csv":
        _refuse_stand_in(path)
    if has_lines(path):
        yield from _lines(path)
        return
    if ending(path) == ".parquet":
        for number, line in enumerate(parquet_lines(path)):
            yield number, number + 1, line
        return
    records = table_rows(path) if ending(path) == ".csv" else _elements(path)
    for place, (number, record) in enumerate(records):
        text = json.dumps(record, ensure_ascii=False)
        yield place, number, text.encode(errors="surrogatepass") + b"\n"


def place(path: Path, number: int) -> str:
    """Return the location of a record for error messages, given its number from `read_lines`."""
    return f"{path} {_UNITS.get(ending(path), 'line')} {number}"


_UNITS = {".json": "record", ".parquet": "row"}


def has_lines(path: Path) -> bool:
    """Return whether each line of a file is a record that can be read on its own.

    Raises:
        ConfigError: The file cannot be read.
    """
    if ending(path) != ".json":
        return ending(path) not in (".csv", ".parquet")
    with _reading(path), regular_file(path) as file:
        written = (line for line in file if line.removeprefix(BOM_UTF8).strip())
        first, second = next(written, b"{}"), next(written, b"")
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):  # of a list, of an object, or of a broken record
        return first.lstrip().startswith(b"{") and second.lstrip().startswith(b"{")
    return isinstance(record, dict) and not _by_id(record)


def _by_id(content: object) -> bool:
    """Return whether a value is an object of records, such as PubMedQA's `ori_pqal.json`."""
    if not isinstance(content, dict) or not content:
        return False
    return all(isinstance(record, dict) for record in content.values())


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    with _reading(path), regular_file(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.removeprefix(BOM_UTF8).lstrip().startswith(b"["):
                raise ConfigError(f"{path} begins with '[': a JSON list must be named .json")
            yield offset, number, line
            offset += len(line)


def _elements(path: Path) -> Iterator[tuple[int, object]]:
    with _reading(path):
        raw = path.read_bytes()
    content = load_json(raw, str(path))
    if _by_id(content):
        content = [{"id": id_, **record} for id_, record in content.items()]
    if not isinstance(content, list):
        raise ConfigError(
            f"{path} must hold a list of questions, or an object with one for each id"
        )
    yield from enumerate(content, start=1)


def table_rows(path: Path, required: Collection[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, column -> text) for each row of a table with a header.

    Unnamed columns and rows without any text are skipped. The separator is taken from a first line
    such as `sep=;`, as written by Excel; otherwise it is whichever of comma, semicolon and tab is
    most frequent in the header.

    Args:
        path: Path of the table.
        required: Names of columns that the header must have.

    Raises:
        ConfigError: The file is not such a table.
    """
    with table(path) as file:
        lines = iter(file)
        header, before, named = next(lines, ""), 0, None
        while header.isspace() or _NAMED_SEPARATOR.fullmatch(header):
            named = _NAMED_SEPARATOR.fullmatch(header) or named
            header, before = next(lines, ""), before + 1
        delimiter = named[1] if named else max(_DELIMITERS, key=header.count)
        rows = rows_of_cells(path, chain([header], lines), delimiter, before)
        _, names = next(rows, (0, []))
        if lacking := [name for name in required if name not in names]:
            raise ConfigError(
                f"{path}: its first line must name the columns {', '.join(required)}; it has no "
                f"{lacking[0]}"
            )
        if twice := next((name for name in names if name and names.count(name) > 1), None):
            raise ConfigError(f"{path} has two columns '{twice}'; leave one of them out")
        for number, cells in rows:
            if any(cells[len(names) :]):
                raise ConfigError(
                    f"{path} line {number} has more cells than there are columns; put a text with "
                    "the separator in it between quotation marks"
                )
            if any(cells):
                yield (
                    number,
                    {name: text for name, text in zip(names, cells, strict=False) if name},
                )


def rows_of_cells(
    path: Path, lines: Iterable[str], delimiter: str, before: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) for each row of a table that is not empty.

    Args:
        path: Path of the table, for error messages.
        lines: Lines of the table, the first of which has as many cells as there are columns.
        delimiter: Separator of the cells.
        before: Number of lines before these.

    Raises:
        ConfigError: A cell takes in the rows below it, because its quotation mark is not closed.
    """
    # A cell may contain a picture in Base64; Python's own limit is 128 KB, for all readers.
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
    read: list[str] = []
    number = first = before + 1
    columns = 0
    for cells in csv.reader(_noted(lines, read), delimiter=delimiter):
        columns = columns or len(cells)
        if len(read) > 1 and _takes_in_rows(read, delimiter, columns):
            raise ConfigError(
                f"{path} lines {first} to {first + len(read) - 1} would be one row, as a "
                "quotation mark is not closed in its cell; close it, and double those within a text"
            )
        first += len(read)
        read.clear()
        if cells:
            yield number, cells
            number = first  # an empty line counts to the row below it


def _noted(lines: Iterable[str], read: list[str]) -> Iterator[str]:
    for line in lines:
        read.append(line)
        yield line


def _takes_in_rows(lines: list[str], delimiter: str, columns: int) -> bool:
    """Return whether the lines of one row are rows of their own, but for stray quotation marks.

    If the marks are at the edges of cells, the row is well formed: then each line has as many cells
    as there are columns, and none begins with a space, as the parts of a sentence do.
    """
    space_at_edge = re.compile(rf'" +(?=[{delimiter}\r\n]|\Z)')
    try:
        for _ in csv.reader(
            (space_at_edge.sub('"', line) for line in lines), delimiter=delimiter, strict=True
        ):
            pass
    except csv.Error:
        return True
    parts = (line.rstrip("\r\n").split(delimiter) for line in lines)
    return columns > 1 and all(
        len(cells) == columns and not any(cell[:1].isspace() for cell in cells) for cells in parts
    )


@contextmanager
def table(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a table in UTF-8 or in UTF-16, which Excel uses for "Unicode text".

    Raises:
        ConfigError: The file cannot be read as a table.
    """
    _refuse_stand_in(path)
    with _reading(path), regular_file(path) as start:
        encoding = "utf-16" if start.read(2) in _UTF_16 else "utf-8-sig"
    with _reading(path), path.open(encoding=encoding, newline="") as file:
        try:
            yield file
        except UnicodeError:
            raise ConfigError(f"{path} is not UTF-8 text; save it as UTF-8") from None
        except csv.Error as error:
            raise ConfigError(f"{path} cannot be read as a table: {error}") from None


def _refuse_stand_in(path: Path) -> None:
    with _reading(path), regular_file(path) as file:
        if what := stand_in(file.read(LONGEST_START)):
            raise ConfigError(f"{path} is {what}")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
