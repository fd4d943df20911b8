"""The settings that companion systems share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from demos.toolkit.database import SETTING, Database


def database_of(variables: Mapping[str, str], file: Path) -> Database:
    """Return the database that the environment names, else a SQLite file.

    Args:
        variables: The environment, as `mdagents_llm.config.read_variables` returns it.
        file: Of the SQLite database.

    Raises:
        ConfigError: `DATABASE_URL` is no address.
    """
    return Database(variables.get(SETTING) or file)
