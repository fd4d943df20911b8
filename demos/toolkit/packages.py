"""Packages that the companion systems need and the benchmark does without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mdagents_llm.errors import ConfigError
from mdagents_llm.interpreter import LEVELS, missing_package, set_up


@contextmanager
def needs_demos(what: str) -> Iterator[None]:
    """Guard the imports of a companion system: a missing package is one line with the command.

    Args:
        what: The system, for the message.

    Raises:
        ConfigError: A package is missing.
    """
    try:
        yield
    except ImportError as error:
        package = missing_package(error)
        if not package:
            raise
        way = set_up(LEVELS.index("demos"))
        raise ConfigError(f"{what} needs {package}: type {way}, then the same command") from error
