"""Reads and writes files of records; equal records give equal bytes."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from exaid_core.trace.run_records import Determinism
from mdagents_llm.errors import BenchError
from mdagents_llm.files.regular_file import regular_file
from mdagents_llm.files.whole_file import replace_file, writing
from mdagents_llm.text import printable, utf8, well_formed
from mdagents_llm.validation import first_problem

MAX_LINE_BYTES = 8 * 1024 * 1024
_GZIP_LEVEL = 6
_GZIP_HEADER = bytes.fromhex("1f8b 08 00 00000000 00 ff")  # no flags, time 0, unknown system
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # an escaped surrogate, lone or in a pair
_CHARS_OF_A_PROBLEM = 300
_LINES_AT_ONCE = 1_000

DETERMINISM = Determinism(gzip_mtime=0, json_sort_keys=True, json_separators=(",", ":"))
"""Settings of `dump_line` and `write_gz`, for `run_meta`."""

_encode = json.JSONEncoder(
    sort_keys=DETERMINISM.json_sort_keys,
    separators=DETERMINISM.json_separators,
    ensure_ascii=False,
    allow_nan=False,
).encode

T = TypeVar("T")


class RecordError(BenchError):
    """A file of records is unreadable or invalid.

    The message is one printable line: file, line number, problem.

    Args:
        path: Path of the file.
        line: Line number, from 1; if the file ends early, that of the next expected line.
        what: Description of the problem; unprintable characters are replaced.
    """

    def __init__(self, path: Path, line: int, what: str) -> None:
        self.path = path
        self.line = line
        self.what = printable(what[:_CHARS_OF_A_PROBLEM])
        super().__init__(f"{printable(str(path))} line {line}: {self.what}")

    def __reduce__(self) -> tuple[type[RecordError], tuple[Path, int, str]]:
        return type(self), (self.path, self.line, self.what)  # for pickling between processes


def dump_line(record: Mapping[str, Any] | BaseModel) -> bytes:
    """Return a record as one line of UTF-8 JSON with sorted keys, no spaces and a line break.

    Unset fields of a model are left out. Lone surrogates become U+FFFD.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json", exclude_unset=True)
    return utf8(_encode(record) + "\n")


def write_gz(path: Path, lines: Iterable[bytes]) -> None:
    """Write `lines`, which include their line breaks, as a gzip file. Equal lines give equal bytes.

    Missing folders are created. The write is atomic: a reader sees the earlier file or the whole
    new one.

    Raises:
        StorageError: The file cannot be written; an earlier file is kept.
    """
    write_packed(path, packed(lines))


def packed(lines: Iterable[bytes]) -> bytes:
    """Return the compressed content that `write_gz` writes.

    It has the bytes of a `gzip.GzipFile` without name and time, which takes much longer for many
    short lines; those of `gzip.compress` depend on the version of Python.
    """
    content = b"".join(lines)
    trailer = struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFF_FFFF)
    return _GZIP_HEADER + zlib.compress(content, _GZIP_LEVEL, -zlib.MAX_WBITS) + trailer


def write_packed(path: Path, content: bytes, *, parents: bool = True) -> None:
    """Write compressed content from `packed` atomically.

    Args:
        path: Path of the file; its folder is created if missing.
        content: Bytes to write.
        parents: Whether missing folders above that folder are created as well.

    Raises:
        StorageError: The file cannot be written; an earlier file is kept.
    """
    with writing(path):
        replace_file(path, content, parents=parents)


