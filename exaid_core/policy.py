"""The policies that trigger summaries."""

from __future__ import annotations

from enum import StrEnum


class TriggerPolicy(StrEnum):
    """A policy for when EXAID summarizes: the variants of docs/how-to/evals.md."""

    FULL_EXAID = "full_exaid"
    """V0: TokenGate, then the BufferAgent's judgment of completeness, value and novelty."""
    TURN_END = "turn_end"
    """V1: one summary per agent turn."""
    NO_BUFFER = "no_buffer"
    """V2: one summary per flush of the TokenGate."""
    NO_TOKENGATE = "no_tokengate"
    """V3: chunks of a fixed size, then the BufferAgent."""
    NO_NOVELTY = "no_novelty"
    """V4: like V0, without the judgment of novelty."""
