"""Reads the records of a result file one at a time: from an array, lines, a log, or a folder.

Text written by models is read unchanged, including lone surrogates and NUL, since it cannot be
corrected at its source. `mdagents_llm.files.json_text` is for files written by people.
"""

from __future__ import annotations

import codecs
import json
import re
import reprlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from mdagents.scoring.fields import count_of, object_of
from mdagents.scoring.other_files import missing, refusal_of_text, runs_below
from mdagents.scoring.zip_members import ZipMembers
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching
from mdagents_llm.files.regular_file import read_regular, regular_file
from mdagents_llm.files.stand_ins import LONGEST_START, is_pointer, stand_in
from mdagents_llm.text import counted

CHUNK = 1 << 20  # bytes per read
_NO_TEXT = "\ufffd"  # stands for bytes that are none
_START = 200  # bytes quoted to identify a file
_LONGEST_LINE = 1 << 16  # characters of a record on a line of its own
_SPACE = re.compile(r"[ \t\r\n]*")
_AFTER_VALUE = ",] \t\r\n"
_DIGITS = re.compile(r"(\d+)")
_NO_LOG = "a ZIP archive and no log of Inspect with samples"
_Getter = Callable[[], Any]
_decode_at = json.JSONDecoder().raw_decode


class ResultFile(ABC):
    """A file or folder of records.

    Iterating and `fetch` raise a ConfigError that names the record that cannot be read.

    Args:
        path: Path of the file or folder, also named in messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []
        """Caveats about the file; complete once all records have been read."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield (place, record) for each record in order; a record may be any JSON value."""

    @abstractmethod
    def fetch(self, places: Iterable[int]) -> Iterator[Any]:
        """Yield the records at `places`, in that order."""


def open_result(path: Path) -> ResultFile:
    """Open the records of `path`.

    Args:
        path: Path of a JSON array, JSON Lines, an Inspect log (.json, .eval), the folder of a run,
            or a folder with one JSON file per record.

    Raises:
        ConfigError: The file has another form, or cannot be read.
    """
    with reading(path):
        if path.is_dir():
            own = path / "samples.jsonl"
            if own.exists():
                return LinesFile(own)
            if why := runs_below(path):
                raise ConfigError(f"{path} {why}")
            return RecordFolder(path)
        with regular_file(path) as file:
            head = file.read(LONGEST_START)
            if head.startswith(b"PK"):
                return EvalArchive(path)
            if head.startswith(b"\x1f\x8b"):
                raise ConfigError(f"{path} is compressed; unpack it first (gunzip)")
            if is_pointer(head):
                raise ConfigError(f"{path} is {stand_in(head)}")
            encoding = json.detect_encoding(head)
            file.seek(0)
            # Later bytes that are no text may be a torn last line, and are judged where it is read.
            opening = _Feed(file, str(path), encoding, errors="replace").peek()
            if opening == _NO_TEXT:
                raise _not_text(path, encoding)
            if opening == "[":
                return ArrayFile(path, encoding)
            file.seek(0)
            if path.suffix in (".jsonl", ".ndjson") or _is_lines(file):
                if not encoding.startswith("utf-8"):
                    raise ConfigError(f"{path} is {encoding.upper()} text; save it as UTF-8")
                return LinesFile(path)
            if not opening:
                raise ConfigError(f"{path} is empty")
            if opening != "{":
                file.seek(0)
                text = file.read(_START).decode(encoding, errors="replace")
                raise ConfigError(f"{path} {refusal_of_text(text, path.suffix)}")
    return ObjectFile(path)


def _is_lines(file: BinaryIO) -> bool:
    """Return whether the first line is a complete JSON object and more content follows."""
    try:
        return isinstance(json.loads(file.readline()), dict) and bool(file.read(CHUNK).strip())
    except (ValueError, RecursionError):
        return False


