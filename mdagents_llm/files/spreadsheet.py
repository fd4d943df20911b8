"""Cells of a CSV file that a spreadsheet shows as text."""

from __future__ import annotations

import re

# A spreadsheet takes a cell that begins like this for a formula, also in full width; a number alone
# is none: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = re.compile(r"(?![+-]?[\d.]+\Z)\s*[=+\-@＝＋－＠]|[\t\r\n]")


def text_cell(text: str) -> str:
    """Return `text` as a cell, after an apostrophe if a spreadsheet would take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text
