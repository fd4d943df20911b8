"""Reads the rows of a spreadsheet as text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.marked_text import (
    HIDDEN_TEXT,
    PLACES,
    STRUCK,
    marked,
    plain_text,
)
from demos.document_assistant.number_formats import shown_number, shown_time
from demos.document_assistant.refused import RefusedError
from demos.document_assistant.symbol_fonts import drawn
from demos.document_assistant.table_rows import row_line

_SHOWS_NOTHING = ";;;"
"""Number format of cells whose content the sheet hides."""
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""How a character is written that XML does not allow, or that a program does not write."""


def sheet_rows(content: io.BytesIO, most: int) -> Iterator[str]:
    """Yield the rows of a spreadsheet, with a heading before each sheet; hidden ones are named."""
    import openpyxl

    values = openpyxl.load_workbook(content, read_only=True, data_only=True, rich_text=True)
    content.seek(0)
    formulas = openpyxl.load_workbook(content, read_only=True)
    count = 0
    # `worksheets` holds sheets of cells only; chart sheets have no cells.
    for sheet, its_formulas in zip(values.worksheets, formulas.worksheets, strict=True):
        for one in (sheet, its_formulas):
            one.reset_dimensions()  # the size stated in the file may be wrong or a whole sheet
        yield f"\n# {sheet.title}\n"
        if sheet.sheet_state != "visible":
            yield "(a hidden sheet, which is not read)"
            continue
        for row, written in zip(sheet.iter_rows(), its_formulas.iter_rows(), strict=True):
            cells = [
                cell_text(
                    one.value,
                    two.value,
                    one.number_format or "General",
                    # An empty cell has no font.
                    font=getattr(one.font, "name", None),
                    is_struck=bool(getattr(one.font, "strike", False)),
                )
                for one, two in zip(row, written, strict=True)
            ]
            count += sum(map(bool, cells))
            if count > most:
                raise RefusedError(f"has more than {most:,} cells")
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield row_line(cells)


def cell_text(
    value: object,
    written: object,
    number_format: str = "General",
    *,
    font: str | None = None,
    is_struck: bool = False,
) -> str:
    """Return the text of a cell.

    Args:
        value: Value of the cell.
        written: What is written in it, perhaps a formula.
        number_format: Code of its number format.
        font: Name of its font; None if it is not known.
        is_struck: Whether the cell is struck out.
    """
    if value is None and isinstance(written, str) and written.startswith("="):
        return f"(no stored result of {written})"
    if value is None and written is not None:  # a formula of an array or a data table
        return f"(no stored result of ={str(getattr(written, 'text', None) or '…').lstrip('=')})"
    text = _shown(value, number_format, font).strip()
    if text and number_format.replace(" ", "") == _SHOWS_NOTHING:
        return HIDDEN_TEXT
    return plain_text(marked(text, STRUCK) if is_struck else text)


def _shown(value: object, number_format: str, font: str | None) -> str:
    """Return the value of a cell as the sheet shows it, with marks of its raised parts."""
    from openpyxl.cell.rich_text import CellRichText, TextBlock

    if isinstance(value, CellRichText):
        return "".join(
            marked(_text(part.text, part.font.rFont), *_marks(part.font))
            if isinstance(part, TextBlock)
            else _text(part, font)
            for part in value
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shown_number(value, number_format)
    if isinstance(value, str):
        return _text(value, font)
    return "" if value is None else shown_time(value)


def _text(text: str, font: str | None) -> str:
    return drawn(_ESCAPED.sub(_unescaped, text), font)


def _unescaped(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character >= " " or character in "\t\r\n" else ""


def _marks(font: Any) -> Iterator[tuple[str, str]]:
    if font.vertAlign in PLACES:
        yield PLACES[font.vertAlign]
    if font.strike:
        yield STRUCK
