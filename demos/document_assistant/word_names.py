"""Names of the elements of a Word file."""

from __future__ import annotations

from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
"""Namespace of texts."""
W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
"""Namespace of what Word 2010 added."""
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
"""Namespace of equations."""


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]
