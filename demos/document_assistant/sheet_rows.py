"""Reads the rows of a spreadsheet as text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.marked_text import (
    HIDDEN_TEXT,
    LOWERED,
    RAISED,
    STRUCK,
    marked,
    plain_text,
)
from demos.document_assistant.number_formats import shown_number, shown_time
from demos.document_assistant.refused import RefusedError

_PLACES = {"superscript": RAISED, "subscript": LOWERED}
_SHOWS_NOTHING = ";;;"
"""Number format of cells whose content the sheet hides."""


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
                    is_struck=bool(getattr(one.font, "strike", False)),  # an empty cell has none
                )
                for one, two in zip(row, written, strict=True)
            ]
            count += sum(map(bool, cells))
            if count > most:
                raise RefusedError(f"has more than {most:,} cells")
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield " | ".join(cells)


def cell_text(
    value: object, written: object, number_format: str = "General", *, is_struck: bool = False
) -> str:
    """Return the text of a cell.

    Args:
        value: Value of the cell.
        written: What is written in it, perhaps a formula.
        number_format: Code of its number format.
        is_struck: Whether the cell is struck out.
    """
    if value is None and isinstance(written, str) and written.startswith("="):
        return f"(no stored result of {written})"
    if value is None and written is not None:  # a formula of an array or a data table
        return f"(no stored result of ={str(getattr(written, 'text', None) or '…').lstrip('=')})"
    text = _shown(value, number_format).strip()
    if text and number_format.replace(" ", "") == _SHOWS_NOTHING:
        return HIDDEN_TEXT
    return plain_text(marked(text, STRUCK) if is_struck else text)


def _shown(value: object, number_format: str) -> str:
    """Return the value of a cell as the sheet shows it, with marks of its raised parts."""
    from openpyxl.cell.rich_text import CellRichText, TextBlock

    if isinstance(value, CellRichText):
        return "".join(
            marked(part.text, *_marks(part.font)) if isinstance(part, TextBlock) else part
            for part in value
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shown_number(value, number_format)
    if isinstance(value, str):
        return value
    return "" if value is None else shown_time(value)


def _marks(font: Any) -> Iterator[tuple[str, str]]:
    if font.vertAlign in _PLACES:
        yield _PLACES[font.vertAlign]
    if font.strike:
        yield STRUCK
