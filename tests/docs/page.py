"""A page of docs/, and the examples on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.conftest import REPOSITORY


@dataclass(frozen=True)
class Page:
    """A page by its file name, or by folder and file name if two pages share it."""

    name: str

    @property
    def text(self) -> str:
        """All of it."""
        (path,) = (REPOSITORY / "docs").rglob(self.name)
        return path.read_text(encoding="utf-8")

    @property
    def examples(self) -> list[str]:
        """The code blocks in Python, from top to bottom."""
        return re.findall(r"^```python\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)
