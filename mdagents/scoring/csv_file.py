"""The CSV of scored questions: a line per question, columns as in docs/reference/files.md."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TextIO

from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.files.spreadsheet import text_cell

COLUMNS = (
    "question_id",
    "label",
    "response",
    "difficulty",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "correct",
    "status",
    "parse_method",
    "exaid_tokens",
    "cost_usd",
    "wall_seconds",
    "calls",
    "reasoning_tokens",
    "pictures",
    "pictures_sent",
    "picture_names",
)
"""Columns of the CSV in order: names of fields of `ScoredRow`. A column `epoch` follows where the
rows are of more than one."""

_CORRECT = COLUMNS.index("correct")


def write_csv(file: TextIO, rows: Sequence[ScoredRow]) -> None:
    """Write the questions of one run."""
    writer = csv.writer(file, lineterminator="\n")
    columns = _columns([rows])
    writer.writerow(columns)
    values_of = attrgetter(*columns)
    writer.writerows(_cells(row, values_of) for row in rows)


def write_csv_of_runs(file: TextIO, runs: Mapping[str, Sequence[ScoredRow]]) -> None:
    """Write the questions of several runs, with the run's name in a first column `run`."""
    writer = csv.writer(file, lineterminator="\n")
    columns = _columns(runs.values())
    writer.writerow(["run", *columns])
    values_of = attrgetter(*columns)
    for name, rows in runs.items():
        writer.writerows([text_cell(name), *_cells(row, values_of)] for row in rows)


def _columns(runs: Iterable[Sequence[ScoredRow]]) -> Sequence[str]:
    has_epochs = any(row.epoch > 1 for rows in runs for row in rows)
    return (*COLUMNS, "epoch") if has_epochs else COLUMNS


def _cells(row: ScoredRow, values_of: Callable[[ScoredRow], Any]) -> list[object]:
    values: list[object] = list(values_of(row))
    values[_CORRECT] = int(row.correct)
    return [text_cell(value) if isinstance(value, str) else value for value in values]
