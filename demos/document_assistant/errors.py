"""What goes wrong in a turn."""

from __future__ import annotations

from infra.errors import BenchError


class NoUsableAnswerError(BenchError):
    """The model answered, but gave nothing that can be reported. One sentence says what."""
