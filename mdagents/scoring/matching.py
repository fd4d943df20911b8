"""Matches ledger calls to the turns of a transcript."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.transcripts import TranscriptTurn
from mdagents_llm.ledger import CallRow

SLACK_MS = 5
"""Tolerance in ms between two clocks: the trace's is monotonic, the ledger's may jump."""


def calls_by_turn(
    turns: Sequence[TranscriptTurn], calls: Sequence[CallRow]
) -> tuple[list[list[CallRow]], list[CallRow]]:
    """Assign each call to a turn of its agent.

    Turns and calls do not reference each other. A call belongs to the turn during which it was
    made, within `SLACK_MS`; where two turns touch, to the better fit, then to the turn with fewer
    calls. Remaining calls go in order to the agent's turns without a call: in a replay, the trace
    keeps its old times and the calls have new ones.

    Args:
        turns: Turns of a case.
        calls: Calls of the same case, in order.

    Returns:
        The calls of each turn, in the order of `turns`, and the calls of no turn.
    """
    placed: list[list[CallRow]] = [[] for _ in turns]
    left = []
    for call in calls:
        fits = [
            (outside, len(placed[number]), number)
            for number, turn in enumerate(turns)
            if turn.agent == call.agent and (outside := _outside(call, turn)) <= SLACK_MS
        ]
        if fits:
            placed[min(fits)[-1]].append(call)
        else:
            left.append(call)
    silent: dict[str, list[int]] = {}
    for number in reversed(range(len(turns))):
        if not placed[number]:
            silent.setdefault(turns[number].agent, []).append(number)
    nowhere = []
    for call in left:
        if of_agent := silent.get(call.agent):
            placed[of_agent.pop()].append(call)
        else:
            nowhere.append(call)
    return placed, nowhere


def _outside(call: CallRow, turn: TranscriptTurn) -> int:
    """Return the number of ms that a call extends beyond a turn."""
    return max(0, turn.started_ms - call.started_ms) + max(0, call.ended_ms - turn.ended_ms)
