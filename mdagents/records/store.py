"""A run on disk: `{name}.json` and the folder `{name}/` beside it.

A record counts as finished when its line is in `samples.jsonl` and on the disk. A process that is
killed leaves at most a torn last line, which is dropped at the next start; a question that is
answered again later has several lines, of which the last one counts. What EXAID made of an answer
follows in `summaries.jsonl`; the JSON array holds both in one element.
"""

from __future__ import annotations

import errno
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path

import filelock
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json

from infra.errors import ConfigError, StorageError
from infra.files.whole_file import whole_file
from infra.ledger import REPLIED, CallRow
from mdagents.records.jsonl import LineLog
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey, SummariesFile
from mdagents.settings import Status

SCHEMA_VERSION = "1.0.0"

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_WITH_EXAIDS_PART = "1.0.0"
"""Version of records that hold EXAID's part themselves."""


class ExaidTotals(BaseModel):
    """What EXAID did in a run: sums over `summaries.jsonl`."""

    model_config = ConfigDict(extra="forbid")

    questions: int = 0
    """Answers that it is done with."""
    summarised: int = 0
    """Those with a summary that says something and was made from text."""
    summaries: int = 0
    """Such summaries."""
    alerts: int = 0
    """Segments with a critical alert."""
    missed_alerts: int = 0
    """Those that no summary covers."""
    flagged_terms: int = 0
    """Numbers, doses and drugs in summaries that nobody said."""
    left_out: dict[str, int] = {}
    """Why some of a question's text is in no summary -> questions."""

    def add(self, made: CaseSummaries) -> None:
        """Count what came of one more answer."""
        counting = made.counting
        self.questions += 1
        self.summarised += bool(counting)
        self.summaries += len(counting)
        self.alerts += made.alerts
        self.missed_alerts += made.watched.missed_alerts
        for summary in counting:
            terms = summary.get("unsupported_terms")
            self.flagged_terms += len(terms) if isinstance(terms, (list, tuple)) else 0
        if made.watched.tail_loss or len(counting) < len(made.exaid.summaries):
            why = made.watched.error or "the summaries say nothing of it"
            self.left_out[why] = self.left_out.get(why, 0) + 1


class RunTotals(BaseModel):
    """Sums over the records of a run."""

    model_config = ConfigDict(extra="forbid")

    questions: int = 0
    status_counts: dict[str, int] = {}
    correct: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = 0.0
    """None when the price of a model that was used is not known."""
    exaid_tokens: int = 0
    exaid: ExaidTotals = ExaidTotals()

    def add_summaries(self, made: CaseSummaries) -> None:
        """Count what EXAID made of one more answer."""
        self.exaid.add(made)
        self.exaid_tokens += made.exaid.token_usage.total_tokens

    def add(self, record: SampleRecord) -> None:
        """Count one more record."""
        usage = record.token_usage
        self.questions += 1
        self.status_counts[record.status] = self.status_counts.get(record.status, 0) + 1
        self.correct += bool(record.correct)
        self.calls += record.calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.total_tokens += usage.total_tokens
        known = self.cost_usd is not None and usage.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0) + (usage.cost_usd or 0) if known else None
        self.exaid_tokens += record.exaid.token_usage.total_tokens

    @property
    def scored(self) -> int:
        """Questions in the denominator of accuracy: all but the skipped ones."""
        return self.questions - self.status_counts.get(Status.SKIPPED, 0)

    @property
    def done(self) -> int:
        """Questions that nothing has kept from an end of their own."""
        counts = self.status_counts
        return self.questions - counts.get(Status.API_ERROR, 0) - counts.get(Status.LIMIT, 0)

    @property
    def could_not_work(self) -> bool:
        """Whether no reply came at all, or more than half of the questions ended in `api_error`.

        Such a run measures an endpoint, not a model: it is not finished.
        """
        errors = self.status_counts.get(Status.API_ERROR, 0)
        return self.scored > 0 and (self.calls == 0 or 2 * errors > self.scored)


