"""Writes the rows of a table in one line each."""

from __future__ import annotations

from collections.abc import Iterable


def row_line(cells: Iterable[str]) -> str:
    r"""Return a row as `Warfarin | 5 mg; 10 mg | night`; a `|` of a cell is written as `\|`."""
    return " | ".join(map(_in_line, cells))


def _in_line(cell: str) -> str:
    lines = map(str.strip, cell.replace("|", r"\|").splitlines())
    return "; ".join(filter(None, lines))
