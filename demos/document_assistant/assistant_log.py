"""`logs/assistant.log`: what the nodes do, a line each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from demos.toolkit.monthly_log import MonthlyLog


class Said(str):
    """Words of a user, or what is made of them: not written where the log is redacted."""

    __slots__ = ()


class AssistantLog:
    """Writes what is done to a file, a new one each month.

        2025-12-05T10:12:23Z INFO classify_intent session=abc123 prompt='What did …?'
        2025-12-05T10:12:24Z INFO qa_agent session=abc123 retrieved_docs=['doc_42', 'doc_9']

    Values are quoted as Python does, so that no text can make a line of its own.

    Args:
        file: The log.
        redacts: Whether lengths stand for what was said.
        now: The clock, UTC.
    """

    def __init__(self, file: Path, *, redacts: bool, now: Callable[[], datetime]) -> None:
        self._log = MonthlyLog(file, now)
        self._redacts = redacts

    def info(self, node: str, session: str, **fields: object) -> None:
        """Write what a node has done.

        Raises:
            StorageError: It cannot be written.
        """
        self._write("INFO", node, session, fields)

    def warning(self, node: str, session: str, **fields: object) -> None:
        """Write what has not gone as it should.

        Raises:
            StorageError: It cannot be written.
        """
        self._write("WARNING", node, session, fields)

    def _write(self, level: str, node: str, session: str, fields: dict[str, object]) -> None:
        told = [f"{name}={self._shown(value)}" for name, value in fields.items()]
        self._log.write(" ".join([level, node, f"session={session}", *told]))

    def _shown(self, value: object) -> str:
        if isinstance(value, Said):
            return f"<{len(value)} characters>" if self._redacts else repr(str(value))
        return repr(value)
