"""The audit log of the tools: one line per call with its input and output."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from demos.toolkit.monthly_log import MonthlyLog


class ToolLogger:
    """Writes tool calls to a file that rotates monthly.

        2025-12-05T10:12:25Z INFO tool:calculator session=abc123 input='10 / 2' output='Result: 5'

    Values are written as Python literals, so that no text can start a new line.

    Args:
        file: Path of the log.
        redacts: Whether texts are replaced by their lengths and hashes. Equal texts have equal
            hashes; each logger has its own salt, since a short number could be guessed otherwise.
        now: Clock in UTC.
    """

    def __init__(self, file: Path, *, redacts: bool = False, now: Callable[[], datetime]) -> None:
        self._log = MonthlyLog(file, now)
        self._salt = secrets.token_bytes(16) if redacts else b""

    def log(self, tool_name: str, input: str, output: str, *, session: str = "") -> None:
        """Log a tool call.

        Args:
            tool_name: Name of the tool.
            input: Arguments of the call.
            output: Result of the call, or why it failed.
            session: Session of the call; empty if there is none.

        Raises:
            StorageError: The line cannot be written.
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
