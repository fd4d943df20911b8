"""Index of the decided questions of a run: filters, sorts and pages them in bounded memory.

It is a temporary SQLite database, whose pages SQLite moves to disk as it grows. It is built once
and extended as records and summaries are appended, so that an update costs what is new.
"""

from __future__ import annotations

import json
import re
import sqlite3
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from mdagents.agents.case import make_case_id
from mdagents.pages.listing import (
    FILTERS,
    OF_ONE_RUN,
    Cell,
    Entry,
    expensive_from,
    lacks_summary,
    make_entry,
    start_of,
)
from mdagents.pages.run import Decided, Found, ListedQuestion
from mdagents.records.jsonl import MALFORMED
from mdagents.records.manifest import RunManifest
from mdagents.records.summaries import with_exaid
from mdagents.scoring.fields import plain, text_of
from mdagents.scoring.group import chance_of
from mdagents.scoring.result_file import parse, reading
from mdagents.scoring.rows import score_record
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.selection import Selection
from mdagents.settings import Status
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import regular_file, status_of

PAGE = 50
"""Questions on one page of the list."""

_BATCH = 500  # records between two releases of the lock, so that a request need not wait for all
_DIGITS = re.compile(r"\d+")
_SCHEMA = """
CREATE TABLE questions (
    number INTEGER PRIMARY KEY, case_id TEXT UNIQUE, id TEXT, epoch INTEGER, place INTEGER,
    attempt INTEGER, status TEXT, answer TEXT, correct INTEGER, level TEXT, chance REAL,
    tokens INTEGER, tags INTEGER, is_summarised INTEGER, lacks_summary INTEGER, entry TEXT,
    sort_0, sort_1, sort_2, sort_3, sort_4, sort_5, sort_6, sort_7
);
CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE summaries (
    case_id TEXT, attempt INTEGER, place INTEGER, PRIMARY KEY (case_id, attempt)
) WITHOUT ROWID;
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;
"""
_COLUMNS = 16 + len(OF_ONE_RUN) + 1
_BITS = {name: 1 << place for place, name in enumerate(FILTERS)}
_ORDER_OF = ("question", *OF_ONE_RUN)


@dataclass(frozen=True, slots=True)
class Query:
    """Which questions of a run are listed, and in which order."""

    tag: str = ""
    """Name of a filter; empty for all questions."""
    level: str = ""
    """Level; empty for all."""
    text: str = ""
    """Words that id and text of a question must contain."""
    sort: str = ""
    """Heading of the column to sort by; empty for the order of the records."""
    descending: bool = False


