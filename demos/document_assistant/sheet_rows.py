"""Reads the rows of a spreadsheet as text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from demos.document_assistant.refused import RefusedError

_EXPONENT = re.compile(r"[-+−]?\d+")


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
            cells = [cell_text(one.value, two.value) for one, two in zip(row, written, strict=True)]
            count += sum(map(bool, cells))
            if count > most:
                raise RefusedError(f"has more than {most:,} cells")
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield " | ".join(cells)


def cell_text(value: object, written: object) -> str:
    """Return the text of a cell, given its value and what is written in it, perhaps a formula."""
    from openpyxl.cell.rich_text import CellRichText, TextBlock

    if value is None and isinstance(written, str) and written.startswith("="):
        return f"(no stored result of {written})"
    if value is None and written is not None:  # a formula of an array or a data table
        return f"(no stored result of ={str(getattr(written, 'text', None) or '…').lstrip('=')})"
    if isinstance(value, CellRichText):
        return "".join(
            f"^{part.text}"
            if isinstance(part, TextBlock)
            and part.font.vertAlign == "superscript"
            and _EXPONENT.fullmatch(part.text)
            else str(part)
            for part in value
        ).strip()
    return "" if value is None else str(value).strip()
