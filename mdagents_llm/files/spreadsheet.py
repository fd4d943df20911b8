"""CSV cells that a spreadsheet shows as text, never as a formula."""

from __future__ import annotations

import re

# A spreadsheet treats a cell that begins like this as a formula, also with full-width characters; a
# plain number is not a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = re.compile(r"(?![+-]?[\d.]+\Z)\s*[=+\-@＝＋－＠]|[\t\r\n]")


def text_cell(text: str) -> str:
    """Return `text` as a cell, prefixed with an apostrophe if it looks like a formula.

    Text that begins with an apostrophe gets a second one, so that different texts have different
    cells; `text_in` returns the text.
    """
    if not text or text[0].isalnum():  # faster, and nearly always
        return text
    return f"'{text}" if text.startswith("'") or _FORMULA.match(text) else text


def text_in(cell: str) -> str:
    """Return the text of a cell that `text_cell` made."""
    return cell.removeprefix("'")
