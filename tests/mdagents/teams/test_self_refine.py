"""Self-refine: what the critique sees, when it ends, and what a failure leaves."""

from __future__ import annotations

from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.teams.baselines import self_refine
from mdagents.teams.decision import Decision
from mdagents_llm.errors import StructuredOutputError
from tests.fake_provider import FakeProvider, SeenRequest, depth

CRITICISE, REVISE, ANSWER = "criticise your answer", "in the light of the critique", "step by step"


def answers(provider: FakeProvider, letters: str) -> None:
    """The first answer and each revision name the next of these letters."""
    left = list(letters)

    def reply(request: SeenRequest) -> dict[str, Any]:
        letter = left.pop(0)
        return {"reasoning": f"Because of {letter}.", "answer": letter, "confidence": 0.7}

    provider.when(ANSWER, reply)
    provider.when(REVISE, reply)


def critiques(provider: FakeProvider, *needs_change: bool) -> None:
    left = list(needs_change)
    provider.when(
        CRITICISE, lambda _: {"critique": "The gums were overlooked.", "needs_change": left.pop(0)}
    )


async def refined(case: Case) -> Decision:
    return await self_refine.solve(case, case.question, case.settings)


async def test_a_critique_that_finds_nothing_ends_it(provider: FakeProvider, case: Case) -> None:
    answers(provider, "B")
    critiques(provider, False)
    decision = await refined(case)
    assert (decision.letter, decision.analysis) == ("B", "Because of B.")
    assert len(provider.calls) == depth(provider.calls) == 2


async def test_it_ends_after_three_rounds(provider: FakeProvider, case: Case) -> None:
    answers(provider, "ABCD")
    critiques(provider, True, True, True)
    decision = await refined(case)
    assert decision.letter == "D"
    assert [(stated.round, stated.answer) for stated in decision.opinions] == list(
        enumerate("ABCD")
    )
    assert len(provider.calls) == depth(provider.calls) == 7
    assert decision.votes() == {"D": 1}, "one physician has one vote"


async def test_each_step_sees_the_last_answer_and_only_that(
    provider: FakeProvider, case: Case
) -> None:
    answers(provider, "ABC")
    critiques(provider, True, True, False)
    await refined(case)
    _, *steps = provider.calls
    for call, letter in zip(steps, "AABBC", strict=True):
        assert f"Your answer so far: Because of {letter}. (answer {letter})" in call.text
        assert call.text.count("Because of ") == 1
    assert all("The gums were overlooked." in call.text for call in steps[1::2])
    assert not any("The gums were overlooked." in call.text for call in steps[::2])


@pytest.mark.parametrize("step", [CRITICISE, REVISE])
async def test_a_step_that_fails_leaves_the_answer_before_it(
    provider: FakeProvider, case: Case, step: str
) -> None:
    answers(provider, "AB")
    critiques(provider, True)
    provider.fail_next("refusal", match=lambda request: step in request.text)
    decision = await refined(case)
    assert decision.letter == "A"
    assert [left.phase for left in case.left_out] == [
        "critique-1" if step is CRITICISE else "revise-1"
    ]


async def test_without_a_first_answer_there_is_none(provider: FakeProvider, case: Case) -> None:
    provider.fail_next("refusal")
    with pytest.raises(StructuredOutputError):
        await refined(case)
    assert len(provider.calls) == 1