def _not_text(name: object, encoding: str) -> ConfigError:
    return ConfigError(f"{name} is not {encoding.upper()} text; save it as UTF-8")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert an OSError raised while reading `path` into a ConfigError that names it.

    Raises:
        ConfigError: The path cannot be read.
    """
    try:
        yield
    except OSError as error:
        meant = missing(path) if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}{meant}") from None


class ArrayFile(ResultFile):
    """A JSON array, read with one element in memory at a time; places are indices."""

    def __init__(self, path: Path, encoding: str) -> None:
        super().__init__(path)
        self._encoding = encoding

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        with reading(self.path), regular_file(self.path) as file:
            feed = _Feed(file, str(self.path), self._encoding)
            feed.take()
            index = 0
            if feed.peek() == "]":
                feed.take()
            else:
                following = ","
                while following == ",":
                    yield index, feed.value(f"{self.path} record {index + 1}")
                    index += 1
                    following = feed.take()
                if following != "]":
                    how = "has no comma" if following else "is cut off"
                    raise ConfigError(f"{self.path} {how} behind record {index}")
            if feed.peek():
                raise ConfigError(f"{self.path} continues after its array; keep only the array")

    def fetch(self, places: Iterable[int]) -> Iterator[Any]:
        """Yield the records at `places`; unless places ascend, all records are held in memory."""
        wanted = list(places)
        if wanted != sorted(wanted):
            records = [record for _, record in self]
            yield from (records[place] for place in wanted)
            return
        found = iter(self)
        at, record = -1, None
        for place in wanted:
            while at < place:
                at, record = next(found)
            yield record


class _Feed:
    """An incremental reader of JSON values that loads text only as needed."""

    def __init__(self, file: BinaryIO, name: str, encoding: str, errors: str = "strict") -> None:
        self._file, self._name = file, name
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._text, self._at, self._ended = "", 0, False
        self._one_a_line = True

    def peek(self) -> str:
        """Return the next non-space character without consuming it; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more(CHUNK)

    def take(self) -> str:
        """Consume and return the next non-space character; empty at the end."""
        character = self.peek()
        self._at += len(character)
        return character

    def value(self, where: str) -> Any:
        """Consume and return the JSON value at the current position."""
        self.peek()
        if self._one_a_line and (end := self._line_end()) >= 0:
            line = self._text[self._at : end].rstrip(" \t\r").removesuffix(",")
            try:  # no token of JSON holds a line break, so that it cannot be part of a value
                value = from_json(line, cache_strings="keys")
            except ValueError:
                self._one_a_line = False
            else:
                self._at += len(line)
                return value
        size = CHUNK
        while True:
            try:
                value, end = _decode_at(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended or not isinstance(error, json.JSONDecodeError):
                    raise refusal(error, where) from None
            else:
                following = self._text[end : end + 1]
                if self._ended or (following and following in _AFTER_VALUE):  # not inside a number
                    self._at = end
                    return value
            self._more(size)
            size *= 2  # the text is decoded again after each read; doubling keeps retries few

    def _line_end(self) -> int:
        """Return where the line ends; -1 if it does not, or far away."""
        while len(self._text) - self._at <= _LONGEST_LINE and not self._ended:
            self._more(CHUNK)
        end = self._text.find("\n", self._at, self._at + _LONGEST_LINE)
        self._one_a_line = end >= 0  # all on one line: do not search it for each value
        return end

    def _more(self, size: int) -> None:
        raw = self._file.read(size)
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError:
            raise _not_text(self._name, self._encoding) from None
        self._text = self._text[self._at :] + text
        self._at, self._ended = 0, not raw


class LinesFile(ResultFile):
    """JSON Lines; places are offsets in bytes. A last line without a line end is also read."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        offset = 0
        with reading(self.path), regular_file(self.path) as file:  # text mode also splits at CR
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    try:
                        record = parse(line, f"{self.path} line {number}")
                    except ConfigError:
                        if line.endswith(b"\n"):
                            raise
                        self.notices.append(
                            f"the last line, {number}, is torn and was left out: it is no JSON and "
                            "has no line end"
                        )
                        return
                    yield offset, record
                offset += len(line)

    def fetch(self, places: Iterable[int]) -> Iterator[Any]:
        """Yield the records at `places`, in that order."""
        with reading(self.path), regular_file(self.path) as file:
            for place in places:
                file.seek(place)
                yield parse(file.readline(), f"{self.path} at byte {place}")


class _Indexed(ResultFile):
    """Records addressed by their index."""

    @abstractmethod
    def _getters(self) -> list[_Getter]:
        """Return one reader function per record."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        with reading(self.path):
            for place, get in enumerate(self._getters()):
                yield place, get()

    def fetch(self, places: Iterable[int]) -> Iterator[Any]:
        with reading(self.path):
            getters = self._getters()
            for place in places:
                yield getters[place]()


class ObjectFile(_Indexed):
    """One JSON object: an Inspect log or a single record."""

    def _getters(self) -> list[_Getter]:
        content = parse(read_regular(self.path), str(self.path))
        if not content or not isinstance(content, dict):
            raise ConfigError(f"{self.path} must hold a JSON array of records, or JSON Lines")
        records: Any = [content]
        if "eval" in content and "version" in content:
            records = content.get("samples")
            if not isinstance(records, list) or not records:
                raise ConfigError(f"{self.path} is a log of Inspect without its samples")
            self.notices[:] = _notices_of_log(content, len(records))
        return [partial(_same, record) for record in records]


class EvalArchive(_Indexed):
    """An Inspect log in `.eval` format: a ZIP archive with one JSON file per sample."""

    def _getters(self) -> list[_Getter]:
        archive = ZipMembers(self.path)
        names = [name for name in archive.names if name.startswith("samples/")]
        names = [name for name in names if name.endswith(".json")]
        header = self._member(archive, "header.json") if "header.json" in archive.names else None
        if not names:
            what = "a log of Inspect without its samples" if header else _NO_LOG
            raise ConfigError(f"{self.path} is {what}")
        self.notices[:] = _notices_of_log(header, len(names))
        return [partial(self._member, archive, name) for name in sorted(names, key=natural)]

    def _member(self, archive: ZipMembers, name: str) -> Any:
        return parse(archive.read(name), f"{self.path}: {name}")


def _same(record: Any) -> Any:
    return record


def _notices_of_log(header: Any, samples: int) -> list[str]:
    """Return notices on how a run of Inspect ended.

    Args:
        header: Log without its samples; None while the run has not ended.
        samples: Number of samples in the log.
    """
    if not isinstance(header, dict):
        return ["the log has no end: the run of Inspect was killed, or is still in progress"]
    notices = []
    status = header.get("status")
    if status != "success":
        notices.append(f"by its log, the run of Inspect ended as {reprlib.repr(status)}")
    planned = count_of(object_of(header, "results").get("total_samples"))
    if planned is not None and planned > samples:
        notices.append(f"unfinished: the log holds {samples} of {counted(planned, 'sample')}")
    return notices


class RecordFolder(_Indexed):
    """A folder with one JSON file per record, as written by MedAgentBoard."""

    def _getters(self) -> list[_Getter]:
        files = sorted(matching(self.path, "*.json"), key=lambda file: natural(file.name))
        for pattern, what in (("*.eval", "logs of Inspect"), ("*.jsonl", "JSON Lines")):
            if not files and (one := next(iter(sorted(matching(self.path, pattern))), None)):
                raise ConfigError(f"{self.path} holds {what}; name one, such as {one}")
        if not files:
            raise ConfigError(f"{self.path} holds no samples.jsonl and no result in a *.json")
        return [partial(self._record, file) for file in files]

    def _record(self, file: Path) -> Any:
        record = parse(read_regular(file), str(file))
        if not isinstance(record, dict):
            raise ConfigError(
                f"{file} is more than one record, so that {self.path} is no single run; give the "
                "files instead of the folder"
            )
        return record


def natural(name: str) -> list[tuple[int, str]]:
    """Return a natural sort key for a name: `q2` sorts before `q10`."""
    parts: list[tuple[int, str]] = []
    for place, part in enumerate(_DIGITS.split(name)):  # text, number, text, …
        number = part.lstrip("0") if place % 2 else ""
        parts.append((len(number), number or part))
    return parts


def parse(raw: bytes, where: str) -> Any:
    """Parse the JSON value in `raw`.

    Raises:
        ConfigError: The value cannot be parsed; the one-line message begins with `where`.
    """
    with suppress(ValueError):  # also raised for lone surrogates, which `json` accepts
        return from_json(raw, cache_strings="keys")  # twice as fast as `json`
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise refusal(error, where) from None


def refusal(error: ValueError | RecursionError, where: str) -> ConfigError:
    """Return a one-line error for JSON that cannot be parsed; it begins with `where`."""
    match error:
        case RecursionError():
            what = "is nested too deeply to be read"
        case UnicodeDecodeError():
            what = "is not UTF-8 text; save it as UTF-8"
        case json.JSONDecodeError():
            what = f"is not JSON: {error}"
        case _:  # the only remaining case: an integer that Python refuses to convert
            what = f"has a whole number of more than {sys.get_int_max_str_digits()} digits"
    return ConfigError(f"{where} {what}")
