"""Settings shared by the companion systems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from demos.toolkit.database import SETTING, Database


def database_of(variables: Mapping[str, str], file: Path) -> Database:
    """Return the database that the environment names, or else a SQLite file.

    Args:
        variables: Environment, as returned by `mdagents_llm.config.read_variables`.
        file: Path of the SQLite file.

    Raises:
        ConfigError: `DATABASE_URL` is not a valid address.
    """
    return Database(variables.get(SETTING) or file)
