"""Reads the rows of a CSV file as text."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from demos.document_assistant.table_rows import row_line

_DELIMITERS = "\t;|,"
_SAMPLE = 64_000  # characters in which the delimiter is found
_STATED = re.compile(r"sep=([\t;|,])\r?\n", re.IGNORECASE)
"""First line in which Excel states the delimiter."""


def csv_rows(text: str) -> str:
    """Return a text with a row of cells in each line, as those of spreadsheets are written.

    A text without a delimiter stays as it is, as does one of digits and commas only, which may be
    numbers of one column (`1,250`).
    """
    stated = _STATED.match(text)
    delimiter = stated[1] if stated else _delimiter(text)
    rows = delimiter and _rows(text[stated.end() if stated else 0 :], delimiter)
    if not rows:
        return text
    lines = []
    for row in rows:
        while row and not row[-1].strip():
            row.pop()
        lines.append(row_line(row))
    return "\n".join(lines)


def _delimiter(text: str) -> str:
    """Return the delimiter that makes as many cells of most rows; empty if none does."""
    if len(text) > _SAMPLE:
        text = text[: text.rfind("\n", 0, _SAMPLE) + 1]
    most, best = 0, ""
    for delimiter in _DELIMITERS:
        rows = [row for row in _rows(text, delimiter) if len(row) > 1]
        [(_, count)] = Counter(map(len, rows)).most_common(1) or [(0, 0)]
        is_text = delimiter != "," or any(map(str.isalpha, "".join(map("".join, rows))))
        if count > most and is_text:
            most, best = count, delimiter
    return best


def _rows(text: str, delimiter: str) -> Sequence[list[str]]:
    """Return the rows of cells, without quotes that are closed; none if a cell is too long."""
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        try:
            lines = io.StringIO(text, newline="")
            return [*csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)]
        except csv.Error:
            continue
    return []
