"""The journal of a run: its traces as lines of one file.

Creating a file can take a busy process as long as a call of a model, so that a run without EXAID
appends its traces to a journal. A line is `{"case_id": ..., "trace": ...}`, with the content of the
trace's file (gzip) in base64; the last line of a case counts.
"""

from __future__ import annotations

import base64
import io
import re
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from exaid_core.trace.files import RecordError, write_packed
from exaid_core.trace.names import JOURNAL, TRACE_SUFFIX
from mdagents_llm.files.json_text import compact_json
from mdagents_llm.files.regular_file import regular_file

_LINE = re.compile(  # also behind an editor that adds a byte order mark or other line ends
    rb'(?:\xef\xbb\xbf)?\{"case_id":"(case-[A-Za-z0-9-]+)","trace":"([A-Za-z0-9+/]+={0,2})"\}\r?\n'
)
_START = 4096
"""Bytes that tell a journal from a later one at its path: they hold the longest id and a time."""


def journal_line(case_id: str, content: bytes) -> bytes:
    """Return the line of a trace, without a line break.

    Args:
        case_id: Id of the case.
        content: Content of the trace's file.
    """
    return compact_json({"case_id": case_id, "trace": base64.b64encode(content).decode()})


def journaled_trace(folder: Path, case_id: str) -> bytes | None:
    """Return the content of a trace's file from the journal of a run; None if it is not there.

    Args:
        folder: Folder of the run, which may be in progress in another process.
        case_id: Id of the case.

    Raises:
        RecordError: The journal cannot be read, or one of its lines is damaged.
    """
    return _journal_at(folder / JOURNAL).content(case_id)


def unpack_journal(folder: Path) -> None:
    """Write the traces in the journal of a run, if it has one, as files in its folder `traces`.

    Raises:
        RecordError: The journal cannot be read, or one of its lines is damaged.
        StorageError: A file cannot be written.
    """
    reader = _journal_at(folder / JOURNAL)
    for case_id in reader.cases():
        content = reader.content(case_id)
        path = folder / "traces" / f"{case_id}{TRACE_SUFFIX}"
        if content is not None and not (path.is_file() and path.read_bytes() == content):
            write_packed(path, content)


class _JournalReader:
    """Finds traces in a journal, which another process may extend."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = Lock()
        self._forget()

    def _forget(self) -> None:
        self._start, self._read, self._lines = b"", 0, 0
        self._places: dict[str, int] = {}  # case -> offset of its last line
        self._damaged: list[int] = []  # numbers of lines that are no trace

    def cases(self) -> list[str]:
        """Return the ids of the cases in the journal."""
        with self._reading, self._opened() as file:
            self._catch_up(file)
            self._refuse_damage()
            return list(self._places)

    def content(self, case_id: str) -> bytes | None:
        """Return the content of a case's trace file; None if it is not in the journal."""
        with self._reading, self._opened() as file:
            while True:
                self._catch_up(file)
                place = self._places.get(case_id)
                if place is None:
                    self._refuse_damage()
                    return None
                file.seek(place)
                found = _LINE.fullmatch(file.readline())
                if found is not None and found[1] == case_id.encode():
                    return base64.b64decode(found[2])
                self._forget()  # these were places in another journal

    def _refuse_damage(self) -> None:
        for number in self._damaged[:1]:
            raise RecordError(self._path, number, "is not a trace of a case; delete this line")

    def _opened(self) -> BinaryIO:
        try:
            return regular_file(self._path)
        except FileNotFoundError:
            return io.BytesIO()  # a run with a file for each trace
        except OSError as error:
            what = f"cannot be read: {error.strerror or error}"
            raise RecordError(self._path, 1, what) from error

    def _catch_up(self, file: BinaryIO) -> None:
        """Read the places of the lines since the last time; a torn last line may still grow."""
        file.seek(0)
        start = file.read(_START)
        if not start.startswith(self._start):
            self._forget()
        self._start = start
        file.seek(self._read)
        for line in file:
            if not line.endswith(b"\n"):
                break
            found = _LINE.fullmatch(line)
            self._lines += 1
            if found is None or (found.end(2) - found.start(2)) % 4:
                self._damaged.append(self._lines)
            else:
                self._places[found[1].decode()] = self._read
            self._read += len(line)


_journal_at = lru_cache(maxsize=4)(_JournalReader)
"""Return the reader of a journal, which finds its places once."""
