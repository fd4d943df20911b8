"""What goes wrong in a turn."""

from __future__ import annotations

from mdagents_llm.errors import BenchError


class NoUsableAnswerError(BenchError):
    """The model answered, but gave nothing that can be reported. One sentence says what."""
