"""Reads a decided question from the records of its run."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from mdagents.live.runs import ListedRun
from mdagents.pages.from_records import Recorded, read_question
from mdagents.scoring.case_calls import CallFile, attempt_of, starts_of
from mdagents.scoring.fields import text_of
from mdagents.view.record_index import RecordIndex


def read_recorded(
    run: ListedRun, index: RecordIndex, case_id: str, pictures_at: str = ""
) -> Recorded | None:
    """Return a question from the records of its run; None if it has no record.

    Args:
        run: The run.
        index: Decided questions of the run.
        case_id: Case id of the question.
        pictures_at: Address of the pictures in the folder of the run.

    Raises:
        RecordError: The trace cannot be read.
        ConfigError: The record or the ledger cannot be read.
    """
    found = index.record(case_id)
    if found is None:
        return None
    row, record = found
    starts = starts_of({"invocations": [one.model_dump() for one in run.manifest.invocations]})
    attempts = _calls(run.folder / "calls.jsonl").attempts(text_of(record, "case_id"), starts)
    return read_question(run.folder, record, row, attempt_of(record, attempts), pictures_at)


def _calls(path: Path) -> CallFile:
    """Return a ledger, cached until the file changes, since it is slow to read."""
    status = path.stat() if path.exists() else None
    return _read_calls(path, status and (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _read_calls(path: Path, _state: object) -> CallFile:
    return CallFile(path)
