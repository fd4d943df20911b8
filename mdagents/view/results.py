"""Reads a decided question from the records of its run."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from mdagents.agents.case import make_case_id
from mdagents.pages.from_records import Recorded, read_question
from mdagents.scoring.case_calls import CallFile, attempt_of, starts_of
from mdagents.scoring.fields import text_of
from mdagents.scoring.rows import RunOutput


def read_recorded(
    folder: Path, output: RunOutput | None, case_id: str, pictures_at: str = ""
) -> Recorded | None:
    """Return a question from the records of its run; None if it has no record.

    Args:
        folder: Folder of the run.
        output: Results of the run; None before the first.
        case_id: Case id of the question.
        pictures_at: Address of the pictures in the folder of the run.

    Raises:
        RecordError: The trace cannot be read.
        ConfigError: The record or the ledger cannot be read.
    """
    for row in output.rows if output else ():
        if make_case_id(*row.item) == case_id and output:
            (found,) = replace(output, rows=(row,)).records()
            attempts = _calls(folder / "calls.jsonl").attempts(
                text_of(found[1], "case_id"), starts_of(output.manifest)
            )
            calls = attempt_of(found[1], attempts)
            return read_question(folder, found[1], row, calls, pictures_at)
    return None


def _calls(path: Path) -> CallFile:
    """Return a ledger, cached until the file changes, since it is slow to read."""
    status = path.stat() if path.exists() else None
    return _read_calls(path, status and (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _read_calls(path: Path, _state: object) -> CallFile:
    return CallFile(path)
