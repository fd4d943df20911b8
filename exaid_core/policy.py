"""What makes EXAID summarise."""

from __future__ import annotations

from enum import StrEnum


class TriggerPolicy(StrEnum):
    """What makes EXAID summarise: the variants of docs/evals.md."""

    FULL_EXAID = "full_exaid"
    """V0: TokenGate, then the BufferAgent's judgement of completeness, value and novelty."""
    TURN_END = "turn_end"
    """V1: one summary per agent turn."""
    NO_BUFFER = "no_buffer"
    """V2: each flush of the TokenGate is summarised."""
    NO_TOKENGATE = "no_tokengate"
    """V3: chunks of a fixed size, then the BufferAgent."""
    NO_NOVELTY = "no_novelty"
    """V4: as V0, without the judgement of novelty."""
