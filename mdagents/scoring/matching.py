"""Matches ledger calls to the turns of a transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mdagents.scoring.transcripts import TranscriptTurn
from mdagents_llm.ledger import CallRow

SLACK_MS = 5
"""Tolerance in ms between two clocks: the trace's is monotonic, the ledger's may jump."""


def calls_by_turn(
    turns: Sequence[TranscriptTurn], calls: Sequence[CallRow]
) -> tuple[list[list[CallRow]], list[CallRow]]:
    """Assign each call to a turn of its agent.

    Turns and calls do not reference each other, and their clocks may differ. What holds is that
    the calls of an agent are in the order of its turns, and that the calls of a turn have one
    phase. Of the assignments that respect this, the best one leaves the fewest calls without a
    turn; then its calls extend least beyond their turns, not counting `SLACK_MS`; then it leaves
    the fewest turns without a call. The time of a call outside of the whole transcript does not
    count: in a replay, the trace keeps its old times and the calls have new ones.

    Args:
        turns: Turns of a case.
        calls: Calls of the same case, in order.

    Returns:
        The calls of each turn, in the order of `turns`, and the calls of no turn.
    """
    begin = min((turn.started_ms for turn in turns), default=0) - SLACK_MS
    end = max((turn.ended_ms for turn in turns), default=0) + SLACK_MS
    own: dict[str, list[CallRow]] = {turn.agent: [] for turn in turns}
    nowhere: list[CallRow] = []
    for call in calls:
        own.get(call.agent, nowhere).append(call)
    placed: list[list[CallRow]] = [[] for _ in turns]
    for agent, of_agent in own.items():
        numbers = [number for number, turn in enumerate(turns) if turn.agent == agent]
        outside = [
            [
                _outside(call, turns[number])
                if begin <= call.ended_ms and call.started_ms <= end
                else 0
                for number in numbers
            ]
            for call in of_agent
        ]
        positions = _aligned([call.phase for call in of_agent], outside)
        for call, position in zip(of_agent, positions, strict=True):
            (nowhere if position < 0 else placed[numbers[position]]).append(call)
    return placed, nowhere


class _Way(NamedTuple):
    """A way to assign an agent's calls so far; the lesser of two ways is the better one."""

    left: int
    """Number of calls without a turn."""
    beyond: int
    """Sum of the ms by which the calls extend beyond their turns and the slack."""
    free: int
    """Number of turns without a call, less the number of all turns."""
    outside: int
    """Sum of the ms by which the calls extend beyond their turns."""
    chosen: tuple[int, ...]
    """Position of the turn of each call; -1 without one."""

    def plus(self, position: int, outside: int, *, is_first: bool) -> _Way:
        """Return the way with another call in a turn, which may be the first call of the turn."""
        beyond = self.beyond + max(0, outside - SLACK_MS)
        chosen = (*self.chosen, position)
        return _Way(self.left, beyond, self.free - is_first, self.outside + outside, chosen)


def _aligned(phases: Sequence[str], outside: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the position of the turn of each call of an agent, -1 without one.

    Args:
        phases: Phase of each call.
        outside: For each call and each turn, the number of ms that the call extends beyond it.
    """
    ways = {-1: _Way(0, 0, 0, 0, ())}  # position of the last turn with calls -> best way
    earlier = None
    for phase, of_call in zip(phases, outside, strict=True):
        longer: dict[int, list[_Way]] = {}
        for last, way in ways.items():
            without = way._replace(left=way.left + 1, chosen=(*way.chosen, -1))
            longer.setdefault(last, []).append(without)
            if phase == earlier and last >= 0:
                longer[last].append(way.plus(last, of_call[last], is_first=False))
        before = ways[-1]
        for position, ms in enumerate(of_call):
            before = min(before, ways.get(position - 1, before))
            longer.setdefault(position, []).append(before.plus(position, ms, is_first=True))
        ways = {last: min(some) for last, some in longer.items()}
        earlier = phase
    return min(ways.values()).chosen


def _outside(call: CallRow, turn: TranscriptTurn) -> int:
    """Return the number of ms that a call extends beyond a turn."""
    return max(0, turn.started_ms - call.started_ms) + max(0, call.ended_ms - turn.ended_ms)