class RecordIndex:
    """Decided questions of a run, in a database that is closed when this is freed.

    Methods may be called from any thread.

    Args:
        folder: Folder of the run.
        manifest: Manifest of the run.
    """

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        self._samples, self._summaries = folder / "samples.jsonl", folder / "summaries.jsonl"
        of_run = {"item_ids": manifest.item_ids, "options": {"epochs": manifest.epochs}}
        self._selection = Selection(of_run)
        self._lock = Lock()  # of the connection
        self._start()

    def _start(self) -> None:
        # An empty name is a temporary file that SQLite removes.
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._closing = weakref.finalize(self, self._db.close)
        self._db.executescript(_SCHEMA)
        self._read_to = {self._samples: 0, self._summaries: 0}  # bytes
        self._lines = 0
        self.trouble = ""
        """Which line cannot be read; empty if all can."""

    @property
    def unread(self) -> int:
        """Bytes of the run's files that have not been read; negative if a file has shrunk."""
        changes = [
            (status.st_size if (status := status_of(path)) else 0) - read
            for path, read in self._read_to.items()
        ]
        return min(changes) if min(changes) < 0 else sum(changes)

    def close(self) -> None:
        """Free the database."""
        with self._lock:
            self._closing()

    # -- reading ----------------------------------------------------------------------------------

    def update(self) -> Decided:
        """Read what was appended since the last call, and return the figures of the list.

        A line that cannot be read costs no other line; `trouble` names the first one.
        """
        if self.unread < 0:  # the files are those of another start
            self.close()
            self._start()
        # Summaries first, so that a record that has them is scored once.
        for path, add in ((self._summaries, self._add_summaries), (self._samples, self._add)):
            while self._add_batch(path, add):
                pass
        return self._decided()

    def _add_batch(self, path: Path, add: Callable[[int, bytes], None]) -> bool:
        """Read some of the new lines of a file; return whether there were any."""
        lines, end = _lines_from(path, self._read_to[path])
        with self._lock:
            before = self._lines
            self._db.execute("BEGIN")
            try:
                for place, line in lines:
                    try:
                        add(place, line)
                    except ConfigError as error:
                        self.trouble = self.trouble or str(error)
            except BaseException:
                self._db.execute("ROLLBACK")
                self._lines = before
                raise
            self._db.execute("COMMIT")
            self._read_to[path] = end
        return bool(lines)

    def _add(self, place: int, line: bytes) -> None:
        self._lines += 1
        record = parse(line, f"{self._samples} line {self._lines}")
        attempt = 1
        if isinstance(record, dict) and isinstance(record.get("epoch"), int):
            found = self._db.execute(
                "SELECT attempt FROM questions WHERE case_id = ?",
                (make_case_id(str(record.get("question_id")), record["epoch"]),),
            ).fetchone()
            attempt = 1 + found[0] if found else 1
        self._score(record, place, attempt)

    def _add_summaries(self, place: int, line: bytes) -> None:
        try:
            made = json.loads(line)
            case_id, attempt = make_case_id(made["question_id"], made["epoch"]), made["attempt"]
        except MALFORMED as error:
            raise ConfigError(f"{self._summaries} at byte {place} cannot be read") from error
        self._db.execute("REPLACE INTO summaries VALUES (?, ?, ?)", (case_id, attempt, place))
        found = self._db.execute(
            "SELECT place FROM questions WHERE case_id = ? AND attempt = ?", (case_id, attempt)
        ).fetchone()
        if found:
            self._score(_record_at(self._samples, found[0]), found[0], attempt)

    def _score(self, record: Any, place: int, attempt: int) -> None:
        record = self._with_summaries(record, attempt)
        row = score_record(self._samples, record, self._lines, place, attempt, self._selection)
        if row is None:
            return
        case_id, entry = make_case_id(*row.item), make_entry(row)
        found = self._db.execute(
            "SELECT number FROM questions WHERE case_id = ?", (case_id,)
        ).fetchone()
        if not found:  # counting the rows would take as long as there are many
            found = self._db.execute(
                "SELECT 1 + coalesce(max(number), 0) FROM questions"
            ).fetchone()
        number = found[0]
        tags = sum(_BITS[tag] for tag in entry.tags)
        text = plain(text_of(record, "question"))
        values = (
            number, case_id, *row.item, place, attempt, row.status, row.response, row.correct,
            row.difficulty, row.chance, row.total_tokens or 0, tags,
            bool(row.summarised and row.summarised.summaries), lacks_summary(row),
            _kept(entry, start_of(text)),
            _natural(entry.name), *(cell.key for cell in entry.cells),
        )  # fmt: skip
        marks = ", ".join("?" * _COLUMNS)
        self._db.execute(f"REPLACE INTO questions VALUES ({marks})", values)
        self._db.execute(
            "REPLACE INTO texts VALUES (?, ?)", (number, f"{entry.name} {text}".lower())
        )

    def _with_summaries(self, record: Any, attempt: int) -> Any:
        """Return a record merged with EXAID's part, if any."""
        if not isinstance(record, dict) or not isinstance(record.get("epoch"), int):
            return record
        case_id = make_case_id(str(record.get("question_id")), record["epoch"])
        found = self._db.execute(
            "SELECT place FROM summaries WHERE case_id = ? AND attempt = ?", (case_id, attempt)
        ).fetchone()
        if not found:
            return record
        return with_exaid(record, _record_at(self._summaries, found[0]))

    # -- asking -----------------------------------------------------------------------------------

    def _count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM questions").fetchone()[0])

    def _decided(self) -> Decided:
        with self._lock:
            count = self._count()
            chances = dict(
                self._db.execute(
                    "SELECT chance, count(*) FROM questions WHERE status <> ? GROUP BY chance",
                    (Status.SKIPPED,),
                )
            )
            levels = self._db.execute(
                "SELECT DISTINCT level FROM questions WHERE level <> '' ORDER BY level"
            )
            counts = {
                name: self._db.execute(
                    f"SELECT count(*) FROM questions WHERE {condition}", values
                ).fetchone()[0]
                for name in FILTERS
                for condition, values in [self._passes(name)]
            }
            return Decided(count, counts, tuple(level for (level,) in levels), chance_of(chances))

    def _passes(self, tag: str) -> tuple[str, Sequence[Any]]:
        """Return the SQL condition, with its values, of the questions that pass a filter."""
        if tag == "expensive":
            found = self._db.execute(
                "SELECT tokens FROM questions ORDER BY tokens DESC LIMIT 1 OFFSET ?",
                (expensive_from(self._count()),),
            ).fetchone()
            return "tokens > ?", found or (0,)
        if tag == "no-summary":
            return "lacks_summary AND EXISTS (SELECT 1 FROM questions WHERE is_summarised)", ()
        return "tags & ?", (_BITS[tag],)

    def _where(self, query: Query) -> tuple[str, list[Any]]:
        conditions, values = ["1"], list[Any]()
        if query.tag in FILTERS:
            condition, more = self._passes(query.tag)
            conditions.append(condition)
            values += more
        if query.level:
            conditions.append("level = ?")
            values.append(query.level)
        for word in query.text.lower().split():
            conditions.append(
                "EXISTS (SELECT 1 FROM texts "
                "WHERE texts.number = questions.number AND instr(text, ?))"
            )
            values.append(word)
        return " AND ".join(conditions), values

    def find(self, query: Query, start: int = 0) -> Found:
        """Return one page of the questions that pass a query, and how many there are.

        Args:
            query: The query.
            start: Number of questions to skip.
        """
        with self._lock:
            where, values = self._where(query)
            (count,) = self._db.execute(
                f"SELECT count(*) FROM questions WHERE {where}", values
            ).fetchone()
            rows = self._db.execute(
                f"SELECT number, case_id, entry FROM questions WHERE {where} "
                f"ORDER BY {_order(query)} LIMIT ? OFFSET ?",
                [*values, PAGE, start],
            )
            return Found(count, [_listed(*row) for row in rows])

    def beside(self, case_id: str, query: Query) -> tuple[str | None, str | None]:
        """Return the case ids of the previous and the next question of a query's result."""
        key, sign = _sort_of(query), "<" if query.descending else ">"
        with self._lock:
            where, values = self._where(query)
            here = self._db.execute(
                f"SELECT {key}, number FROM questions WHERE case_id = ?", (case_id,)
            ).fetchone()
            if here is None:
                return None, None
            opposite = "<" if sign == ">" else ">"
            found = [
                self._db.execute(
                    f"SELECT case_id FROM questions WHERE {where} "
                    f"AND ({key} {toward} ? OR {key} = ? AND number {by} ?) "
                    f"ORDER BY {order} LIMIT 1",
                    [*values, here[0], *here],
                ).fetchone()
                for toward, by, order in (
                    (opposite, "<", _order(query, backward=True)),
                    (sign, ">", _order(query)),
                )
            ]
        before, after = (one and str(one[0]) for one in found)
        return before, after

    def last(self) -> str | None:
        """Return the case id of the last decided question; None without one."""
        with self._lock:
            found = self._db.execute(
                "SELECT case_id FROM questions ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return str(found[0]) if found else None

    def outcomes(self) -> list[dict[str, Any]]:
        """Return the outcome of each question, for the API."""
        with self._lock:
            rows = self._db.execute(
                "SELECT case_id, id, epoch, level, status, answer, correct FROM questions "
                "ORDER BY number"
            ).fetchall()
        return [
            {
                "case": case_id,
                "item": [id_, epoch],
                "level": level or None,
                "status": status,
                "answer": answer or None,
                "correct": bool(correct),
            }
            for case_id, id_, epoch, level, status, answer, correct in rows
        ]

    def record(self, case_id: str) -> tuple[ScoredRow, Mapping[str, Any]] | None:
        """Return the scored row and the record of a question; None if it has no record.

        Raises:
            ConfigError: The record cannot be read.
        """
        with self._lock:
            found = self._db.execute(
                "SELECT place, attempt FROM questions WHERE case_id = ?", (case_id,)
            ).fetchone()
            if found is None:
                return None
            place, attempt = found
            record = self._with_summaries(_record_at(self._samples, place), attempt)
        row = score_record(self._samples, record, 1, place, attempt, self._selection)
        return None if row is None else (row, record)


def _lines_from(path: Path, start: int) -> tuple[list[tuple[int, bytes]], int]:
    """Return (place, line) of at most `_BATCH` lines, and where the next one begins.

    A torn last line waits for its end.
    """
    lines: list[tuple[int, bytes]] = []
    if not path.exists():
        return lines, start
    with reading(path), regular_file(path) as file:
        file.seek(start)
        for line in file:
            if len(lines) == _BATCH or not (line.endswith(b"\n") or _is_whole(line)):
                break
            if not line.isspace():
                lines.append((start, line))
            start += len(line)
    return lines, start


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _record_at(path: Path, place: int) -> Any:
    with reading(path), regular_file(path) as file:
        file.seek(place)
        return parse(file.readline(), f"{path} at byte {place}")


def _kept(entry: Entry, start: str) -> str:
    """Return an entry as JSON for `_listed`; `dataclasses.astuple` would take ten times longer."""
    cells = [(cell.text, cell.key, cell.kind) for cell in entry.cells]
    return json.dumps([start, entry.name, cells, entry.levels, entry.tags, entry.pictures])


def _listed(number: int, case_id: str, entry: str) -> ListedQuestion:
    start, name, cells, levels, tags, pictures = json.loads(entry)
    made = Entry(name, tuple(Cell(*cell) for cell in cells), levels, tags, pictures)
    return ListedQuestion(number, case_id, made, start)


def _natural(name: str) -> str:
    """Return a sort key for a name: `q2` sorts before `q10`."""
    return _DIGITS.sub(lambda digits: digits[0].zfill(20), name.lower())


def _sort_of(query: Query) -> str:
    return f"sort_{_ORDER_OF.index(query.sort)}" if query.sort in _ORDER_OF else "number"


def _order(query: Query, *, backward: bool = False) -> str:
    down = query.descending != backward
    return f"{_sort_of(query)} {'DESC' if down else 'ASC'}, number {'DESC' if backward else 'ASC'}"
