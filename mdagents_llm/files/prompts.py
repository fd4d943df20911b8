"""Prompts as text files next to the code that uses them, rendered with `string.Template`.

Values are substituted once and never parsed, so that a `$` or a brace in a question is just text.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from string import Template

from mdagents_llm.files.matching import matching


class PromptFiles:
    """The prompts of one folder.

    Args:
        folder: Folder of the `.txt` files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._templates: dict[str, Template] = {}

    def render(self, name: str, **fields: object) -> str:
        """Return the text of the prompt file `name` with `fields` filled in.

        Raises:
            KeyError: The file has a field that is not in `fields`.
        """
        return self._template(name).substitute({key: str(value) for key, value in fields.items()})

    def text(self, name: str) -> str:
        """Return the text of the prompt file `name` with its `$names` not substituted."""
        return self._template(name).template

    def _template(self, name: str) -> Template:
        template = self._templates.get(name)
        if template is None:
            text = (self._folder / f"{name}.txt").read_text(encoding="utf-8").strip()
            template = self._templates[name] = Template(text)
        return template

    def below(self, name: str) -> PromptFiles:
        """Return the prompts of a subfolder, which has no prompts if it does not exist."""
        return PromptFiles(self._folder / name)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """File name -> first 16 hex digits of its SHA-256 checksum, for the identity of a run."""
        return {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16]
            for file in matching(self._folder, "*.txt")
        }
