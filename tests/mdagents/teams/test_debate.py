"""The debate of equals: rounds of answers, and a vote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.teams.baselines import debate
from mdagents.teams.decision import Decision
from mdagents_llm.errors import ProviderError
from tests.fake_provider import FakeProvider, SeenRequest, depth, peak_in_flight
from tests.support.whole_runs import Run

FIRST, AGAIN = "judge the question on your own", "give your updated answer"


def answers(provider: FakeProvider, *rounds: str) -> None:
    """In each round the debaters name these letters, whichever asks first."""
    left = [list(round_) for round_ in rounds]

    def reply(request: SeenRequest) -> dict[str, Any]:
        if not left[0]:
            left.pop(0)
        letter = left[0].pop(0)
        return {"reasoning": f"I hold {letter}.", "answer": letter, "confidence": 0.6}

    provider.when(FIRST, reply)
    provider.when(AGAIN, reply)


async def debated(case: Case, **changes: Any) -> Decision:
    case.settings = replace(case.settings, **changes)
    return await debate.solve(case, case.question, case.settings)


async def test_debaters_who_agree_have_nothing_to_debate(
    provider: FakeProvider, case: Case
) -> None:
    answers(provider, "CCC")
    assert (await debated(case)).letter == "C"
    assert len(provider.calls) == 3


@pytest.mark.parametrize(("experts", "rounds"), [(3, 3), (2, 4), (5, 1)])
async def test_n_debaters_answer_in_r_rounds(
    provider: FakeProvider, case: Case, experts: int, rounds: int
) -> None:
    provider.latency = 0.1
    answers(provider, *["ABCDA"[:experts]] * rounds)
    decision = await debated(case, debate_experts=experts, answer_rounds=rounds)
    assert len(provider.calls) == experts * rounds == len(decision.opinions)
    assert depth(provider.calls) == rounds
    assert peak_in_flight(provider.calls) == experts


async def test_the_vote_is_over_what_was_said_last(provider: FakeProvider, case: Case) -> None:
    answers(provider, "AAB", "BBB")
    decision = await debated(case)
    assert (decision.letter, decision.votes()) == ("B", {"B": 3})
    assert len(provider.calls) == 6, "it ends when all agree"


async def test_everybody_reads_the_last_answers_of_all(provider: FakeProvider, case: Case) -> None:
    answers(provider, "ABC", "ABD", "ABD")
    await debated(case)
    third = provider.calls[6:]
    for call in third:
        assert [call.text.count(f"I hold {letter}.") for letter in "ABCD"] == [1, 1, 0, 1]
        assert "confidence 0.6" not in call.text
    assert {f"You are Debater {n}." in "".join(c.text for c in third) for n in (1, 2, 3)} == {True}


async def test_debaters_are_equal_but_for_their_luck(provider: FakeProvider, case: Case) -> None:
    answers(provider, "ABC", "AAA")
    await debated(case)
    first = provider.calls[:3]
    assert len({call.text for call in first}) == 1
    assert len({call.body["seed"] for call in first}) == 3
    assert {call.body["temperature"] for call in provider.calls} == {0.7}


async def test_who_fails_in_a_later_round_keeps_the_answer(
    provider: FakeProvider, case: Case
) -> None:
    answers(provider, "ABB", "BB", "BBB")
    provider.fail_next("context_length", match=lambda request: AGAIN in request.text)
    decision = await debated(case, answer_rounds=2)
    assert [left.phase for left in case.left_out] == ["round-1-update"]
    assert sum(decision.votes().values()) == 3


async def test_without_a_first_answer_there_is_none(provider: FakeProvider, case: Case) -> None:
    provider.fail_next("context_length", times=3)
    with pytest.raises(ProviderError):
        await debated(case)


@pytest.mark.process
def test_epochs_have_debates_of_their_own(provider: FakeProvider, run: Run) -> None:
    answers(provider, *["CCC"] * 2)
    run("--num-samples", "1", "--method", "debate", "--epochs", "2")
    assert len(provider.calls) == 6
    assert len({call.body["seed"] for call in provider.calls}) == 6
