"""The audit of the tools: one line a call, with what went in and what came out."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from demos.toolkit.monthly_log import MonthlyLog


class ToolLogger:
    """Writes the calls of tools to a file, a new one each month.

        2025-12-05T10:12:25Z INFO tool:calculator session=abc123 input='10 / 2' output='Result: 5'

    Values are quoted as Python does, so that no text can make a line of its own.

    Args:
        file: The log.
        redacts: Whether lengths and hashes stand for what was said. The hashes have a salt of this
            object, since a short number could be found out otherwise: they tell what was the same.
        now: The clock, UTC.
    """

    def __init__(self, file: Path, *, redacts: bool = False, now: Callable[[], datetime]) -> None:
        self._log = MonthlyLog(file, now)
        self._salt = secrets.token_bytes(16) if redacts else b""

    def log(self, tool_name: str, input: str, output: str, *, session: str = "") -> None:
        """Write a call down.

        Args:
            tool_name: Of the tool.
            input: Its arguments.
            output: What it gave, or why it failed.
            session: In which it was called.

        Raises:
            StorageError: It cannot be written.
        """
        self._log.write(
            f"INFO tool:{tool_name} session={session or '-'} "
            f"input={self._shown(input)} output={self._shown(output)}"
        )

    def _shown(self, value: str) -> str:
        if not self._salt:
            return repr(value)
        digest = hashlib.sha256(self._salt + value.encode(errors="surrogatepass")).hexdigest()
        return f"<{len(value)} characters, {digest[:12]}>"
