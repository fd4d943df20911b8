"""The basic team over real HTTP: how many calls, how deep, who reads what."""

from __future__ import annotations

import pytest

from mdagents.agents.case import Case
from mdagents.settings import Difficulty
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.ledger import CallRow
from tests.fake_provider import FakeProvider, depth, peak_in_flight
from tests.mdagents.conftest import Solve

BASIC, INTERMEDIATE, ADVANCED = Difficulty


async def test_basic_makes_1_n_1_calls_in_three_steps(provider: FakeProvider, solve: Solve) -> None:
    provider.latency = 0.1
    decision = await solve(BASIC)
    assert len(provider.calls) == 5
    assert depth(provider.calls) == 3
    assert peak_in_flight(provider.calls) == 3
    assert decision.letter in "ABCD"
    assert [opinion.round for opinion in decision.opinions] == [0, 0, 0]


async def test_the_arbitrator_reads_every_opinion_and_decides(
    provider: FakeProvider, solve: Solve
) -> None:
    provider.when("Your role: arbitrator", {"analysis": "Because.", "answer": "B"})
    decision = await solve(BASIC)
    arbitration = provider.calls[-1].text
    assert all(opinion.reasoning in arbitration for opinion in decision.opinions)
    assert (decision.letter, decision.analysis) == ("B", "Because.")


async def test_prompts_share_their_beginning(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    await solve(ADVANCED)
    users = [call.messages[1] for call in provider.calls]
    assert all(user.startswith(f"Question:\n{case.question.block()}\n\n") for user in users)
    assert len({call.messages[0] for call in provider.calls}) == 1
    assert all(len(call.messages) == 2 for call in provider.calls), "no replayed history"


async def test_temperatures(provider: FakeProvider, solve: Solve, rows: list[CallRow]) -> None:
    await solve(BASIC)
    by_role = {
        row.role: call.body["temperature"] for row, call in zip(rows, provider.calls, strict=True)
    }
    assert by_role == {"recruiter": 0.0, "expert": 0.7, "decision": 0.0}


async def test_an_expert_whose_call_fails_is_left_out_and_named(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    provider.fail_next("context_length", match="Your task: judge the question")
    decision = await solve(BASIC)
    assert len(decision.opinions) == 2
    (left_out,) = case.left_out
    assert left_out.phase == "opinion"
    assert "400" in left_out.error
    assert left_out.agent not in {opinion.agent for opinion in decision.opinions}


async def test_without_any_expert_there_is_no_answer(provider: FakeProvider, solve: Solve) -> None:
    provider.fail_next("context_length", times=3, match="Your task: judge the question")
    with pytest.raises(ProviderError) as caught:
        await solve(BASIC)
    assert caught.value.kind is ErrorKind.CONTEXT_LENGTH
    assert len(provider.calls) == 4, "the arbitrator was not asked"


async def test_a_recruiter_that_fails_twice_is_replaced_by_the_fallback(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    provider.fail_next("invalid_schema", times=2, match="Your task: choose exactly")
    decision = await solve(BASIC)
    roles = [opinion.role for opinion in decision.opinions]
    assert roles == ["General Internist", "Emergency Physician", "Family Physician"]
    assert "fallback" in case.repairs[0]


async def test_roles_named_twice_are_numbered_and_hyphens_survive(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    experts = [
        {"role": "Obstetrician-Gynecologist", "expertise": "Knows pregnancy."},
        {"role": "Cardiologist", "expertise": "Knows hearts."},
        {"role": "cardiologist", "expertise": "Knows them too."},
    ]
    provider.when("Your task: choose exactly", {"experts": experts})
    decision = await solve(BASIC)
    assert [opinion.role for opinion in decision.opinions] == [
        "Obstetrician-Gynecologist",
        "Cardiologist",
        "cardiologist 2",
    ]
    assert decision.opinions[0].agent == "expert-1-obstetrician-gynecologist"
    prompts = [call.text for call in provider.calls]
    assert any("Obstetrician-Gynecologist. Expertise: Knows pregnancy." in p for p in prompts)
    assert any("cardiologist 2" in repair for repair in case.repairs)


@pytest.mark.parametrize("experts", [1, 10])
async def test_basic_with_other_numbers(provider: FakeProvider, solve: Solve, experts: int) -> None:
    decision = await solve(BASIC, basic_experts=experts)
    assert len(provider.calls) == 1 + experts + 1
    assert len(decision.opinions) == experts