class Spent(BaseModel):
    """What was really sent and paid, over all invocations: the sum of `calls.jsonl`."""

    model_config = ConfigDict(extra="forbid")

    calls: int = 0
    """Replies from providers."""
    cached_calls: int = 0
    """Replies that were kept from before; they cost nothing."""
    failed_attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None when the price of a model that was used is not known."""

    @property
    def total_tokens(self) -> int:
        """Input plus output."""
        return self.input_tokens + self.output_tokens

    def add(self, row: dict[str, object]) -> None:
        """Count one line of `calls.jsonl`."""
        if row["cached"]:
            self.cached_calls += 1
        elif row["outcome"] not in REPLIED:
            self.failed_attempts += 1
        else:
            self.calls += 1
            self.input_tokens += int(str(row["input_tokens"]))
            self.output_tokens += int(str(row["output_tokens"]))
            cost = row["cost_usd"]
            known = self.cost_usd is not None and cost is not None
            self.cost_usd = (self.cost_usd or 0.0) + float(str(cost)) if known else None


class Invocation(BaseModel):
    """One start of the program on this run."""

    model_config = ConfigDict(extra="forbid")

    started_at: str
    ended_at: str | None = None
    """None while it is under way, or when it was killed."""
    new_records: int = 0


class RunManifest(BaseModel):
    """`run.json`: what was run, with what, and what came out."""

    model_config = ConfigDict(extra="forbid")

    schema_version: str = SCHEMA_VERSION
    name: str
    config_hash: str
    """SHA-256 over everything that can change a result."""
    config: dict[str, object]
    """The effective configuration."""
    models: dict[str, str]
    """Role -> model that was asked for."""
    models_served: list[str] = []
    """As the endpoints name them."""
    dataset: str
    dataset_path: str
    """Relative to the working directory where it lies below it, else the file's name."""
    dataset_sha256: str
    dataset_notice: str
    """What a reader must know about the data set before reading a score; empty when nothing."""
    model_notice: str
    """The same about the models."""
    item_ids: list[str]
    items_hash: str
    """SHA-256 over ids and contents of the selected questions."""
    exemplars_sha256: str = ""
    """Of the file that few-shot takes its exemplars from; empty for other methods."""
    prompt_hashes: dict[str, str]
    git_revision: str | None
    """None outside a git checkout."""
    package_versions: dict[str, str]
    options: dict[str, object]
    """What `--resume` needs to go on: the flags that are not about this machine."""
    invocations: list[Invocation] = []
    finished: bool = False
    """Whether every selected question has a record."""
    totals: RunTotals = RunTotals()
    spent: Spent = Spent()


def is_full(error: OSError) -> bool:
    """Whether something cannot be written because there is no room."""
    return error.errno in _NO_ROOM


def run_name(
    model: str, dataset: str, level: str, baseline: str, samples: int, changes_hash: str
) -> str:
    """`{model}_{dataset}_{level}_{n}samples`.

    Args:
        model: As the run's models call it.
        dataset: Name of the data set.
        level: `adaptive`, or the difficulty that is forced.
        baseline: Stands before the samples; empty for the teams.
        samples: Number of questions.
        changes_hash: Stands at the end; empty when all settings are the default.
    """
    parts = (model, dataset, level, baseline, f"{samples}samples", changes_hash)
    name = "_".join(part for part in parts if part)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")


def case_files(folder: Path, case_id: str) -> tuple[Path, Path]:
    """(trace, run log of EXAID) of a case in the folder of a run."""
    return (
        folder / "traces" / f"{case_id}.trace.jsonl.gz",
        folder / "exaid" / f"{case_id}.jsonl.gz",
    )


def read_manifest(folder: Path) -> RunManifest | None:
    """`run.json` of a run; None when there is no run in the folder.

    Raises:
        ConfigError: It is there and cannot be read.
    """
    path = folder / "run.json"
    try:
        return RunManifest.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(
            f"{path} cannot be read as a run of this version ({type(error).__name__}); "
            "start with --fresh to keep it under another name"
        ) from error


def holds_nothing(folder: Path) -> bool:
    """Whether the run in a folder has no record."""
    samples = folder / "samples.jsonl"
    return not samples.is_file() or samples.stat().st_size == 0


def earlier_run(output_dir: Path, manifest: RunManifest) -> RunManifest | None:
    """The run of the same name that is there already, if it may be continued.

    Raises:
        ConfigError: It was made with other settings.
    """
    earlier = read_manifest(output_dir / manifest.name)
    if earlier is None or earlier.config_hash == manifest.config_hash:
        return earlier
    if holds_nothing(output_dir / manifest.name):
        return None  # a mistyped address, say; it is kept under a dated name
    differs = [
        name
        for name in ("items_hash", "exemplars_sha256", "models", "prompt_hashes", "options")
        if getattr(earlier, name) != getattr(manifest, name)
    ]
    raise ConfigError(
        f"{output_dir / manifest.name} holds a run that differs in "
        f"{', '.join(differs) or 'endpoint'}; start with --fresh to keep it under a dated name"
    )


