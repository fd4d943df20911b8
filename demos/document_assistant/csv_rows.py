"""Reads the rows of a CSV file as text."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from demos.document_assistant.table_rows import row_line

_DELIMITERS = "\t;|,"
_SAMPLE = 64_000  # characters in which the delimiter is found
_STATED = re.compile(r"sep=([\t;|,])\r?\n", re.IGNORECASE)
"""First line in which Excel states the delimiter."""
_REST = re.compile(r"[0-9]{1,3}(?![0-9])")
"""Digits that may belong to those before a comma."""


def csv_rows(text: str) -> str:
    """Return a text with a row of cells in each line, as those of spreadsheets are written.

    A text without a delimiter stays as it is. So does a row in which a comma may be part of a
    number (`Total,1,250.00 USD`), unless a row without such a comma has as many cells.
    """
    stated = _STATED.match(text)
    delimiter = stated[1] if stated else _delimiter(text)
    rows = _rows(text[stated.end() if stated else 0 :], delimiter) if delimiter else []
    if not rows:
        return text
    sizes = {len(cells) for _, cells in rows if not (delimiter == "," and _may_be_joined(cells))}
    lines = []
    for line, cells in rows:
        size = len(cells)
        while cells and not cells[-1].strip():
            cells.pop()
        is_clear = sizes & {size, len(cells)} or not _may_be_joined(cells)
        lines.append(row_line(cells) if is_clear else line.rstrip("\r\n"))
    return "\n".join(lines)


def _delimiter(text: str) -> str:
    """Return the delimiter that makes as many cells of most rows; empty if none does.

    Most commas of a sentence have a space behind them.
    """
    if len(text) > _SAMPLE:
        text = text[: text.rfind("\n", 0, _SAMPLE) + 1]
    most, best = 0, ""
    for delimiter in _DELIMITERS:
        rows = [cells for _, cells in _rows(text, delimiter) if len(cells) > 1]
        [(_, count)] = Counter(map(len, rows)).most_common(1) or [(0, 0)]
        spaced = [cell.startswith(" ") for cells in rows for cell in cells[1:]]
        if count > most and not (delimiter == "," and sum(spaced) * 2 >= len(spaced)):
            most, best = count, delimiter
    return best


def _rows(text: str, delimiter: str) -> Sequence[tuple[str, list[str]]]:
    """Return the rows and their cells, without quotes that are closed; none if one is too long."""
    lines = [*io.StringIO(text, newline="")]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
        rows = []
        at = 0
        try:
            for cells in reader:
                rows.append(("".join(lines[at : reader.line_num]), cells))
                at = reader.line_num
        except csv.Error:
            continue
        return rows
    return []


def _may_be_joined(cells: Sequence[str]) -> bool:
    """Return whether the end of a cell and the beginning of the next may be one number."""
    return any(left[-1:].isdecimal() and _REST.match(right) for left, right in pairwise(cells))
