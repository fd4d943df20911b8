"""Reads the output of a run, from this program or another, into one row per question."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from mdagents.records.served import is_served, refusal_of_served
from mdagents.records.summaries import SummariesFile
from mdagents.scoring.fields import count_of, object_of, plain, text_of
from mdagents.scoring.formatting import counts
from mdagents.scoring.forms.form import Form
from mdagents.scoring.forms.mdagents import MDAGENTS, OURS
from mdagents.scoring.forms.table import form_of
from mdagents.scoring.other_files import kind_of
from mdagents.scoring.result_file import LinesFile, ResultFile, open_result, reading, refusal
from mdagents.scoring.scored_row import Item, ScoredRow, SeveralRightError, make_row
from mdagents.scoring.selection import Selection
from mdagents.scoring.verdict import OUTCOME, verdict_of
from mdagents.settings import Status
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.files.matching import matching
from mdagents_llm.files.regular_file import read_regular, regular_file
from mdagents_llm.text import counted

_NAMES_SHOWN = 8  # fields listed in a message
_ENDINGS = (".json", ".jsonl", ".ndjson", ".eval")


class Repeated(StrEnum):
    """Handling of records that repeat the id, epoch and question of an earlier one."""

    FIRST = "first"
    """Only the first record counts."""
    EPOCHS = "epochs"
    """Each record is an additional epoch."""


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The results of a run, as stored on disk."""

    path: Path
    rows: tuple[ScoredRow, ...]
    """Rows of a run by epoch, in the order of its selection; those of another file in its order."""
    manifest: Mapping[str, Any]
    """Content of `run.json`; empty for another program's file."""
    read_as: Mapping[str, int]
    """Program that wrote the records -> number of rows."""
    reading_notices: tuple[str, ...]
    """Notices on the handling of irregular records, each with a count."""

    @property
    def folder(self) -> Path:
        """Folder of the run, which may be missing."""
        return run_folder(self.path)

    def records(self) -> Iterator[tuple[ScoredRow, Mapping[str, Any]]]:
        """Yield (row, record) for each row in order; JSON Lines are loaded one at a time.

        Raises:
            ConfigError: The file can no longer be read.
        """
        file = open_result(self.path)
        summaries = _summaries_of(file)
        found = file.fetch(row.place for row in self.rows)
        for row, record in zip(self.rows, found, strict=True):
            form = form_of(record)
            assert form is not None, "it was read before"
            try:
                elements = form.elements(record)
            except RecursionError as error:  # of a deeper call stack than when it was read first
                raise refusal(error, f"{self.path}: record {row.question_id}") from None
            element = elements[row.attempt - 1] if len(elements) > 1 else elements[0]
            yield row, summaries.put_into(element, row.attempt) if summaries else element

    @property
    def notices(self) -> list[str]:
        """Caveats to show with a score."""
        names = ("dataset_notice", "model_notice")
        notices = [plain(text_of(self.manifest, name)) for name in names]
        planned = Selection(self.manifest).size
        of_all = counted(planned, "question")
        if self.manifest and len(self.rows) < planned:
            notices.append(f"unfinished: {len(self.rows)} of {of_all} have a record")
        stopped = sum(row.status == Status.LIMIT for row in self.rows)
        if self.manifest and not self.manifest.get("finished") and stopped:
            notices.append(
                f"unfinished: a limit stopped {stopped} of {of_all}, and the same "
                "command answers them again"
            )
        notices += [self._of_batches, self._of_ledger]
        spent = object_of(self.manifest, "spent")
        if estimated := count_of(spent.get("estimated_calls")):
            replies = counted(estimated, "reply", "replies")
            notices.append(
                f"tokens and costs of {replies} are estimated by the text (4 bytes "
                "a token), as the endpoint reported no valid ones: see usage_estimated in "
                "calls.jsonl"
            )
        if count_of(spent.get("settings_refused")):
            notices.append(
                "a model refused a setting (temperature, seed, stream), and was asked without it "
                "from then on: see setting_refused and stream_refused in calls.jsonl"
            )
        return [*(notice for notice in notices if notice), *self.reading_notices]

    @property
    def _of_batches(self) -> str:
        """Notice that calls were made in cheaper batches; empty if none were."""
        spent = object_of(self.manifest, "spent")
        batched, fresh, kept = (
            count_of(spent.get(name)) or 0 for name in ("batched_calls", "calls", "cached_calls")
        )
        if not batched:
            return ""
        whose = "all" if batched == fresh + kept else "some"
        return f"{whose} calls came in batches, which cost less than calls made at once"

    @property
    def _of_ledger(self) -> str:
        """Notice that rows of the ledger were lost; empty if none were."""
        spent = object_of(self.manifest, "spent")
        paid = sum(count_of(spent.get(name)) or 0 for name in ("calls", "cached_calls"))
        try:
            kept = _lines_of(self.folder / "calls.jsonl") if paid else 0
        except FileNotFoundError:
            return "calls.jsonl is missing, so that there are no figures of single calls"
        except OSError as error:
            return (
                f"calls.jsonl cannot be read ({error.strerror}), so whether it is whole is unknown"
            )
        if kept >= paid:
            return ""
        replies = counted(paid, "reply", "replies")
        return (
            f"calls.jsonl has {counted(kept, 'row')}, and the run had {replies}: rows were lost "
            "since, so that figures of single calls are incomplete"
        )

    @property
    def name(self) -> str:
        """Name of the run, or of the file."""
        path = self.path.resolve()  # also resolves `.` and `samples.jsonl`
        if path.name == "samples.jsonl":
            return path.parent.name
        return path.name if path.is_dir() else _without_ending(path).name


