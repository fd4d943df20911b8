"""What is decided, read for a page: a question from its records."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from mdagents.agents.case import make_case_id
from mdagents.pages.recorded import Recorded, read_question
from mdagents.scoring.case_calls import CallFile, attempt_of, starts_of
from mdagents.scoring.fields import text_of
from mdagents.scoring.rows import RunOutput


def read_recorded(folder: Path, output: RunOutput | None, case_id: str) -> Recorded | None:
    """Return a question from the records of its run; None when it has none.

    Args:
        folder: Of the run.
        output: Its results; None before the first.
        case_id: Of the question.

    Raises:
        RecordError: Its trace cannot be read.
        ConfigError: Its record or the ledger cannot be read.
    """
    for row in output.rows if output else ():
        if make_case_id(*row.item) == case_id and output:
            (found,) = replace(output, rows=(row,)).records()
            attempts = _calls(folder / "calls.jsonl").attempts(
                text_of(found[1], "case_id"), starts_of(output.manifest)
            )
            return read_question(folder, found[1], row, attempt_of(found[1], attempts))
    return None


def _calls(path: Path) -> CallFile:
    """Return a ledger, which takes long to read: kept until the file is another."""
    status = path.stat() if path.exists() else None
    return _read_calls(path, status and (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _read_calls(path: Path, _state: object) -> CallFile:
    return CallFile(path)
