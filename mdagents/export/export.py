"""Writes the log of a run, one sample at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from infra.errors import ConfigError, StorageError
from infra.files.text import well_formed
from infra.files.whole_file import whole_file
from mdagents.export.calls import CallFile, attempt_of, by_attempt, spending
from mdagents.export.header import Identity, identity_of, make_header, ms_of
from mdagents.export.ids import JSONObject
from mdagents.export.records import Record, RunFiles, find_run, served_model
from mdagents.export.sample import make_sample
from mdagents.export.transcript import Sources
from mdagents.export.usage import Spending, spending_of_record
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.transcripts import OtherAttemptError, read_transcript

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def export_run(path: Path, output: Path | None = None) -> Path:
    """Write a run as a log of Inspect. The same run gives the same bytes.

    Args:
        path: Folder of a run, its `samples.jsonl`, or a JSON array.
        output: The file; None: in the run's folder, under the name that Inspect would give it.

    Returns:
        The file.

    Raises:
        ConfigError: There is no such run, or its files cannot be read.
        RecordError: A trace cannot be read.
        StorageError: The log cannot be written.
    """
    run = find_run(path)
    log = _Log(run)
    output = output or run.folder / log.identity.file_name
    _write(output, log.pieces())
    return output


class _Log:
    def __init__(self, run: RunFiles) -> None:
        self._run = run
        self._calls = CallFile(run.folder / "calls.jsonl")
        self._models = run.manifest.models if run.manifest else {}
        invocations = run.manifest.invocations if run.manifest else []
        self._starts = [ms_of(invocation.started_at) for invocation in invocations]
        self._spent = Spending()
        self._spent.update(self._calls.spent)
        served = ""
        for record, _ in run.records():
            served = served or served_model(record)
            if _case_of(record) not in self._calls:
                self._spent.update(spending_of_record(record, self._models))
        self.identity: Identity = identity_of(run, served or "unknown")

    def pieces(self) -> Iterator[str]:
        header = make_header(self._run, self.identity, self._spent)
        yield "{" + ",\n".join(f"{_encode(name)}:{_encode(v)}" for name, v in header.items())
        yield ',\n"samples":['
        for number, (record, row) in enumerate(self._run.records()):
            yield ",\n" if number else "\n"
            sample = self._sample(record, row)
            try:
                yield _encode(sample)
            except ValueError as error:  # NaN, which another program's file may hold
                raise ConfigError(f"question {row.question_id}: {error}") from error
        yield "\n]}\n"

    def _sample(self, record: Record, row: ScoredRow) -> JSONObject:
        attempts = by_attempt(self._calls.of(_case_of(record)), self._starts)
        chosen = attempt_of(record, attempts)
        calls = [] if chosen is None else attempts[chosen]
        try:
            turns = read_transcript(self._run.folder, record)
        except OtherAttemptError:
            turns = []  # without a trace, what the record holds is shown
        sources = Sources(
            record=record,
            turns=turns,
            calls=calls,
            other_attempts=[other for n, other in enumerate(attempts) if n != chosen],
            default_ms=self.identity.created_ms,
        )
        spent = spending(calls) if calls else spending_of_record(record, self._models)
        return make_sample(
            record, row, sources, spent, run=self.identity.run_id, solver=self.identity.solver
        )


def _case_of(record: Record) -> str:
    return str(record.get("case_id") or "")


def _write(path: Path, pieces: Iterator[str]) -> None:
    try:
        with whole_file(path) as file:
            for piece in pieces:
                file.write(well_formed(piece).encode())
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
