"""The messages of a conversation, as shown to its user."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from demos.medagen.schemas import TriageResult
from demos.toolkit.sessions import Role


class Entry(BaseModel):
    """What the user or the assistant said."""

    model_config = ConfigDict(frozen=True)

    role: Role
    text: str
    at: datetime
    """UTC."""
    result: TriageResult | None = None
    """For a message of the assistant: the whole answer."""


class Conversation(BaseModel):
    """A session, the oldest entry first."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    started: datetime
    """UTC."""
    entries: tuple[Entry, ...]
