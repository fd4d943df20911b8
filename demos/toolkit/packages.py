"""Checks for packages that the companion systems need and the benchmark does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mdagents_llm.errors import ConfigError
from mdagents_llm.interpreter import LEVELS, after_set_up, missing_package


@contextmanager
def needs_demos(what: str) -> Iterator[None]:
    """Guard the imports of a companion system and report a missing package in one line.

    Args:
        what: Name of the system for the message.

    Raises:
        ConfigError: A package is missing; the message names the command that installs it.
    """
    try:
        yield
    except ImportError as error:
        package = missing_package(error)
        if not package:
            raise
        way = after_set_up(LEVELS.index("demos"))
        raise ConfigError(f"{what} needs {package}: type {way}") from error
