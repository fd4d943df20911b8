"""`calls.jsonl`: the ledger of a run, read back row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from mdagents.records.jsonl import MALFORMED, damaged, lines_at, whole_lines
from mdagents_llm.chat import TOKEN_FIELDS
from mdagents_llm.clock import ms_of
from mdagents_llm.ledger import CallRow


def read_calls(path: Path) -> Iterator[tuple[int, CallRow]]:
    """Yield (offset in bytes, row) for each line of a ledger; nothing when the file is missing.

    Raises:
        ConfigError: A line is damaged; the message names it.
        OSError: The file cannot be read.
    """
    for number, offset, line in whole_lines(path):
        try:
            yield offset, _row(line)
        except MALFORMED as error:
            raise damaged(
                path, number, "is not a row of a ledger", "no total counts its call"
            ) from error


def calls_at(path: Path, offsets: Iterable[int]) -> Iterator[CallRow]:
    """Yield the rows whose lines begin at `offsets`, in that order.

    Raises:
        OSError: The file cannot be read.
    """
    return map(_row, lines_at(path, offsets))


def _row(line: bytes) -> CallRow:
    content = {"cache_write_tokens": 0} | json.loads(line)  # missing in rows of earlier versions
    if not isinstance(content["model"], str):  # earlier versions wrote any value the endpoint sent
        content["model"] = ""
    content["usage"] = {name: content.pop(name) for name in TOKEN_FIELDS}
    row = _adapter().validate_python(content)
    ms_of(row.started_at)
    return row


@cache
def _adapter() -> TypeAdapter[CallRow]:
    return TypeAdapter(CallRow)  # slow to build, and a new run reads no rows