def _lines_of(path: Path) -> int:
    """Return the number of whole lines of a file of JSON objects; the last may lack its line break.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    lines, last = 0, b""
    with regular_file(path) as file:
        for chunk in iter(partial(file.read, 1 << 16), b""):
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    return lines + (last == b"}")


def newest_output(output_dir: Path) -> Path:
    """Return the most recently written run: its JSON array, or its folder if that is newer.

    A folder is newer if somebody edited its records, or if the array is outdated or missing. Runs
    without a finished question are ignored, and so are folders of a server.

    Raises:
        ConfigError: The folder holds no run with a finished question, or `run.json` cannot be read.
    """
    arrays = filter(Path.is_file, matching(output_dir, "*.json"))
    times = {file: file.stat().st_mtime for file in arrays}
    for file in filter(Path.is_file, matching(output_dir, "*/samples.jsonl")):
        if is_served(file.parent):
            continue
        status = file.stat()
        array = file.parent.with_name(f"{file.parent.name}.json")
        # A run that has just started has nothing to score.
        if status.st_size and times.get(array, -1) < status.st_mtime:
            times[file.parent] = status.st_mtime
    if not times:
        raise ConfigError(
            f"there is no run in {output_dir}; answer some questions first, or give --input"
        )
    newest = max(times, key=lambda path: times[path])
    return run_folder(newest) if is_outdated(newest) else newest


def is_outdated(path: Path) -> bool:
    """Return whether a file is the JSON array of a run whose latest start has not written it.

    A run writes its array when it ends, and then that end to `run.json`. Times of files say nothing
    of it: a copy or a checkout changes them.

    Raises:
        ConfigError: `run.json` cannot be read.
    """
    folder = run_folder(path)
    if path.suffix != ".json" or not (folder / "samples.jsonl").is_file():
        return False
    starts = _manifest(folder / "run.json").get("invocations")
    last = starts[-1] if isinstance(starts, list) and starts else None
    return isinstance(last, dict) and not last.get("ended_at")


def read_output(path: Path, repeated: Repeated | None = None) -> RunOutput:
    """Read the results of a run, each record once.

    Args:
        path: Path as accepted by `open_result`; the folder of a run is read instead of its array if
            the array is outdated.
        repeated: Handling of repeated records in another program's file; None rejects them.

    Raises:
        ConfigError: The file is missing or of another form, it has a server's answers, or a record
            is invalid; the message names it.
    """
    if is_outdated(path):
        folder = run_folder(path)
        output = _read_output(folder, repeated)
        notice = f"{path} is older than the records in {folder}, which were read instead"
        return replace(output, reading_notices=(notice, *output.reading_notices))
    try:
        return _read_output(path, repeated)
    except ConfigError as error:
        samples = run_folder(path) / "samples.jsonl"
        if path == samples or not (path.is_file() and samples.is_file()):
            raise
        what = f"{error}; its records are also in {samples.parent}: delete it, or give that folder"
        raise ConfigError(what) from error


def _read_output(path: Path, repeated: Repeated | None) -> RunOutput:
    file = open_result(path)
    if isinstance(file, LinesFile) and is_served(file.path.parent):
        raise ConfigError(refusal_of_served(file.path.parent))
    is_lines = isinstance(file, LinesFile)
    manifest = _manifest(run_folder(file.path) / "run.json")
    appended = (OURS, MDAGENTS) if manifest else (OURS,) if is_lines else ()
    selection = Selection(manifest)
    reader = _Reader(file.path, appended, repeated, selection)
    summaries = _summaries_of(file)
    for number, (place, record) in enumerate(file, start=1):
        attempt = 1
        if summaries is not None and isinstance(record, dict):
            attempt = 1 + reader.attempts(record.get("question_id"), record.get("epoch"))
            record = summaries.put_into(record, attempt)
        reader.add(record, number, place, attempt)
    notices = (*file.notices, *reader.notices())
    # An array has the order of the selection, or one that somebody gave it.
    rows = reader.take_rows(selection.ids if is_lines else ())
    if reader.several_right and not rows:
        raise ConfigError(
            f"{file.path}: several options are right in each record, which no score here counts"
        )
    return RunOutput(file.path, tuple(rows), manifest, reader.read_as, notices)


def nothing_finished(run: RunOutput, name: object) -> ConfigError:
    """Return the error for a run without a row, with the notices on records that were left out.

    Args:
        run: The run.
        name: What the message calls it.
    """
    return ConfigError("; ".join([f"{name} holds no finished question", *run.reading_notices]))


def score_record(
    path: Path,
    record: Any,
    number: int,
    place: int,
    attempt: int,
    selection: Selection,
) -> ScoredRow | None:
    """Score one record of our `samples.jsonl`; None if it does not belong to its run.

    Args:
        path: Path of the file, named in messages.
        record: The record, with EXAID's part if there is one.
        number: Number of the record, for messages.
        place: Place of the record, as accepted by `ResultFile.fetch`.
        attempt: Number of the record among those of its question, from 1.
        selection: Questions and epochs of the run.

    Raises:
        ConfigError: The record cannot be scored; the message names it.
    """
    reader = _Reader(path, (OURS, MDAGENTS), None, selection)
    reader.add(record, number, place, attempt)
    rows = reader.take_rows()
    return rows[0] if rows else None


def run_folder(path: Path) -> Path:
    """Return the run folder that a result file belongs to; it may be missing."""
    if path.is_dir():
        return path
    return path.parent if path.name == "samples.jsonl" else _without_ending(path)


def _without_ending(path: Path) -> Path:
    """Return a path without a result file extension; `Qwen2.5-72B` stays unchanged."""
    return path.with_suffix("") if path.suffix in _ENDINGS else path


def _summaries_of(file: ResultFile) -> SummariesFile | None:
    """Open EXAID's results if they are stored separately from the records, else return None."""
    if not isinstance(file, LinesFile):
        return None
    path = file.path.with_name("summaries.jsonl")
    return SummariesFile(path) if path.is_file() else None


