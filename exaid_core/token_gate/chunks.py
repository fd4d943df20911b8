"""Gates that ignore words and time: fixed-size chunks and whole turns."""

from __future__ import annotations

import math

from exaid_core.ctu import CHARS_PER_CTU
from exaid_core.token_gate.token_gate import Flush, FlushReason, GateCore, GateProfile

_NO_WORDS = GateProfile(1_000_000_000, 1_000_000_000, math.inf, math.inf)


class ChunkGate(GateCore):
    """A gate that releases text in chunks of a fixed size, without cutting the last token.

    Args:
        chunk_ctu: Size of a chunk in CTU; None releases text only on `flush`.
    """

    def __init__(self, chunk_ctu: int | None = None) -> None:
        super().__init__(_NO_WORDS)
        self._chunk_chars = math.inf if chunk_ctu is None else chunk_ctu * CHARS_PER_CTU
        self._chars: dict[str, int] = {}

    def add(self, agent_id: str, token: str, *, seq: int, now: float) -> list[Flush]:
        """Add one token, and release the chunk if the token fills it."""
        super().add(agent_id, token, seq=seq, now=now)
        self._chars[agent_id] = self._chars.get(agent_id, 0) + len(token)
        if self._chars[agent_id] < self._chunk_chars:
            return []
        flush = self.flush(agent_id, FlushReason.MAX_WORDS)
        return [flush] if flush else []

    def flush(self, agent_id: str, reason: FlushReason = FlushReason.END_OF_TRACE) -> Flush | None:
        """Release the text that is held for an agent; return None if there is none."""
        self._chars.pop(agent_id, None)
        return super().flush(agent_id, reason)
