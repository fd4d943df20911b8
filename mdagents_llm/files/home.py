"""Finds the home folder in paths that no shell has expanded."""

from __future__ import annotations

import re
from pathlib import Path

from mdagents_llm.errors import ConfigError

_OF_HOME = re.compile(r"@?~(/|$)")


def of_home(text: str) -> str:
    """Return a text with the home folder for its `~/`, also behind `@`; other texts unchanged.

    A shell leaves the ~ in `--output-dir=~/runs`, in files and in `.env` to programs.

    Raises:
        ConfigError: The user has no home folder.
    """
    if not _OF_HOME.match(text):
        return text
    path = text.removeprefix("@")
    try:
        return text.removesuffix(path) + str(Path(path).expanduser())
    except RuntimeError:
        raise ConfigError(f"{text}: there is no home folder; write the whole path") from None
