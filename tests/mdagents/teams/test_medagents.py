"""MedAgents: a report that is revised until all experts agree with it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.teams.baselines import medagents
from mdagents.teams.decision import Decision
from mdagents_llm.errors import ProviderError
from tests.fake_provider import FakeProvider, SeenRequest, depth

REPORT, REVISE, CONSULT = "write one report", "revise your report", "say whether you agree"
DECIDE = "choose the best option from the report"


def votes(provider: FakeProvider, *rounds: str) -> None:
    """In each round the experts agree (`y`) or not (`n`), whichever votes first."""
    left = [list(round_) for round_ in rounds]

    def reply(request: SeenRequest) -> dict[str, Any]:
        if not left[0]:
            left.pop(0)
        agrees = left[0].pop(0) == "y"
        return {"objection": "none" if agrees else "It overlooks the gums.", "agrees": agrees}

    provider.when(CONSULT, reply)


def reports(provider: FakeProvider) -> None:
    numbers = iter(range(1, 9))

    def reply(request: SeenRequest) -> dict[str, Any]:
        return {"findings": f"This is report {next(numbers)}."}

    provider.when(REPORT, reply)
    provider.when(REVISE, reply)


async def decided(case: Case, **changes: Any) -> Decision:
    case.settings = replace(case.settings, **changes)
    return await medagents.solve(case, case.question, case.settings)


async def test_experts_who_agree_with_the_first_report(provider: FakeProvider, case: Case) -> None:
    provider.latency = 0.1
    reports(provider)
    votes(provider, "yyy")
    decision = await decided(case)
    assert len(provider.calls) == 1 + 3 + 1 + 3 + 1
    assert depth(provider.calls) == 5
    assert len(decision.opinions) == 3
    assert decision.letter in set(case.question.letters)


@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_experts_who_never_agree(provider: FakeProvider, case: Case, rounds: int) -> None:
    provider.latency = 0.1
    reports(provider)
    votes(provider, *["nnn"] * rounds)
    await decided(case, rounds=rounds)
    assert len(provider.calls) == 1 + 3 + 1 + rounds * (3 + 1) + 1
    assert depth(provider.calls) == 4 + 2 * rounds
    assert f"This is report {rounds + 1}." in provider.calls[-1].text, "no objection is unheard"


async def test_who_reads_what(provider: FakeProvider, case: Case) -> None:
    reports(provider)
    votes(provider, "yny", "yyy")
    await decided(case)
    by_task = {
        task: [call.text for call in provider.calls if task in call.text]
        for task in (REPORT, CONSULT, REVISE, DECIDE)
    }
    assert len(re.findall(r"^- .*\(answer [A-D]\)$", by_task[REPORT][0], re.MULTILINE)) == 3
    assert sum("This is report 1." in text for text in by_task[CONSULT]) == 3
    assert sum("This is report 2." in text for text in by_task[CONSULT]) == 3
    (revision,) = by_task[REVISE]
    assert "This is report 1." in revision
    assert revision.count("It overlooks the gums.") == 1
    (decision,) = by_task[DECIDE]
    assert "This is report 2." in decision
    assert "report 1" not in decision


async def test_a_vote_that_fails_is_no_agreement_and_no_objection(
    provider: FakeProvider, case: Case
) -> None:
    reports(provider)
    provider.when(
        CONSULT,
        lambda request: {"objection": "The gums.", "agrees": "This is report 2." in request.text},
    )
    provider.fail_next("context_length", match=lambda request: CONSULT in request.text)
    await decided(case)
    assert [left.phase for left in case.left_out] == ["consult-1"]
    (revision,) = (call.text for call in provider.calls if REVISE in call.text)
    assert revision.count("The gums.") == 2


async def test_without_any_vote_the_report_stands(provider: FakeProvider, case: Case) -> None:
    reports(provider)
    provider.fail_next("context_length", times=3, match=lambda request: CONSULT in request.text)
    await decided(case)
    assert len(case.left_out) == 3
    assert "This is report 1." in provider.calls[-1].text


@pytest.mark.parametrize("step", ["judge the question on your own", REPORT, DECIDE])
async def test_a_step_that_cannot_be_done_without(
    provider: FakeProvider, case: Case, step: str
) -> None:
    votes(provider, "yyy")
    provider.fail_next("context_length", times=3, match=lambda request: step in request.text)
    with pytest.raises(ProviderError):
        await decided(case)
