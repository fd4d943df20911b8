"""The limits of a case: node runs, lengths of what the agents write, seconds for EXAID."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NODE_RUNS = 6
"""Runs of nodes in one case; the last is always that of the synthesis."""

EXAID_WAIT = 10.0
"""Seconds that the end of a case waits for the last summaries."""

_WORDS_PER_TOKEN = 0.7
_ROOM_FOR_FORM = 200  # tokens: the names of the fields, and a model that does not count its words


@dataclass(frozen=True, slots=True)
class Limits:
    """How long what the agents write may be.

    Raises:
        ValueError: One is not above 0.
    """

    opinion: int = 400
    """Tokens of a specialist's text."""
    field: int = 120
    """Tokens of one text in what the orchestrator and the synthesis write."""

    def __post_init__(self) -> None:
        if self.opinion <= 0 or self.field <= 0:
            raise ValueError("limits must be above 0 tokens")

    def max_tokens(self, fields: int, *, is_local: bool) -> int:
        """Return the limit of a structured reply.

        Args:
            fields: How many texts it has.
            is_local: Whether a grammar holds each text of the model to the limit of the call.
        """
        return self.field if is_local else fields * self.field + _ROOM_FOR_FORM

    @property
    def opinion_words(self) -> int:
        """About as many words, for a prompt."""
        return max(10, int(self.opinion * _WORDS_PER_TOKEN))

    @property
    def field_words(self) -> int:
        """Likewise."""
        return max(8, int(self.field * _WORDS_PER_TOKEN))


USUAL = Limits()
SHORT = Limits(opinion=48, field=18)
"""For a model that is slow: the embedded one."""
