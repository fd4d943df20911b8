"""Reads a decided question from the records of its run."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from mdagents.live.runs import ListedRun
from mdagents.pages.from_records import Recorded, read_question
from mdagents.scoring.case_calls import CallFile, attempt_of, starts_of
from mdagents.scoring.fields import text_of
from mdagents.view.record_index import RecordIndex
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import status_of


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
        ConfigError: The record cannot be read.
    """
    found = index.record(case_id)
    if found is None:
        return None
    row, record = found
    starts = starts_of({"invocations": [one.model_dump() for one in run.manifest.invocations]})
    ledger = _calls(run.folder / "calls.jsonl")
    if isinstance(ledger, str):
        return read_question(run.folder, record, row, (), pictures_at, ledger_trouble=ledger)
    attempts = ledger.attempts(text_of(record, "case_id"), starts)
    return read_question(run.folder, record, row, attempt_of(record, attempts), pictures_at)


def _calls(path: Path) -> CallFile | str:
    """Return a ledger, cached until the file changes since it is slow to read, or its damage."""
    status = status_of(path)
    return _read_calls(path, status and (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _read_calls(path: Path, _state: object) -> CallFile | str:
    try:
        return CallFile(path)
    except ConfigError as error:
        return str(error).removeprefix(f"{path.parent}{os.sep}")  # viewers need no paths