def read_records(
    path: Path, *, max_line_bytes: int = MAX_LINE_BYTES, content: bytes | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number, from 1, and the object of each line; blank lines are skipped.

    A byte order mark is ignored, and lone surrogates become U+FFFD, as in `dump_line`.

    Args:
        path: Path of the file; `.gz` for a compressed file, `.json` for a single object.
        max_line_bytes: Maximum size in bytes of a line, or of the single object.
        content: Content of the file, which then need not exist; None reads the file.

    Raises:
        RecordError: The file cannot be read, is truncated or corrupt, or a line is not a JSON
            object in UTF-8. Earlier lines have already been yielded.
    """
    for number, line in read_lines(path, max_line_bytes=max_line_bytes, content=content):
        yield number, parse_line(path, number, line)


def read_lines(
    path: Path, *, max_line_bytes: int = MAX_LINE_BYTES, content: bytes | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the line number, from 1, and the bytes of each line; blank lines are skipped.

    Memory does not grow with the size of the file or of its longest line.

    Args:
        path: Path of the file; `.gz` for a compressed file, `.json` for a single object.
        max_line_bytes: Maximum size in bytes of a line, or of the single object.
        content: Content of the file, which then need not exist; None reads the file.

    Raises:
        RecordError: The file cannot be read, or is truncated or corrupt.
    """
    number = 0
    try:
        is_packed = path.suffix == ".gz"
        size = path.stat().st_size if content is None else len(content)
        if is_packed and size == 0:
            raise EOFError  # gzip would accept it as a file without lines
        source = regular_file(path) if content is None else io.BytesIO(content)
        unpacked = io.BufferedReader(gzip.open(source)) if is_packed else source  # noqa: SIM115
        with source, unpacked as file:
            read = file.read if path.suffix == ".json" else file.readline
            while line := read(max_line_bytes + 1):
                number += 1
                if len(line) > max_line_bytes and not line.endswith(b"\n"):
                    raise RecordError(path, number, f"longer than {max_line_bytes} bytes")
                if line.strip():
                    yield number, line
    except EOFError as error:
        raise RecordError(path, number + 1, "the compressed file is cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordError(path, number + 1, f"the compressed file is damaged: {error}") from error
    except OSError as error:
        raise RecordError(path, number + 1, f"cannot be read: {error.strerror or error}") from error


def parse_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line from `read_lines`.

    Raises:
        RecordError: The line is not a JSON object in UTF-8.
    """
    try:
        content = _DECODER.decode(line.rstrip().decode("utf-8-sig"))
        if _SURROGATE.search(line):
            content = _DECODER.decode(well_formed(_encode(content)))
    except UnicodeDecodeError as error:
        raise RecordError(path, number, f"not UTF-8 at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        number += error.lineno - 1  # more than 1 only in a `.json` file
        raise RecordError(path, number, f"not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(path, number, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordError(path, number, "not a JSON object")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)  # shared by all lines


def read_as(adapter: TypeAdapter[T], path: Path, packed: bytes | None = None) -> Iterator[T]:
    """Yield the validated records of a file.

    Args:
        adapter: Validator of a record.
        path: Path of the file.
        packed: Content of the file, which then need not exist; None reads the file.

    Raises:
        RecordError: The file cannot be read, or a record does not validate.
    """
    for number, content in read_records(path, content=packed):
        yield validated(adapter, path, number, content)


def record_of(adapter: TypeAdapter[T], path: Path, number: int, line: bytes) -> T:
    """Parse and validate a line from `read_lines`.

    Args:
        adapter: Validator of a record.
        path: Path of the file.
        number: Line number, from 1.
        line: The line.

    Raises:
        RecordError: The line is not a JSON object, or does not validate.
    """
    # One step is faster than the two below, which also read a byte order mark and lone surrogates,
    # name the problem, and refuse NaN in a duplicate field.
    try:
        if b"NaN" not in line and b"Infinity" not in line:
            record: T = adapter.validator.validate_json(line)
            return record
    except ValidationError:
        pass
    return validated(adapter, path, number, parse_line(path, number, line))


def records_of(
    many: TypeAdapter[list[T]],
    adapter: TypeAdapter[T],
    path: Path,
    lines: Iterator[tuple[int, bytes]],
) -> Iterator[tuple[int, T]]:
    """Yield the number and the validated record of each line.

    Args:
        many: Validator of a list of records.
        adapter: Validator of a record.
        path: Path of the file.
        lines: Numbers and lines, from `read_lines`.

    Raises:
        RecordError: A line cannot be read, is not a JSON object, or does not validate.
    """
    unreadable: RecordError | None = None
    while unreadable is None:
        some: list[tuple[int, bytes]] = []
        try:
            some.extend(islice(lines, _LINES_AT_ONCE))
        except RecordError as error:
            unreadable = error
        if not some:
            break
        # Validating them as one array is faster; only the lines tell which one has a problem.
        records = _validated_at_once(many, [line.strip(b" \t\r\n") for _, line in some])
        if records is not None:
            yield from zip([number for number, _ in some], records, strict=True)
            continue
        for number, line in some:
            yield number, record_of(adapter, path, number, line)
    if unreadable is not None:
        raise unreadable


def _validated_at_once(many: TypeAdapter[list[T]], lines: Sequence[bytes]) -> list[T] | None:
    """Return the record of each line; None if one may have a problem."""
    content = b"[" + b",".join(lines) + b"]"
    is_plain = all([line.startswith(b"{") and line.endswith(b"}") for line in lines])
    if not is_plain or b"NaN" in content or b"Infinity" in content:
        return None
    try:
        records = many.validator.validate_json(content)
    except ValidationError:
        return None
    return records if len(records) == len(lines) else None


def validated(adapter: TypeAdapter[T], path: Path, number: int, content: Mapping[str, Any]) -> T:
    """Validate a record from `read_records` with `adapter`.

    Raises:
        RecordError: The record does not validate; the message names the first problem.
    """
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        raise RecordError(path, number, first_problem(error)) from error
