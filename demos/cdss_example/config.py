"""The limits of a case: node runs, text lengths, and the time to wait for EXAID."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NODE_RUNS = 6
"""Maximum number of node runs in one case; the last is reserved for the synthesis."""

EXAID_WAIT = 10.0
"""Seconds to wait for the last summaries at the end of a case."""

_WORDS_PER_TOKEN = 0.7
_ROOM_FOR_FORM = 200  # tokens for the field names and for models that overrun the word limit


@dataclass(frozen=True, slots=True)
class Limits:
    """Length limits of the agents' texts.

    Raises:
        ValueError: A limit is not above 0.
    """

    opinion: int = 400
    """Maximum tokens of a specialist's opinion."""
    field: int = 120
    """Maximum tokens of one text field in a reply of the orchestrator or the synthesis."""

    def __post_init__(self) -> None:
        if self.opinion <= 0 or self.field <= 0:
            raise ValueError("limits must be above 0 tokens")

    def max_tokens(self, fields: int, *, is_local: bool) -> int:
        """Return the token limit of a structured reply.

        Args:
            fields: Number of text fields in the reply.
            is_local: Whether a grammar holds each text of the model to the limit of the call.
        """
        return self.field if is_local else fields * self.field + _ROOM_FOR_FORM

    @property
    def opinion_words(self) -> int:
        """Approximate word limit of an opinion, for its prompt."""
        return max(10, int(self.opinion * _WORDS_PER_TOKEN))

    @property
    def field_words(self) -> int:
        """Approximate word limit of a text field, for its prompt."""
        return max(8, int(self.field * _WORDS_PER_TOKEN))


USUAL = Limits()
SHORT = Limits(opinion=48, field=18)
"""Limits for slow models, such as the embedded one."""
