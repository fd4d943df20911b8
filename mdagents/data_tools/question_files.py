"""Writes published records to question files, and reports which were left out and why."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mdagents.datasets.conversion import LeftOut, Record
from mdagents.datasets.dataset import file_counting, open_dataset, read_question
from mdagents.datasets.medmcqa import Counting
from mdagents.datasets.published_forms import OutOfScopeError
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.record_lines import read_lines
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.text import first_names

MOST_LEFT_OUT = 0.01
"""Maximum share of unusable records before the whole file counts as broken."""


_MOST_LINES = 20
"""Maximum number of line numbers shown for records left out for the same reason."""


_WITH_RECORDS = (".csv", ".json", ".parquet", ".tar", ".zip")
"""Endings of files whose records are not a line each."""


@dataclass(frozen=True, slots=True)
class Made:
    """A question file that every part of the program can read."""

    path: Path
    records: int
    left_out: tuple[str, ...] = ()
    """One line per unusable record, and one per reason for which records are out of scope."""
    not_used: int = 0
    """Number of published records that were left out."""
    counting: Counting | None = None
    """Option numbering of a MedMCQA file; None for other files."""

    @property
    def published(self) -> int:
        """Number of published records, including those left out."""
        return self.records + self.not_used


def as_published(path: Path, origin: str) -> Made:
    """Check that a question file can be used as published.

    Args:
        path: Path of the file, with one record per line.
        origin: Name of the file in error messages.

    Raises:
        ConfigError: A line is not a usable question; the message names the line and the field.
    """
    with _called(path, origin):
        counting = file_counting(path)
        records = 0
        for _, number, line in read_lines(path):
            if line.strip():
                read_question(line, path, number, counting)
                records += 1
        open_dataset(str(path), path.parent)
    return Made(path, records, counting=counting)


def make_questions(
    records: Iterable[Record],
    origin: str,
    path: Path,
    *,
    counting: Counting | None = None,
    only: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Made:
    """Write the usable records to a file, one per line.

    Args:
        records: Records as published: objects, or lines with the JSON of one object each; or the
            reason for which one is left out.
        origin: Name of the source file in error messages.
        path: Path of the file to write.
        counting: Option numbering of MedMCQA records; None detects it from the records.
        only: Field -> value of the wanted records; records without the field are wanted as well.
        folder: Folder that the paths of pictures are relative to; None for questions of text.

    Raises:
        ConfigError: More than the share `MOST_LEFT_OUT` of the records is unusable, or all are.
    """
    every = path.with_name(f"{path.name}.all")
    kept = _Kept(origin, only or {}, folder)
    with every.open("wb") as file:
        for number, record in enumerate(records, start=1):
            if isinstance(record, LeftOut):
                kept.leave_out(record.reason, number)
            file.write(_line(record))
    with _called(every, origin):
        counting = counting or file_counting(every)
        kept.cop_from = counting.first if counting else None
        with path.open("wb") as file:
            for _, number, line in read_lines(every):
                if line.strip() and kept.can_use(line, number):
                    file.write(line)
    every.unlink()
    unusable, meant = kept.unusable, len(kept.ids) + len(kept.unusable)
    if len(unusable) > MOST_LEFT_OUT * meant:
        raise ConfigError(
            f"{len(unusable)} of {meant} records of {origin} cannot be used, "
            f"the first: {unusable[0]}"
        )
    groups = kept.out_of_scope()
    if not kept.ids:
        raise ConfigError("; ".join([f"{origin} has no questions in it", *groups]))
    return Made(path, len(kept.ids), (*unusable, *groups), kept.not_used, counting)


def _line(record: Record) -> bytes:
    if isinstance(record, LeftOut):
        return b"\n"
    if isinstance(record, bytes):
        return record if record.endswith(b"\n") else record + b"\n"
    return json.dumps(record, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


class _Kept:
    """Filters the records of a file and collects the reasons for those left out.

    Args:
        origin: Name of the file in error messages.
        only: Field -> value of the wanted records.
        folder: Folder that the paths of pictures are relative to; None for questions of text.
    """

    def __init__(self, origin: str, only: Mapping[str, str], folder: Path | None) -> None:
        self._origin = origin
        self._unit = "record" if origin.lower().endswith(_WITH_RECORDS) else "line"
        self._only = only
        self._folder = folder
        self.cop_from: int | None = None
        """Value of MedMCQA's field `cop` for the first option: 0 or 1; None for other files."""
        self._reasons: dict[str, list[int]] = {}
        self.ids: dict[str, int] = {}
        self.unusable: list[str] = []

    @property
    def not_used(self) -> int:
        return len(self.unusable) + sum(map(len, self._reasons.values()))

    def out_of_scope(self) -> list[str]:
        groups = []
        for reason, lines in self._reasons.items():
            first = first_names(lines, _MOST_LINES)
            groups.append(f"{len(lines):,} of {self._origin} ({self._unit} {first}): {reason}")
        return groups

    def leave_out(self, reason: str, number: int) -> None:
        self._reasons.setdefault(reason, []).append(number)

    def can_use(self, line: bytes, number: int) -> bool:
        where = f"{self._origin} {self._unit} {number}"
        try:
            record = load_json(line, where)
            for field, wanted in self._only.items() if isinstance(record, dict) else ():
                if (value := record.get(field, wanted)) != wanted:
                    raise OutOfScopeError(
                        where, f"field '{field}' is {reprlib.repr(value)}, not '{wanted}'"
                    )
            question = parse_question(record, where, number, self.cop_from, folder=self._folder)
            if question.missing_picture or (question.pictures and self._folder is None):
                raise OutOfScopeError(where, "it is about an image")
            first = self.ids.setdefault(question.id, number)
            if first != number:
                raise ConfigError(
                    f"{where}: the id '{question.id}' is that of {self._unit} {first}"
                )
        except OutOfScopeError as error:
            self.leave_out(error.reason, number)
            return False
        except ConfigError as error:
            self.unusable.append(str(error))
            return False
        return True


@contextmanager
def _called(path: Path, origin: str) -> Iterator[None]:
    """Replace the path of a file by its origin in error messages."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(path), origin)) from None
