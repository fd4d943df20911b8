"""`calls.jsonl`: the ledger of a run, read back row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from infra.chat import TokenUsage
from infra.errors import ConfigError
from infra.ledger import CallRow
from mdagents.records.jsonl import whole_lines


def read_calls(path: Path) -> Iterator[tuple[int, CallRow]]:
    """Yield (offset in bytes, row) of a file; none when it is missing.

    Raises:
        ConfigError: A line is damaged; names it.
        OSError: The file cannot be read.
    """
    for number, (offset, line) in enumerate(whole_lines(path), start=1):
        try:
            yield offset, read_call(line)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{path} line {number} is not a row of a ledger") from error


def read_call(line: bytes) -> CallRow:
    """Return the row of one line, as `CallRow.as_dict` made it.

    Raises:
        ValueError: It is none. Likewise KeyError, TypeError, AttributeError.
    """
    content = json.loads(line)
    content["usage"] = {name: content.pop(name) for name in TokenUsage.__slots__}
    return _adapter().validate_python(content)


@cache
def _adapter() -> TypeAdapter[CallRow]:
    return TypeAdapter(CallRow)  # it takes time to make, and a new run reads no rows
