"""Files of records: written with equal bytes for equal records, and read back."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from exaid_core.trace.run_records import Determinism
from mdagents_llm.errors import BenchError, StorageError
from mdagents_llm.files.regular_file import regular_file
from mdagents_llm.files.text import printable, well_formed
from mdagents_llm.files.whole_file import whole_file

MAX_LINE_BYTES = 8 * 1024 * 1024
_GZIP_LEVEL = 6
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # written as an escape, half of a pair or both
_CHARS_OF_A_PROBLEM = 300

DETERMINISM = Determinism(gzip_mtime=0, json_sort_keys=True, json_separators=(",", ":"))
"""How `dump_line` and `write_gz` write, for `run_meta`."""

_encode = json.JSONEncoder(
    sort_keys=DETERMINISM.json_sort_keys,
    separators=DETERMINISM.json_separators,
    ensure_ascii=False,
    allow_nan=False,
).encode

T = TypeVar("T")


class RecordError(BenchError):
    """A file of records that cannot be read as such.

    The message is one printable line: file, number of the line, what is wrong there.

    Args:
        path: The file.
        line: Number of the line, from 1; the line that was expected next when the file ends early.
        what: What is wrong; any text from the file in it is made printable.
    """

    def __init__(self, path: Path, line: int, what: str) -> None:
        self.path = path
        self.line = line
        self.what = printable(what[:_CHARS_OF_A_PROBLEM])
        super().__init__(f"{printable(str(path))} line {line}: {self.what}")

    def __reduce__(self) -> tuple[type[RecordError], tuple[Path, int, str]]:
        return type(self), (self.path, self.line, self.what)  # from process to process


def dump_line(record: Mapping[str, Any] | BaseModel) -> bytes:
    """Return a record as one line of JSON, line break included: keys sorted, no spaces, UTF-8.

    Fields of a model that were not set are left out. Lone surrogates become U+FFFD.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json", exclude_unset=True)
    line = _encode(record) + "\n"
    try:
        return line.encode()
    except UnicodeEncodeError:
        return well_formed(line).encode()


def write_gz(path: Path, lines: Iterable[bytes]) -> None:
    """Write `lines`, given with their line breaks, as a gzip file. Equal lines give equal bytes.

    The folder is made if it is not there. A reader sees the earlier file or the whole new one,
    never a part.

    Raises:
        StorageError: The file cannot be written; an earlier one is kept.
    """
    write_packed(path, packed(lines))


def packed(lines: Iterable[bytes]) -> bytes:
    """Return the content of the file that `write_gz` writes."""
    file = io.BytesIO()
    with gzip.GzipFile(
        filename="",
        mode="wb",
        compresslevel=_GZIP_LEVEL,
        fileobj=file,
        mtime=DETERMINISM.gzip_mtime,
    ) as compressed:
        compressed.writelines(lines)
    return file.getvalue()


def write_packed(path: Path, content: bytes, *, parents: bool = True) -> None:
    """Write what `packed` has returned; see `write_gz`.

    Args:
        path: The file; its folder is made if it is not there.
        content: What is written.
        parents: Whether the folders above its folder are made as well.

    Raises:
        StorageError: The file cannot be written; an earlier one is kept.
    """
    try:
        with whole_file(path, parents=parents) as file:
            file.write(content)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def read_records(
    path: Path, *, max_line_bytes: int = MAX_LINE_BYTES, content: bytes | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of the line from 1, object) of each line; blank lines are skipped.

    A byte order mark is passed over, and lone surrogates become U+FFFD, as in `dump_line`. Memory
    does not grow with the file, nor with its longest line.

    Args:
        path: `.gz` for a compressed file, `.json` for one with one object in all.
        max_line_bytes: Longest line that is read, or longest object in all.
        content: Of the file, which need not be there then.

    Raises:
        RecordError: The file cannot be read, is cut short or damaged, or a line is not a JSON
            object in UTF-8. Earlier lines have been yielded by then.
    """
    number = 0
    try:
        is_packed = path.suffix == ".gz"
        size = path.stat().st_size if content is None else len(content)
        if is_packed and size == 0:
            raise EOFError  # which gzip takes for a file without lines
        source = regular_file(path) if content is None else io.BytesIO(content)
        with source, gzip.open(source, "rb") if is_packed else source as file:
            read = file.read if path.suffix == ".json" else file.readline
            while line := read(max_line_bytes + 1):
                number += 1
                if len(line) > max_line_bytes and not line.endswith(b"\n"):
                    raise RecordError(path, number, f"longer than {max_line_bytes} bytes")
                if line.strip():
                    yield number, _object(path, number, line)
    except EOFError as error:
        raise RecordError(path, number + 1, "the compressed file is cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordError(path, number + 1, f"the compressed file is damaged: {error}") from error
    except OSError as error:
        raise RecordError(path, number + 1, f"cannot be read: {error.strerror or error}") from error


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = _DECODER.decode(line.rstrip().decode("utf-8-sig"))
        if _SURROGATE.search(line):
            content = _DECODER.decode(well_formed(_encode(content)))
    except UnicodeDecodeError as error:
        raise RecordError(path, number, f"not UTF-8 at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        number += error.lineno - 1  # of a `.json` file
        raise RecordError(path, number, f"not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(path, number, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordError(path, number, "not a JSON object")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)  # one for many lines


def read_as(adapter: TypeAdapter[T], path: Path, packed: bytes | None = None) -> Iterator[T]:
    """Yield the records of a file, validated.

    Args:
        adapter: Validates a record.
        path: The file.
        packed: Content of the file, which need not be there then.

    Raises:
        RecordError: See `read_records` and `validated`.
    """
    for number, content in read_records(path, content=packed):
        yield validated(adapter, path, number, content)


def validated(adapter: TypeAdapter[T], path: Path, number: int, content: Mapping[str, Any]) -> T:
    """Validate a record from `read_records` with `adapter`.

    Raises:
        RecordError: The record does not validate; the message names the first problem.
    """
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        what = f"{place}: {problem['msg']}" if place else problem["msg"]
        raise RecordError(path, number, what) from error