def recorded_run(output_dir: Path, manifest: RunManifest) -> Path | None:
    """Folder of the other run with the same settings that EXAID watched; None for none.

    A finished one goes before an unfinished one, a later one before an earlier one.
    """
    candidates = []
    for path in output_dir.glob("*/exaid"):
        try:
            earlier = read_manifest(path.parent)
        except ConfigError:
            continue  # of another version; what is looked for is of this one
        if (
            earlier is not None
            and path.parent.name != manifest.name
            and earlier.config_hash == manifest.config_hash
        ):
            last = earlier.invocations[-1].started_at
            candidates.append((earlier.finished, last, path.parent))
    return max(candidates)[2] if candidates else None


class RunStore:
    """Writes a run as it goes, and goes on where an earlier process stopped.

    It holds the run's lock until it is closed. The lock is the operating system's: it ends with its
    holder, however that dies.

    Args:
        output_dir: Where runs are.
        manifest: Of this start; an earlier one of the same run is taken over.
        now: The time, for the name under which `fresh` keeps an earlier run.
        fresh: Keep an earlier run under a dated name and start anew.
        again: Statuses of records that do not count as finished.
        with_exaid: Whether EXAID watches.

    Raises:
        ConfigError: The folder cannot be written, another process holds it, or it holds a run with
            other settings.
        StorageError: There is no room.
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
    ) -> None:
        self.folder = output_dir / manifest.name
        self.array_path = output_dir / f"{manifest.name}.json"
        self.kept_as = ""
        """Name under which `fresh` kept an earlier run; empty for none."""
        self.error: StorageError | None = None
        """Why something could not be written, whoever met that."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder)
            if fresh or self._is_of_other_settings_and_empty(manifest):
                self._keep_earlier_run(manifest.name, now)
            earlier = earlier_run(output_dir, manifest)
            if earlier is not None:
                manifest.invocations = earlier.invocations + manifest.invocations
            self.manifest = manifest
            self._samples = LineLog(self.folder / "samples.jsonl", sync=True)
            self._calls = LineLog(self.folder / "calls.jsonl", sync=False)
            self._summaries_path = self.folder / "summaries.jsonl"
            self._summaries = None
            if with_exaid or self._summaries_path.is_file():
                self._summaries = LineLog(self._summaries_path, sync=False)
            self.done: set[ItemKey] = set()
            """Questions that were finished already."""
            self.unsummarised: list[ItemKey] = []
            """Those of them that EXAID is not done with."""
            self.attempts: Counter[ItemKey] = Counter()
            """How many records each question has had, the one that counts included."""
            self._read_back(again, with_exaid=with_exaid)
            self.write_manifest()
        except OSError as error:
            if is_full(error):
                raise StorageError(f"cannot write to {output_dir}: {error.strerror}") from error
            raise ConfigError(
                f"cannot write to {output_dir}: {error.strerror}; choose another --output-dir"
            ) from error

    def close(self) -> None:
        """Close the files and let go of the lock."""
        self._samples.close()
        self._calls.close()
        if self._summaries is not None:
            self._summaries.close()
        self._lock.release()

    def append(self, record: SampleRecord) -> None:
        """Write a record; it is on the disk when this returns.

        Raises:
            StorageError: It is not, and no part of it is.
        """
        self._append(self._samples, record)
        self.attempts[record.question_id, record.epoch] += 1
        self._count(record)
        self.manifest.invocations[-1].new_records += 1

    def append_summaries(self, made: CaseSummaries) -> None:
        """Write what EXAID made of an answer.

        Raises:
            StorageError: It cannot be written, and no part of it is.
        """
        assert self._summaries is not None, "only a run that EXAID watches has summaries"
        self._append(self._summaries, made)
        self.manifest.totals.add_summaries(made)

    def _append(self, log: LineLog, content: BaseModel) -> None:
        self._write(log, content.model_dump_json().encode())

    def _write(self, log: LineLog, line: bytes) -> None:
        try:
            log.append(line)
        except OSError as error:
            self.error = StorageError(
                f"cannot write to {self.folder}: {error.strerror}; what is finished is kept"
            )
            raise self.error from error

    def book(self, row: CallRow) -> None:
        """Write a row of the ledger.

        Raises:
            StorageError: It cannot be written.
        """
        content = row.as_dict()
        self._write(self._calls, json.dumps(content).encode())
        self.manifest.spent.add(content)

    def finish(self, *, finished: bool, ended_at: str) -> None:
        """Write `run.json` and the JSON array.

        Args:
            finished: Whether every question of the run has a record that counts as finished, and
                EXAID is done with it.
            ended_at: ISO 8601, UTC.

        Raises:
            StorageError: There is no room for them; the records are kept all the same.
        """
        self.manifest.finished = finished
        self.manifest.invocations[-1].ended_at = ended_at
        try:
            with whole_file(self.array_path, sync=True) as file:
                file.writelines(self._array())
            self.write_manifest()  # last: a run is not finished without its array
        except OSError as error:
            raise StorageError(
                f"cannot write {self.array_path}: {error.strerror}; every finished question is in "
                f"{self.folder / 'samples.jsonl'}"
            ) from error

    def recount(self) -> Counter[str]:
        """Make the totals anew from the files: a question that was answered again counts once.

        Returns:
            Error -> questions that ended in `api_error` with it.
        """
        totals, causes = RunTotals(), Counter[str]()
        summaries = SummariesFile(self._summaries_path)
        for item, attempt, record in self._records():
            totals.add(record)
            if line := summaries.line_of(item, attempt):
                totals.add_summaries(CaseSummaries.model_validate_json(line))
            if record.status is Status.API_ERROR:
                causes[record.error or ""] += 1
        self.manifest.totals = totals
        return causes

    def write_manifest(self) -> None:
        """Write `run.json` atomically."""
        with whole_file(self.folder / "run.json", sync=True) as file:
            file.write(self.manifest.model_dump_json(indent=2).encode())

    def _read_back(self, again: Collection[Status], *, with_exaid: bool) -> None:
        """Take over the records and rows that are there."""
        summaries = SummariesFile(self._summaries_path)
        for item, attempt, record in self._records():
            self.attempts[item] = attempt
            if record.status in again:
                continue
            self.done.add(item)
            self._count(record)
            if line := summaries.line_of(item, attempt):
                self.manifest.totals.add_summaries(CaseSummaries.model_validate_json(line))
            elif with_exaid and record.schema_version != _WITH_EXAIDS_PART:
                self.unsummarised.append(item)
        for _, row in self._calls.lines():
            self.manifest.spent.add(json.loads(row))

    def _records(self) -> Iterator[tuple[ItemKey, int, SampleRecord]]:
        """(question, which answer, record) of those that count, in the order of their writing."""
        places = sorted(self._places().items(), key=lambda entry: entry[1])
        lines = self._samples.lines_at(offset for _, (offset, _) in places)
        for (item, (_, attempt)), line in zip(places, lines, strict=True):
            yield item, attempt, SampleRecord.model_validate_json(line)

    def _places(self) -> dict[ItemKey, tuple[int, int]]:
        """Where the record of each question begins that counts, the last one; which one it is."""
        places: dict[ItemKey, tuple[int, int]] = {}
        for number, (offset, line) in enumerate(self._samples.lines(), start=1):
            try:
                record = json.loads(line)
                item = record["question_id"], record["epoch"]
                places[item] = offset, places.get(item, (0, 0))[1] + 1
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigError(
                    f"{self._samples.path} line {number} is damaged; start with --fresh"
                ) from error
        return places

    def _count(self, record: SampleRecord) -> None:
        self.manifest.totals.add(record)
        for served in filter(None, record.model.split(", ")):
            if served not in self.manifest.models_served:
                self.manifest.models_served.append(served)

    def _array(self) -> Iterator[bytes]:
        """The array piece by piece, a record a line, in the order of the selection."""
        order = {id_: number for number, id_ in enumerate(self.manifest.item_ids)}
        places = self._places()
        items = sorted(places, key=lambda item: (item[1], order[item[0]]))
        summaries = SummariesFile(self._summaries_path)
        yield b"["
        for number, (item, line) in enumerate(
            zip(items, self._samples.lines_at(places[item][0] for item in items), strict=True)
        ):
            attempt = places[item][1]
            if summaries.has(item, attempt):
                line = to_json(summaries.put_into(json.loads(line), attempt))
            yield (b",\n" if number else b"\n") + line.rstrip()
        yield b"\n]\n"

    def _is_of_other_settings_and_empty(self, manifest: RunManifest) -> bool:
        return holds_nothing(self.folder) and (
            (earlier := read_manifest(self.folder)) is not None
            and earlier.config_hash != manifest.config_hash
        )

    def _keep_earlier_run(self, name: str, now: datetime) -> None:
        if not (self.folder / "run.json").exists() and not self.array_path.exists():
            return
        self.kept_as = f"{name}.{now:%Y%m%dT%H%M%S.%f}"
        self._lock.release()
        self.folder.rename(self.folder.with_name(self.kept_as))
        if self.array_path.exists():
            self.array_path.rename(self.array_path.with_name(f"{self.kept_as}.json"))
        self.folder.mkdir()
        self._lock = _locked(self.folder)


def _locked(folder: Path) -> filelock.BaseFileLock:
    lock = filelock.FileLock(folder / ".lock", blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ConfigError(
            f"another process is writing to {folder}; wait for it, or give another --output-dir"
        ) from None
    return lock
