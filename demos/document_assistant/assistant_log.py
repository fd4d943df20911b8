"""The log `logs/assistant.log`: one line per action of a node."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from demos.toolkit.monthly_log import MonthlyLog


class Said(str):
    """Text of a user, or text derived from it, which a redacted log omits."""

    __slots__ = ()


class AssistantLog:
    """Writes the nodes' actions to a file that rotates monthly.

        2025-12-05T10:12:23Z INFO classify_intent session=abc123 prompt='What did …?'
        2025-12-05T10:12:24Z INFO qa_agent session=abc123 retrieved_docs=['doc_42', 'doc_9']

    Values are written as Python literals, so that no text can start a new line.

    Args:
        file: Path of the log.
        redacts: Whether texts are replaced by their lengths.
        now: Clock in UTC.
    """

    def __init__(self, file: Path, *, redacts: bool, now: Callable[[], datetime]) -> None:
        self._log = MonthlyLog(file, now)
        self._redacts = redacts

    def info(self, node: str, session: str, **fields: object) -> None:
        """Log an action of a node.

        Raises:
            StorageError: The line cannot be written.
        """
        self._write("INFO", node, session, fields)

    def warning(self, node: str, session: str, **fields: object) -> None:
        """Log a problem of a node.

        Raises:
            StorageError: The line cannot be written.
        """
        self._write("WARNING", node, session, fields)

    def _write(self, level: str, node: str, session: str, fields: dict[str, object]) -> None:
        told = [f"{name}={self._shown(value)}" for name, value in fields.items()]
        self._log.write(" ".join([level, node, f"session={session}", *told]))

    def _shown(self, value: object) -> str:
        if isinstance(value, Said):
            return f"<{len(value)} characters>" if self._redacts else repr(str(value))
        return repr(value)
