"""Detects that an agent changes its answer although nobody has said anything new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from exaid_core.checks.dissent import stated_answer
from exaid_core.checks.normal_form import Wording

_NEW = 4
"""Minimum number of new words about the patient for a change to have a reason. An agreement, "I
agree with my colleague, so the answer is A", has fewer."""


class _Said(Protocol):
    @property
    def agent_id(self) -> str: ...
    @property
    def text(self) -> str: ...


class Positions:
    """The answers that agents hold in a case, and the words that have been said."""

    def __init__(self) -> None:
        self._words: list[set[str]] = []
        """Words about the patient of each segment so far."""
        self._held: dict[str, tuple[str, int]] = {}
        """Agent -> its last answer, and the number of segments up to that statement."""

    def unargued(self, segments: Sequence[_Said]) -> Iterator[str]:
        """Yield a remark on each agent that changes its answer without a reason.

        A reason is at least `_NEW` words that nobody had said up to its last answer, be it in
        its own words or in those of others since. Only answers that are stated by letter count.

        Args:
            segments: The next segments of the case.
        """
        for segment in segments:
            self._words.append(Wording(segment.text).about)
            answer = stated_answer(segment.text)
            if answer is None:
                continue
            before, known = self._held.get(segment.agent_id, (answer, 0))
            self._held[segment.agent_id] = answer, len(self._words)
            if answer != before:
                said = set[str]().union(*self._words[:known])
                since = set[str]().union(*self._words[known:])
                if len(since - said) < _NEW:
                    yield (
                        f"{segment.agent_id} changed from {before} to {answer}, and nobody had "
                        "said anything new"
                    )
