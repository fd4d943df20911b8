"""Errors of a turn."""

from __future__ import annotations

from mdagents_llm.errors import BenchError


class NoUsableAnswerError(BenchError):
    """The model replied, but with nothing that can be reported. The message is one sentence."""
