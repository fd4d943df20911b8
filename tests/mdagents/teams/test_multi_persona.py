"""Multi-persona: one model, several views, and a discussion only where they differ."""

from __future__ import annotations

from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.teams.baselines import multi_persona
from mdagents.teams.decision import Decision
from mdagents_llm.errors import ProviderError
from tests.fake_provider import FakeProvider, SeenRequest, depth, peak_in_flight

DRAFT, DISCUSS, CONCLUDE = "judge the question on your own", "speak for all personas", "conclude"


def drafts(provider: FakeProvider, letters: str) -> None:
    left = list(letters)

    def reply(request: SeenRequest) -> dict[str, Any]:
        letter = left.pop(0)
        return {"reasoning": f"My view is {letter}.", "answer": letter, "confidence": 0.7}

    provider.when(DRAFT, reply)


async def decided(case: Case) -> Decision:
    return await multi_persona.solve(case, case.question, case.settings)


async def test_personas_who_agree_need_no_discussion(provider: FakeProvider, case: Case) -> None:
    provider.latency = 0.1
    drafts(provider, "CC")
    decision = await decided(case)
    assert (decision.letter, len(provider.calls)) == ("C", 3)
    assert depth(provider.calls) == 2
    assert peak_in_flight(provider.calls) == 2


async def test_personas_who_differ_discuss_in_one_reply(provider: FakeProvider, case: Case) -> None:
    provider.latency = 0.1
    drafts(provider, "CB")
    provider.when(DISCUSS, {"discussion": "The sailor has no vegetables."})
    provider.when(CONCLUDE, {"analysis": "So C.", "answer": "C"})
    decision = await decided(case)
    assert (decision.letter, decision.analysis) == ("C", "So C.")
    assert len(provider.calls) == 5
    assert depth(provider.calls) == 4
    *_, discussion, conclusion = provider.calls
    for call in (discussion, conclusion):
        assert "My view is C." in call.text
        assert "My view is B." in call.text
    assert "The sailor has no vegetables." in conclusion.text
    assert decision.votes() == {"C": 1, "B": 1}


async def test_one_model_plays_all_of_them(provider: FakeProvider, case: Case) -> None:
    drafts(provider, "CB")
    decision_model = case.models["decision"]
    case.models = {"decision": decision_model}
    await decided(case)
    personas = {call.text for call in provider.calls if DRAFT in call.text}
    assert len(personas) == 2, "each with a persona of its own"


async def test_one_draft_is_no_agreement(provider: FakeProvider, case: Case) -> None:
    drafts(provider, "CB")
    provider.fail_next("context_length", match=lambda request: DRAFT in request.text)
    await decided(case)
    assert len(case.left_out) == 1
    assert any(CONCLUDE in call.text for call in provider.calls)


async def test_without_a_discussion_the_drafts_decide(provider: FakeProvider, case: Case) -> None:
    drafts(provider, "CB")
    provider.fail_next("refusal", match=lambda request: DISCUSS in request.text)
    decision = await decided(case)
    assert decision.letter in set(case.question.letters)
    assert [left.phase for left in case.left_out] == ["discuss"]
    assert "Their discussion" not in provider.calls[-1].text


async def test_without_any_draft_there_is_no_answer(provider: FakeProvider, case: Case) -> None:
    provider.fail_next("context_length", times=2, match=lambda request: DRAFT in request.text)
    with pytest.raises(ProviderError):
        await decided(case)