def _manifest(path: Path) -> Mapping[str, Any]:
    with reading(path):
        try:
            content = load_json(read_regular(path), str(path))
        except (FileNotFoundError, NotADirectoryError):
            content = {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a JSON object")
    return content


class _Reader:
    """Converts records to rows and counts irregular records.

    Args:
        path: Path named in messages.
        appended: Forms in which a later record of a question replaces an earlier one.
        repeated: Handling of repeated records in other forms; None rejects them.
        selection: Questions and epochs of the run; our records of others are skipped.
    """

    def __init__(
        self,
        path: Path,
        appended: Sequence[Form],
        repeated: Repeated | None,
        selection: Selection,
    ) -> None:
        # The key of a row is the id of the question in epoch 1, and (id, epoch) in other epochs:
        # pairs for all would take twice the memory.
        self._rows: dict[str | Item, ScoredRow] = {}
        self._later: dict[str, int] = {}  # id -> digest of a question that began in another epoch
        self.read_as = Counter[str]()
        """Name of a form -> number of rows."""
        self._path, self._appended = str(path), appended  # str: a Path is slow to format
        self._selection = selection
        self._number = 0
        self._has_text = False  # the question of the current record
        self._names: dict[tuple[str, int], str] = {}  # (id, digest) -> id with a number
        self._numbers: dict[str, Iterator[int]] = {}  # id -> numbers not tried yet
        self._epochs: dict[Item, int] = {}  # what a record states -> first epoch not tried yet
        self._readings: dict[int, Any] = {}  # digest of a question -> reading that counts
        self._verdicts = Counter[tuple[str, Status]]()
        self._repeated = repeated
        self._unnamed = self._renamed = self._replaced = self._left_out = self._foreign = 0
        self._passed_over = self._in_epochs = self._ambiguous = self._again = 0
        self._first_of: dict[int, str] = {}  # digest of a question without an id -> its first name
        self.several_right = 0
        """Number of records in which several options are right, which are left out."""

    def take_rows(self, ids: Sequence[str] = ()) -> list[ScoredRow]:
        """Return the rows and forget them, so that their index frees its memory.

        Args:
            ids: Questions in the order that rows have within an epoch, before other questions;
                empty for the order of the file.
        """
        if any(row.epoch == 0 for row in self._rows.values()):  # the program counts from 0
            for row in self._rows.values():
                row.epoch += 1
        first = (self._rows.pop(id_, None) for id_ in ids)
        rows = [row for row in first if row is not None]
        others = list(self._rows.values())  # of later epochs, or of other questions
        self._rows.clear()
        if ids and others:
            numbers = {id_: number for number, id_ in enumerate(ids)}
            others.sort(key=lambda row: (row.epoch, numbers.get(row.question_id, len(ids))))
        return rows + others

    def attempts(self, question_id: Any, epoch: Any) -> int:
        """Return how many records of a question and epoch were added so far, in our own runs."""
        if not (isinstance(question_id, str) and isinstance(epoch, int)):
            return 0
        row = self._rows.get(_key(question_id, epoch))
        return 0 if row is None else row.attempt

    def add(self, record: Any, number: int, place: int, attempt: int) -> None:
        """Score a record and add its rows.

        Raises:
            ConfigError: The record cannot be scored; the message gives the reason.
        """
        where = f"{self._path} record {number}"
        self._number = number
        if not isinstance(record, dict):
            raise ConfigError(f"{where} is not a JSON object")
        form = form_of(record)
        if form is None:
            kind = kind_of(record, Path(self._path)) if number == 1 else ""
            raise ConfigError(f"{self._path} is {kind}" if kind else f"{where} {_unknown(record)}")
        if form is OURS and not self._selection.has(record):
            self._foreign += 1
            return
        if form.reading:
            reading = record.get(form.reading)
            question = hash(repr([form.name, *map(record.get, form.question)]))
            if reading != self._readings.setdefault(question, reading):
                self._left_out += 1
                return
        try:
            elements, before = form.elements(record), self._passed_over
            for reply, element in enumerate(elements, start=1):
                # A form that passes no outcome on leaves it to the record's own fields.
                stated = {n: element[n] if n in element else record.get(n) for n in OUTCOME}
                if stated["error"] is None:
                    stated["error"] = object_of(element, "response").get("error")
                verdict = verdict_of(stated)
                if verdict.foreign:
                    self._verdicts[verdict.foreign, verdict.status] += 1
                self._ambiguous += element.get("is_ambiguous") is True
                self._has_text = text_of(element, "question") != ""
                self._keep(
                    make_row(
                        element,
                        verdict.status,
                        self._name,
                        number=number,
                        place=place,
                        attempt=reply if len(elements) > 1 else attempt,
                        where=where,
                        gold=form.gold,
                        states_letter=form is OURS,
                    ),
                    form,
                    where,
                )
                if self._passed_over > before:
                    break  # with its other replies
        except SeveralRightError:
            self.several_right += 1
        except RecursionError as error:
            raise refusal(error, where) from None

    def _name(self, stated: str, content: int) -> str:
        """Return the id of a row, with a number appended if another question has the same id.

        A question without an id that occurs again keeps its name if the user said how to handle
        repeated records; otherwise it counts as another one, as data sets repeat questions.
        """
        first = self._selection.id_of(stated) or f"sample_{self._number}"
        if not stated and self._has_text:
            earlier = self._first_of.setdefault(content, first)
            if self._repeated is not None:
                first = earlier
            self._again += first != earlier
        name = self._names.get((first, content), first)
        if self._content_of(name, content) != content:
            numbers = self._numbers.setdefault(first, itertools.count(2))
            names = (f"{first}#{number}" for number in numbers)
            name = next(name for name in names if self._content_of(name, content) == content)
            self._names[first, content] = name
        self._unnamed += not stated
        self._renamed += bool(stated) and name != first
        return name

    def _content_of(self, name: str, default: int) -> int:
        row = self._rows.get(name)
        return self._later.get(name, default) if row is None else row.content

    def _keep(self, row: ScoredRow, form: Form, where: str) -> None:
        if self._repeated is Repeated.EPOCHS and form not in self._appended:
            stated = row.item
            row.epoch = self._epochs.get(stated, row.epoch)
            while _key(*row.item) in self._rows:
                row.epoch += 1
            self._epochs[stated] = row.epoch + 1
            self._in_epochs += row.item != stated
        key = _key(*row.item)
        if key not in self._rows:
            self._rows[key] = row
            if key != row.question_id:
                self._later.setdefault(row.question_id, row.content)
            self.read_as[form.name] += 1
        elif form in self._appended:
            self._rows[key] = row
            self._replaced += 1
        elif self._repeated is Repeated.FIRST:
            self._passed_over += 1
        else:
            epoch = f" in epoch {row.epoch}" if row.epoch != 1 else ""
            raise ConfigError(
                f"{where} is question {row.question_id}{epoch} once more; --repeated-ids first "
                "scores the first record of each question, --repeated-ids epochs all as epochs"
            )

    def notices(self) -> Iterator[str]:
        """Yield notices on the handling of irregular records."""
        without = sum(not row.options for row in self._rows.values())
        readings = list(dict.fromkeys(map(str, self._readings.values())))
        counting = f"{', '.join(readings)} {'counts' if len(readings) == 1 else 'count'}"
        for count, what in (
            (self._unnamed, "records without an id, called sample_N by their place in the file"),
            (
                self._again,
                "records without an id that repeat an earlier question and count as further ones "
                "(--repeated-ids first leaves them out, epochs reads them as epochs)",
            ),
            (self._renamed, "records with the id of another question, now with a number (ID#2)"),
            (self._replaced, "records that a later one of the same question replaced"),
            (self._passed_over, "records of a question that an earlier one answers, left out"),
            (self._in_epochs, "records of a question that an earlier one answers, as epochs"),
            (self._left_out, f"other readings of the same replies, left out ({counting})"),
            (
                self._foreign,
                "records of a question or an epoch that this run does not have, left out",
            ),
            (
                self._ambiguous,
                "answers whose target is the letter or number of an option and the text of another "
                "one, read as the former",
            ),
            (self.several_right, "records in which several options are right, left out"),
            (without, "records without options, where any letter from A to J was read"),
        ):
            if count:
                yield f"{what}: {count}"
        lacking = Counter[str]()
        for row in self._rows.values():
            if row.lacks and row.status == Status.ANSWERED:
                lacking.update(row.lacks)
        for ended, count in sorted(lacking.items()):
            how = f"ended in {ended}" if ended else "failed"
            yield f"answers of a team that went on without a turn that {how}: {count}"
        for (foreign, status), count in self._verdicts.most_common():
            failed = status != Status.ANSWERED
            how = f"counts as {status}" if failed else "was not used, the reply decides"
            yield f"{foreign} is not one of ours and {how}: {count}"
        if len(self.read_as) > 1:
            yield "records of several programs: " + counts(self.read_as)


def _key(question_id: str, epoch: int) -> str | Item:
    return question_id if epoch == 1 else (question_id, epoch)


def _unknown(record: Mapping[str, Any]) -> str:
    for name, value in record.items():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict) and form_of(first) is not None:
            return f"holds records in its field {name!r}; save that array as a file of its own"
    names = ", ".join(map(repr, list(record)[:_NAMES_SHOWN])) or "nothing"
    needed = "'label'" if "response" in record else "'label' and 'response'"
    return (
        f"is of no form that is read (it holds {names}); it needs {needed}, or the "
        "fields of a program in docs/how-to/other-results.md"
    )
