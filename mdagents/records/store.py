"""Writes a run incrementally: `{name}.json` and the folder `{name}/` next to it.

A record counts as finished once its line in `samples.jsonl` is on disk. A killed process leaves at
most a torn last line, which is dropped at the next start. A question that is answered again has
several lines; the last one counts. EXAID's results for an answer follow in `summaries.jsonl`; the
JSON array holds both in one element.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from pathlib import Path

import filelock
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from mdagents.agents.case import PREPARE, make_case_id
from mdagents.records.calls import read_calls
from mdagents.records.case_files import CaseFolder
from mdagents.records.folder import earlier_run, holds_nothing
from mdagents.records.jsonl import MALFORMED, damaged, lines_at, number_of, whole_lines
from mdagents.records.line_log import LineLog
from mdagents.records.manifest import RunManifest, RunTotals, problem_of, read_manifest
from mdagents.records.sample import CaseSummaries, SampleRecord, exaid_usage
from mdagents.records.summaries import ItemKey, SummariesFile
from mdagents.settings import EXAID_ROLES, Status
from mdagents_llm.errors import ConfigError, StorageError
from mdagents_llm.files.json_text import compact_json
from mdagents_llm.files.private import make_private_folder, tighten
from mdagents_llm.files.whole_file import replace_file, whole_file
from mdagents_llm.ledger import CallRow, Totals

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_FILE = frozenset({errno.EISDIR, errno.EINVAL})
"""Error numbers for a folder or pipe that has the name of a run file."""
_WITH_EXAIDS_PART = "1.0.0"
"""Schema version of records that include EXAID's part."""
_ASKED_AGAIN = "its question is answered again"

_Places = tuple["array[int]", "array[int]"]
"""By question in an epoch: (offset of its last record in bytes, number of its records)."""


@contextmanager
def writable(output_dir: Path) -> Iterator[None]:
    """Convert an OSError below the output folder into an error with a remedy for the user.

    Raises:
        ConfigError: The folder or one of its files cannot be written.
        StorageError: The disk is full.
    """
    try:
        yield
    except OSError as error:
        what = f"cannot write to {output_dir}: {error.strerror}"
        if error.errno in _NO_ROOM:
            raise StorageError(what) from error
        if error.errno in _NO_FILE and error.filename:
            what = f"cannot write to {error.filename}: {error.strerror}"
            raise ConfigError(f"{what}; move it away") from error
        raise ConfigError(f"{what}; choose another --output-dir") from error


