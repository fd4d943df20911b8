"""Calls go to the turns in which they were made, whatever the two clocks say."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from mdagents.scoring.matching import calls_by_turn
from mdagents.scoring.transcripts import TranscriptTurn
from mdagents_llm.chat import TokenUsage
from mdagents_llm.ledger import CallRow

START = 1_800_000_000_000


def turn(agent: str, at: int, ms: int = 3) -> TranscriptTurn:
    return TranscriptTurn(agent, START + at, START + at + ms, "text", ())


def call(agent: str, phase: str, at: int, ms: int = 2, outcome: str = "ok") -> CallRow:
    return CallRow(
        started_at=datetime.fromtimestamp((START + at) / 1000, UTC).isoformat(),
        case_id="case-1",
        phase=phase,
        agent=agent,
        role="expert",
        provider="p",
        model_requested="m",
        model="m",
        attempt=1,
        waited=0.0,
        latency=ms / 1000,
        outcome=outcome,
        usage=TokenUsage(),
        cost_usd=None,
    )


def phases(turns: list[TranscriptTurn], calls: list[CallRow]) -> list[list[str]]:
    placed, nowhere = calls_by_turn(turns, calls)
    assert sorted(id(one) for some in (*placed, nowhere) for one in some) == sorted(map(id, calls))
    return [[one.phase for one in some] for some in placed]


DEBATE = [(agent, f"round-{n}") for n in range(1, 5) for agent in ("a", "b", "c")]
TURNS = [turn(agent, 4 * n) for n, (agent, _) in enumerate(DEBATE)]


@pytest.mark.parametrize("ahead", [-3_600_000, -900, -13, -8, -5, 0, 5, 8, 13, 900, 3_600_000])
@pytest.mark.parametrize("from_call", [0, 4, 11])
def test_a_clock_that_is_ahead_or_jumps_moves_no_call(ahead: int, from_call: int) -> None:
    calls = [
        call(agent, phase, 4 * n + (ahead if n >= from_call else 0))
        for n, (agent, phase) in enumerate(DEBATE)
    ]
    assert phases(TURNS, calls) == [[phase] for _, phase in DEBATE]


def test_repeated_calls_of_a_phase_share_its_turn() -> None:
    rng = random.Random(1)
    for _ in range(50):
        calls, want = [], []
        for n, (agent, phase) in enumerate(DEBATE):
            count = rng.choice([1, 1, 2, 3])
            want.append([phase] * count)
            calls += [call(agent, phase, 4 * n, ms=rng.randint(0, 3)) for _ in range(count)]
        assert phases(TURNS, calls) == want


def test_two_turns_of_a_phase_have_their_own_calls() -> None:
    turns = [turn("recruiter", 0), turn("recruiter", 100)]
    for new in (0, 5_000_000):  # a replay has new times
        calls = [call("recruiter", "recruit", new + at) for at in (0, 100)]
        assert phases(turns, calls) == [["recruit"], ["recruit"]]
    again = [call("recruiter", "recruit", at) for at in (0, 1, 100)]
    assert phases(turns, again) == [["recruit", "recruit"], ["recruit"]]


def test_a_turn_without_a_call_stays_without_one() -> None:
    turns = [turn("a", at) for at in (0, 100, 200)]
    calls = [call("a", "opinion", 0), call("a", "opinion", 1), call("a", "update", 200)]
    assert phases(turns, calls) == [["opinion", "opinion"], [], ["update"]]


def test_a_call_without_a_turn_displaces_none() -> None:
    turns = [turn("a", 0), turn("a", 100)]
    calls = [call("a", "one", 0), call("a", "lost", 50), call("a", "two", 100)]
    calls.append(call("stranger", "one", 0))
    assert phases(turns, calls) == [["one"], ["two"]]
    assert phases([], calls) == []
