"""Calls go to the turns in which they were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mdagents.scoring.matching import SLACK_MS, calls_by_turn
from mdagents.scoring.transcripts import TranscriptTurn
from mdagents_llm.clock import timestamp_of
from mdagents_llm.ledger import CallRow
from tests.mdagents.records.test_calls import ROW

START = 1_800_000_000_000


def turn(agent: str, at: int, ms: int = 30) -> TranscriptTurn:
    return TranscriptTurn(agent, START + at, START + at + ms, "text", ())


def call(agent: str, phase: str, at: int, ms: int = 20, restart: int = 0) -> CallRow:
    return replace(
        ROW,
        started_at=timestamp_of(START + at),
        phase=phase,
        agent=agent,
        latency=ms / 1000,
        restart=restart,
    )


def phases(turns: list[TranscriptTurn], calls: list[CallRow]) -> list[list[str]]:
    placed, nowhere = calls_by_turn(turns, calls)
    assert sorted(id(one) for some in (*placed, nowhere) for one in some) == sorted(map(id, calls))
    return [[one.phase for one in some] for some in placed]


DEBATE = [(agent, f"round-{n}") for n in range(1, 5) for agent in ("a", "b", "c")]
TURNS = [turn(agent, 40 * n) for n, (agent, _) in enumerate(DEBATE)]


@pytest.mark.parametrize("apart", [-3_600_000, -SLACK_MS, 0, SLACK_MS, 3_600_000])
def test_each_call_of_a_debate_goes_to_its_turn(apart: int) -> None:
    """Also in a replay, whose calls have new times."""
    calls = [call(agent, phase, 40 * n + apart) for n, (agent, phase) in enumerate(DEBATE)]
    assert phases(TURNS, calls) == [[phase] for _, phase in DEBATE]


def test_repeated_calls_share_a_turn() -> None:
    calls = [call("a", "round-1", 0, 10), call("a", "round-1", 12, 10), call("a", "round-2", 120)]
    assert phases(TURNS, calls)[:4] == [["round-1", "round-1"], [], [], ["round-2"]]


def test_a_turn_without_a_call_stays_without_one() -> None:
    turns = [turn("a", at) for at in (0, 100, 200)]
    calls = [call("a", "opinion", 0), call("a", "opinion", 1), call("a", "update", 200)]
    assert phases(turns, calls) == [["opinion", "opinion"], [], ["update"]]


def test_calls_of_an_attempt_before_the_transcript_displace_none() -> None:
    turns = [turn("a", 60_000), turn("b", 60_100)]
    stale = [call("a", "recruit", 100), call("b", "opinion", 200)]
    calls = [call("a", "recruit", 60_000, restart=1), call("b", "opinion", 60_100, restart=1)]
    placed, nowhere = calls_by_turn(turns, stale + calls)
    assert (placed, nowhere) == ([[calls[0]], [calls[1]]], stale)


def test_a_call_of_nobody_who_spoke_goes_nowhere() -> None:
    assert phases([turn("a", 0)], [call("stranger", "one", 0), call("a", "two", 0)]) == [["two"]]
    assert phases([], [call("a", "one", 0)]) == []
