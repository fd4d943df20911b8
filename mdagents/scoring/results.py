"""Prints results on stdout: drawn by rich on a terminal, as plain text everywhere else."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mdagents.scoring.formatting import Headline, Part, Table, as_text
from mdagents_llm.terminal.printing import print_result
from mdagents_llm.text import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

_WIDEST_TEXT = 100  # columns; longer lines are hard to read
_BETWEEN = 4  # columns between tables that stand side by side
_NOTICES = ("NOTE:", "WARNING:")


def print_parts(parts: Iterable[Part]) -> None:
    """Print a result on stdout.

    Raises:
        StorageError: The text cannot be written.
    """
    print_result(shown(parts))


def shown(parts: Iterable[Part]) -> str:
    """Return a result as stdout shows it: with tables drawn by rich only on a terminal."""
    if not _is_drawn():
        return as_text(parts)
    return draw(parts, shutil.get_terminal_size().columns)


def draw(parts: Iterable[Part], width: int) -> str:
    """Return a result drawn by rich, with colors as the environment allows them.

    Args:
        parts: Tables and lines; neighboring tables stand side by side where they fit.
        width: Width of the terminal in columns.
    """
    from rich.console import Console
    from rich.text import Text

    # A StringIO, so that the text is printed at one place that survives a closed pipe.
    console = Console(
        file=io.StringIO(), force_terminal=True, width=width, highlight=False, markup=False
    )
    tables: list[Table] = []
    was_table = False
    for part in [*parts, ""]:
        if isinstance(part, Table):
            tables.append(part)
            continue
        if tables:
            _draw_tables(console, tables)
            tables, was_table = [], True
        if part:
            if was_table:
                console.print()
            was_table = False
            style = "bold" if isinstance(part, Headline) else ""
            text = Text(clean(part), style)
            for notice in _NOTICES:
                if part.startswith(notice):
                    text.stylize("yellow", 0, len(notice))
            console.print(text, width=min(width, _WIDEST_TEXT))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def rich_table(table: Table) -> RichTable:
    """Return a table of results drawn with horizontal hairlines; its accuracy is bold."""
    from rich.box import Box
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    hairlines = Box("    \n    \n ── \n    \n ── \n    \n    \n    \n")
    drawn = RichTable(
        title=Text(table.title, "bold") if table.title else None,
        title_justify="left",
        box=hairlines,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
        border_style="dim",
    )
    for place, heading in enumerate(table.headings):
        is_name = place == 0
        widest = max((cell_len(row[place]) for row in table.rows), default=0)
        drawn.add_column(
            Text(clean(heading), overflow="fold"),
            justify="left" if is_name else "right",
            min_width=None if is_name else widest,  # so that only names and headings wrap
        )
    for row in table.rows:
        is_total = table.has_total and row is table.rows[-1]
        if is_total:
            drawn.add_section()
        cells = [_cell(heading, text) for heading, text in zip(table.headings, row, strict=True)]
        drawn.add_row(*cells, style="bold" if is_total else None)
    return drawn


def _cell(heading: str, text: str) -> Text:
    from rich.text import Text

    cell = Text(clean(text))
    if heading.startswith("accuracy"):
        cell.stylize("bold", 0, text.find(" (") if " (" in text else len(text))
    return cell


def _is_drawn() -> bool:
    stream = sys.stdout
    return (
        stream is not None
        and stream.isatty()
        and os.environ.get("TERM") != "dumb"
        and (stream.encoding or "").lower().replace("-", "") == "utf8"
    )


def _draw_tables(console: Console, tables: Sequence[Table]) -> None:
    """Print tables, side by side as far as they fit."""
    from rich.table import Table as RichTable

    rows: list[list[RichTable]] = []
    free = 0
    for drawn in map(rich_table, tables):
        needed = console.measure(drawn).maximum + _BETWEEN
        if not rows or needed > free:
            rows.append([])
            free = console.width + _BETWEEN
        rows[-1].append(drawn)
        free -= needed
    for row in rows:
        grid = RichTable.grid(padding=(0, _BETWEEN, 0, 0))
        for _ in row:
            grid.add_column(vertical="bottom")  # some have a title above their heading
        grid.add_row(*row)
        console.print()
        console.print(grid)