class RunStore:
    """Writes a run incrementally and resumes where an earlier process stopped.

    The store holds the run's lock until it is closed. The operating system releases the lock when
    the process ends, even if it is killed.

    Args:
        output_dir: Folder of all runs.
        manifest: Manifest of this start; the invocations of an earlier start are added to it.
        now: Current time, used in the name under which `fresh` keeps an earlier run.
        fresh: Whether to keep an earlier run under a dated name and start over.
        again: Statuses of records that do not count as finished.
        with_exaid: Whether EXAID is on.
        private: Whether only the owner can read the files.

    Raises:
        ConfigError: The folder cannot be written, another process holds it, or it holds a run with
            other settings or a ledger that lost rows.
        StorageError: The disk is full.
    """

    def __init__(
        self,
        output_dir: Path,
        manifest: RunManifest,
        now: datetime,
        *,
        fresh: bool = False,
        again: Collection[Status] = (),
        with_exaid: bool = False,
        private: bool = False,
    ) -> None:
        self.is_private = private
        """Whether only the owner can read the files."""
        self.folder = output_dir / manifest.name
        self.array_path = output_dir / f"{manifest.name}.json"
        self.kept_as = ""
        """Name under which an earlier run was kept; empty without one."""
        self.error: StorageError | None = None
        """Latest write error, whichever caller hit it; None without one."""
        with writable(output_dir), ExitStack() as opened:
            self._make_folder()
            self._lock = _locked(self.folder)
            opened.callback(lambda: self._lock.release())
            if fresh or self._is_of_other_settings_and_empty(manifest):
                self._keep_earlier_run(manifest.name, now)
            earlier = earlier_run(output_dir, manifest)
            if earlier is not None:
                for start in earlier.invocations:
                    start.version = start.version or earlier.version or "before 0.2.0"
                manifest.invocations = earlier.invocations + manifest.invocations
            self.manifest = manifest
            # EXAID reads a trace again when it is behind, and finds it in a file of its own.
            self.files = CaseFolder(self.folder, journals=not with_exaid, private=private)
            """Files of the cases."""
            opened.callback(self.files.close)
            self._samples = LineLog(self.folder / "samples.jsonl", syncs=False, private=private)
            opened.callback(self._samples.close)
            self._calls = LineLog(self.folder / "calls.jsonl", syncs=False, private=private)
            opened.callback(self._calls.close)
            self._summaries_path = self.folder / "summaries.jsonl"
            self._summaries = None
            if with_exaid or self._summaries_path.exists():
                self._summaries = LineLog(self._summaries_path, syncs=False, private=private)
                opened.callback(self._summaries.close)
            self.done: set[ItemKey] = set()
            """Questions that an earlier process finished."""
            self.unsummarised: list[ItemKey] = []
            """Finished questions that EXAID has not completed."""
            self._numbers = {id_: number for number, id_ in enumerate(manifest.item_ids)}
            """Question -> its number, in the order of the selection."""
            assert len(self._numbers) == len(manifest.item_ids), "a data set has no id twice"
            self._restarts: Counter[str] = Counter()
            """Case -> number of restarts before the attempt in progress."""
            self._exaid: dict[str, Totals] = {}
            """Case -> EXAID's totals in the attempt in progress, until EXAID completes it."""
            self._read_back(again, with_exaid=with_exaid)
            if earlier is not None:
                self._check_ledger(earlier)
            self.write_manifest()
            self._opened = opened.pop_all()

    def locked(self) -> AbstractContextManager[object]:
        """Return a context that holds the run's lock until it ends, even if the store is closed."""
        return self._lock

    def close(self) -> None:
        """Close the files and release the lock."""
        self._opened.close()

    def append(self, record: SampleRecord) -> None:
        """Write a record. A kill cannot lose it; a power failure can until `synced` returns.

        Raises:
            StorageError: The record cannot be written; no part of it is left in the file.
        """
        if restart := self._restarts[record.case_id]:
            record = record.model_copy(update={"restart": restart})
        self._append(self._samples, record)
        self._check_place()
        number = self._number((record.question_id, record.epoch))
        assert number is not None, "a question of this run"
        self._attempts[number] += 1
        self._count(record)
        self.manifest.invocations[-1].new_records += 1

    def attempts(self, item: ItemKey) -> int:
        """Return the number of records of a question, including the one that counts."""
        number = self._number(item)
        return 0 if number is None else self._attempts[number]

    async def synced(self) -> None:
        """Wait until the records appended so far survive a power failure.

        Raises:
            StorageError: The disk does not take them.
        """
        with self._storage_errors():
            await self._samples.synced()

    def append_summaries(self, made: CaseSummaries) -> CaseSummaries:
        """Write EXAID's results for an answer, and return them with the ledger's token counts.

        Raises:
            StorageError: The line cannot be written; no part of it is left in the file.
        """
        assert self._summaries is not None, "only a run that EXAID watches has summaries"
        usage = exaid_usage(self._exaid.get(made.case_id, Totals()))
        made = made.model_copy(
            update={"exaid": made.exaid.model_copy(update={"token_usage": usage})}
        )
        self._append(self._summaries, made)
        if made.is_complete:
            self._exaid.pop(made.case_id, None)
            self.manifest.totals.add_summaries(made)
        return made

    def _append(self, log: LineLog, content: BaseModel) -> None:
        self._write(log, content.model_dump_json().encode())

    def _write(self, log: LineLog, line: bytes) -> None:
        with self._storage_errors():
            log.append(line)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = StorageError(
                f"cannot write to {self.folder}: {error.strerror}; what is finished is kept"
            )
            raise self.error from error

    def _check_place(self) -> None:
        """Check that the folder has not been moved or removed.

        Raises:
            StorageError: The folder was moved or removed; the records written are still in it,
                wherever it is now.
        """
        if not self._samples.is_in_place():
            self.error = StorageError(
                f"{self.folder} was moved or removed during the run; what is finished "
                "is in it, wherever it is now: put it back"
            )
            raise self.error

    def book(self, row: CallRow) -> None:
        """Append a row to the ledger.

        Raises:
            StorageError: The row cannot be written.
        """
        if restart := self._restarts[row.case_id]:
            row = replace(row, restart=restart)
        self._write(self._calls, compact_json(row.as_dict()))
        self.manifest.spent.add(row)
        self._add_exaid(row)

    def _add_exaid(self, row: CallRow) -> None:
        if row.role in EXAID_ROLES:
            self._exaid[row.case_id] = self._exaid.get(row.case_id, Totals()) + Totals.of(row)

    def restart(self, item: ItemKey) -> None:
        """Record that a question was restarted: later ledger rows belong to a new attempt."""
        case_id = make_case_id(*item)
        self._restarts[case_id] += 1
        self._exaid.pop(case_id, None)

    def finish(self, *, finished: bool, ended_at: str, reason: str = "") -> None:
        """Write `run.json` and the JSON array.

        Args:
            finished: Whether every question of the run has a record that counts as finished, and
                EXAID has completed it.
            ended_at: End time, ISO 8601, UTC.
            reason: Reason for stopping; empty when the run is finished.

        Raises:
            StorageError: A file cannot be written; the records are kept.
        """
        self._check_place()
        self.manifest.finished = finished
        self.manifest.invocations[-1].ended_at = ended_at
        self.manifest.invocations[-1].reason = reason
        try:
            self._samples.sync()
            self._calls.sync()  # `run.json` counts its rows
            with whole_file(self.array_path, sync=True, private=self.is_private) as file:
                file.writelines(self._array())
            self.write_manifest()  # last: a run without its array is not finished
        except OSError as error:
            raise StorageError(
                f"cannot write {self.array_path}: {error.strerror}; every finished question is in "
                f"{self.folder / 'samples.jsonl'}"
            ) from error

    def recount(self) -> Counter[str]:
        """Recompute the totals from the files; a question that was answered again counts once.

        Returns:
            Error -> number of questions that ended in `api_error` with it.

        Raises:
            StorageError: The folder was moved or removed.
        """
        self._check_place()
        self._settle_exaid()
        totals, causes = RunTotals(), Counter[str]()
        right, answers = self._zeros(), self._zeros()  # by number in the first epoch
        summaries = SummariesFile(self._summaries_path)
        for item, attempt, record in self._records(self._places()):
            totals.add(record)
            number = self._numbers[record.question_id]
            right[number] += bool(record.correct)
            answers[number] += record.status is not Status.SKIPPED
            if made := _made(summaries, item, attempt):
                totals.add_summaries(made)
            if record.status is Status.API_ERROR:
                causes[record.error or ""] += 1
        if totals.epochs > 1:
            pairs = zip(right, answers, strict=True)
            shares = Counter(f"{correct}/{count}" for correct, count in pairs if count)
            totals.right = dict(sorted(shares.items()))
        self.manifest.totals = totals
        return causes

    def _settle_exaid(self) -> None:
        """Write EXAID's usage for answers it has not completed, so that all totals add up."""
        if self._summaries is None or not self._exaid:
            return
        summaries = SummariesFile(self._summaries_path)
        for item, attempt, record in self._records(self._places()):
            if record.case_id not in self._exaid:
                continue
            made = _made(summaries, item, attempt) or CaseSummaries(
                question_id=record.question_id,
                epoch=record.epoch,
                case_id=record.case_id,
                attempt=attempt,
                exaid=record.exaid,
                watched=record.watched,
                is_complete=False,
            )
            if made.is_complete:
                continue
            if made.exaid.token_usage != exaid_usage(self._exaid[record.case_id]):
                with suppress(StorageError):  # kept in `self.error`
                    self.append_summaries(made)

    def write_manifest(self) -> None:
        """Write `run.json` atomically."""
        content = to_json(self.manifest, indent=2)
        replace_file(self.folder / "run.json", content, sync=True)

    def _read_back(self, again: Collection[Status], *, with_exaid: bool) -> None:
        """Restore state from the existing records and ledger rows."""
        summaries = SummariesFile(self._summaries_path)
        of_records: dict[str, int] = {}  # case -> restart of its record
        places = self._places()
        _, self._attempts = places
        for item, attempt, record in self._records(places):
            if record.status in again or (record.is_incomplete and Status.API_ERROR in again):
                continue
            self.done.add(item)
            of_records[record.case_id] = record.restart
            self._count(record)
            made = _made(summaries, item, attempt)
            if made is not None and (made.is_complete or not with_exaid):
                self.manifest.totals.add_summaries(made)
            elif with_exaid and record.schema_version != _WITH_EXAIDS_PART:
                self.unsummarised.append(item)
        left = {make_case_id(*item) for item in self.unsummarised}
        self._restarts.update({case: n for case, n in of_records.items() if case in left})
        for _, row in read_calls(self._calls.path):
            self.manifest.spent.add(row)
            if row.case_id in left and row.restart == of_records[row.case_id]:
                self._add_exaid(row)
            elif row.case_id not in of_records and row.case_id != PREPARE:
                self._restarts[row.case_id] = max(self._restarts[row.case_id], row.restart + 1)

    def _check_ledger(self, earlier: RunManifest) -> None:
        """Check that the ledger has all replies that `run.json` counts, and is not gone.

        After a kill it has more; with fewer, totals and limits would forget what was paid. The
        records tell only whether it is gone: unlike them, its last rows may be lost in a power
        failure, which must not end a run for good.

        Raises:
            ConfigError: Rows were lost, and the user has not taken `spent` out of `run.json`.
        """
        kept, counted = (
            spent.calls + spent.cached_calls for spent in (self.manifest.spent, earlier.spent)
        )
        counted = counted if kept else max(counted, self.manifest.totals.calls)
        if kept < counted and "spent" in earlier.model_fields_set:
            raise ConfigError(
                f"{self._calls.path} holds {kept:,} of the {counted:,} replies that this run has "
                "had, so that totals and limits would be wrong; put the file back, or take spent "
                "out of run.json to go on without the lost ones, or start with --fresh, which "
                "keeps this run under another name"
            )

    def _records(self, places: _Places) -> Iterator[tuple[ItemKey, int, SampleRecord]]:
        """Yield (question, answer number, record) of the records that count, in file order."""
        path, (offsets, attempts) = self._samples.path, places
        numbers = [number for number, attempt in enumerate(attempts) if attempt]
        numbers.sort(key=offsets.__getitem__)
        lines = lines_at(path, map(offsets.__getitem__, numbers))
        for number, line in zip(numbers, lines, strict=True):
            try:
                record = SampleRecord.model_validate_json(line)
            except ValidationError as error:
                what = f"is not a record ({problem_of(error)})"
                line_number = number_of(path, offsets[number])
                raise damaged(path, line_number, what, _ASKED_AGAIN) from error
            yield self._item(number), attempts[number], record

    def _places(self) -> _Places:
        """Return where the last record of each question is.

        Records of a question or an epoch that this run does not have are skipped.
        """
        offsets, attempts = self._zeros(), self._zeros()
        for line_number, offset, line in whole_lines(self._samples.path):
            try:
                number = self._number(itemgetter("question_id", "epoch")(json.loads(line)))
                if number is not None:
                    offsets[number] = offset
                    attempts[number] += 1
            except MALFORMED as error:
                raise damaged(
                    self._samples.path, line_number, "is not a record", _ASKED_AGAIN
                ) from error
        return offsets, attempts

    def _zeros(self) -> array[int]:
        """Return a 0 for each question in each epoch, in the order of the selection."""
        return array("q", bytes(8 * len(self.manifest.item_ids) * self.manifest.epochs))

    def _number(self, item: ItemKey) -> int | None:
        """Return the place of a question in the arrays; None for one that the run does not have."""
        id_, epoch = item
        number = self._numbers.get(id_)
        if number is None or not 1 <= epoch <= self.manifest.epochs:
            return None
        return (int(epoch) - 1) * len(self._numbers) + number  # another program may write 1.0

    def _item(self, number: int) -> ItemKey:
        epoch, place = divmod(number, len(self._numbers))
        return self.manifest.item_ids[place], epoch + 1

    def _count(self, record: SampleRecord) -> None:
        self.manifest.totals.add(record)
        for served in filter(None, record.model.split(", ")):
            if served not in self.manifest.models_served:
                self.manifest.models_served.append(served)

    def _array(self) -> Iterator[bytes]:
        """Yield the array in chunks, one record per line, in the order of the selection."""
        offsets, attempts = self._places()
        numbers = [number for number, attempt in enumerate(attempts) if attempt]
        summaries = SummariesFile(self._summaries_path)
        yield b"["
        lines = lines_at(self._samples.path, map(offsets.__getitem__, numbers))
        for count, (number, line) in enumerate(zip(numbers, lines, strict=True)):
            attempt = attempts[number]
            if summaries.has(self._item(number), attempt):
                line = to_json(summaries.put_into(json.loads(line), attempt))
            yield (b",\n" if count else b"\n") + line.rstrip()
        yield b"\n]\n"

    def _is_of_other_settings_and_empty(self, manifest: RunManifest) -> bool:
        return holds_nothing(self.folder) and (
            (earlier := read_manifest(self.folder)) is not None
            and earlier.config_hash != manifest.config_hash
        )

    def _keep_earlier_run(self, name: str, now: datetime) -> None:
        file = self.folder / ".lock"
        if not self.array_path.exists() and all(path == file for path in self.folder.iterdir()):
            return
        self.kept_as = f"{name}.{now:%Y%m%dT%H%M%S.%f}"
        lock = self._lock
        if os.name == "nt":  # renames no folder with an open file, also not of another process
            lock.release()
        self.folder.rename(self.folder.with_name(self.kept_as))
        if self.array_path.exists():
            self.array_path.rename(self.array_path.with_name(f"{self.kept_as}.json"))
        self._make_folder()
        self._lock = _locked(self.folder)
        lock.release()

    def _make_folder(self) -> None:
        if self.is_private:
            make_private_folder(self.folder)
            tighten(self.folder)  # in case the folder already existed
        else:
            self.folder.mkdir(parents=True, exist_ok=True)


def _made(summaries: SummariesFile, item: ItemKey, attempt: int) -> CaseSummaries | None:
    """Return EXAID's results for an answer so far; None without a line for it."""
    line = summaries.line_of(item, attempt)
    try:
        return None if line is None else CaseSummaries.model_validate_json(line)
    except ValidationError as error:
        raise summaries.damaged(item, attempt) from error


def _locked(folder: Path) -> filelock.BaseFileLock:
    lock = filelock.FileLock(folder / ".lock", blocking=False)
    try:
        with warnings.catch_warnings():
            # Without locks of the system, filelock uses one that tells by its content who holds it.
            warnings.filterwarnings("ignore", "flock not supported")
            lock.acquire()
    except filelock.Timeout:
        raise ConfigError(
            f"another process is writing to {folder}; wait for it, or give another --output-dir"
        ) from None
    return lock
