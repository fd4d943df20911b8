"""Settings of Medagen, read from the environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from demos.toolkit.database import Database
from demos.toolkit.settings import database_of
from mdagents_llm.errors import ConfigError

DATABASE_FILE = Path("output/medagen/medagen.sqlite")
"""Default SQLite file for conversations and guidelines."""

_DEADLINE = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the operator."""

    database: Database
    """Database from `DATABASE_URL`, or else the default SQLite file."""
    cv_service_url: str | None
    """Address of the computer vision service from `CV_SERVICE_URL`; None disables pictures."""
    deadline: float
    """Seconds for the model and its tools, from `MEDAGEN_DEADLINE`."""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Self:
        """Read the settings.

        Args:
            variables: Environment, as returned by `mdagents_llm.config.read_variables`.

        Raises:
            ConfigError: A setting is not valid.
        """
        return cls(
            database=database_of(variables, DATABASE_FILE),
            cv_service_url=_address(variables.get("CV_SERVICE_URL", "").strip()),
            deadline=_seconds(variables.get("MEDAGEN_DEADLINE", "").strip()),
        )


def _address(text: str) -> str | None:
    if not text:
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("CV_SERVICE_URL is no address; it looks like http://127.0.0.1:9000")
    return text.rstrip("/")


def _seconds(text: str) -> float:
    if not text:
        return _DEADLINE
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 600:
        raise ConfigError(f"MEDAGEN_DEADLINE is {text[:40]!r} but must be seconds, up to 600")
    return seconds
