"""The teams of teams over real HTTP: who delegates, reports and reviews, what is put right."""

from __future__ import annotations

import re

import pytest

from benchmarks.provider import fix_lengths
from mdagents.agents.case import Case
from mdagents.agents.replies import CHARS_PER_WORD, EXPERTISE_WORDS
from mdagents.settings import Difficulty
from mdagents_llm.errors import StructuredOutputError
from tests.fake_provider import FakeProvider, depth
from tests.mdagents.conftest import Solve

ADVANCED = Difficulty.ADVANCED


@pytest.mark.parametrize(
    ("teams", "size", "calls"), [(3, 3, 14), (2, 2, 8), (3, 1, 5), (1, 3, 6), (10, 1, 12)]
)
async def test_advanced_calls(
    provider: FakeProvider, solve: Solve, teams: int, size: int, calls: int
) -> None:
    decision = await solve(ADVANCED, teams=teams, team_size=size)
    assert len(provider.calls) == calls
    assert [len(team.members) for team in decision.teams] == [size] * teams


async def test_advanced_depth(provider: FakeProvider, solve: Solve) -> None:
    provider.latency = 0.1
    await solve(ADVANCED)
    assert depth(provider.calls) == 8


PLAN = {
    "teams": [
        {
            "name": name,
            "purpose": "Look at the case.",
            "kind": kind,
            "members": [
                {"role": f"Physician {name} {i}", "expertise": "Much.", "lead": i == 2}
                for i in (1, 2)
            ],
        }
        for name, kind in (
            ("Review", "final_review"),
            ("First", "initial"),
            ("Hearts", "specialist"),
        )
    ]
}


async def test_the_review_team_reads_the_reports_of_the_others(
    provider: FakeProvider, solve: Solve
) -> None:
    provider.when("Your task: organise exactly", PLAN)
    decision = await solve(ADVANCED, team_size=2)
    reviewers = [call.text for call in provider.calls if " the Review, " in call.text]
    others = [r for r in decision.teams if r.kind != "final_review"]
    assert len(reviewers) == 3
    assert [team.kind for team in decision.teams] == ["initial", "specialist", "final_review"]
    for report in others:
        assert all(report.findings in text for text in reviewers)
    coordination = provider.calls[-1].text
    headings = ["[Initial Assessments]", "[Specialist Team Assessments]", "[Final Review]"]
    assert sorted(headings, key=coordination.index) == headings
    assert all(report.findings in coordination for report in decision.teams)


async def test_only_the_review_team_is_told_to_review(provider: FakeProvider, solve: Solve) -> None:
    provider.when("Your task: organise exactly", PLAN)
    await solve(ADVANCED, team_size=2)
    team = [
        call.text for call in provider.calls if re.search("You (lead|assist in) the", call.text)
    ]
    review = [text for text in team if "which reviews the reports above" in text]
    assert len(review) == 3
    assert all("against the question" in text for text in review)
    assert sum("name what is wrong or missing" in text for text in review) == 2
    assert "then conclude" in review[-1]
    others = [text for text in team if text not in review]
    assert len(others) == 6
    assert not any("report above" in text or "reports above" in text for text in others)


async def test_a_review_team_of_one_reviews(provider: FakeProvider, solve: Solve) -> None:
    await solve(ADVANCED, teams=2, team_size=1)
    alone, review = [call.text for call in provider.calls if "You lead the" in call.text]
    assert "You work alone." in alone
    assert "reviews the reports above" in review


async def test_nothing_is_said_twice_in_the_advanced_team(
    provider: FakeProvider, solve: Solve
) -> None:
    plan = {
        "teams": [
            {
                "name": kind,
                "purpose": f"Purpose of {kind}.",
                "kind": kind,
                "members": [
                    {"role": f"Physician {i}", "expertise": "So much. " * 30, "lead": i == 1}
                    for i in (1, 2)
                ],
            }
            for kind in ("initial", "final_review")
        ]
    }
    provider.when("Your task: organise exactly", plan)
    provider.when('"dissent"', {"dissent": "none"})
    await solve(ADVANCED, teams=2, team_size=2)
    prompts = [call.text for call in provider.calls]
    assert sum("Purpose of initial." in prompt for prompt in prompts) == 1, "to who delegates"
    personas = [line for text in prompts for line in text.split("\n") if "Expertise: " in line]
    assert len(personas) == 6
    longest = EXPERTISE_WORDS * CHARS_PER_WORD
    assert all(len(line.partition("Expertise: ")[2]) <= longest for line in personas)
    assert not any("dissent: none" in prompt for prompt in prompts)


async def test_tokens_of_the_advanced_team(provider: FakeProvider, solve: Solve) -> None:
    fix_lengths(provider)
    await solve(ADVANCED)
    assert provider.totals.total <= 0.8 * 9_468, "of what it took when reports were repeated"


async def test_the_lead_delegates_and_hears_the_assistants(
    provider: FakeProvider, solve: Solve
) -> None:
    provider.when("Your task: organise exactly", PLAN)
    decision = await solve(ADVANCED, team_size=2)
    first = decision.teams[0]
    assert first.members[0] == "iat-1-physician-first-2", "the lead comes first"
    assistant = next(c.text for c in provider.calls if "assist in the First" in c.text)
    synthesis = next(
        c.text for c in provider.calls if "lead the First" in c.text and "conclusion" in c.text
    )
    assert first.instructions in assistant
    assert first.investigations[0].findings in synthesis


async def test_missing_kinds_and_leads_are_filled_by_rule_without_a_call(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    plan = {
        "teams": [
            {
                "name": f"Team {number}",
                "purpose": "Look at the case.",
                "kind": "specialist",
                "members": [
                    {"role": "Surgeon", "expertise": "Cuts.", "lead": number == 2} for _ in range(3)
                ],
            }
            for number in (1, 2, 3)
        ]
    }
    provider.when("Your task: organise exactly", plan)
    decision = await solve(ADVANCED)
    assert len(provider.calls) == 14
    assert [team.kind for team in decision.teams] == ["initial", "specialist", "final_review"]
    assert any("had 0 leads" in repair for repair in case.repairs)
    assert any("had 3 leads" in repair for repair in case.repairs)
    assert any("became final_review" in repair for repair in case.repairs)
    agents = [agent for team in decision.teams for agent in team.members]
    assert len(set(agents)) == 9


async def test_turns_that_fail_in_a_team_do_not_stop_it(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    provider.when("Your task: organise exactly", PLAN)
    provider.fail_next("context_length", match="assist in the First")
    provider.fail_next(
        "context_length", match=lambda r: "lead the Hearts" in r.text and "assistants:" in r.text
    )
    decision = await solve(ADVANCED, team_size=2)
    assert len(decision.teams) == 3
    assert decision.teams[0].investigations == ()
    assert {turn.phase for turn in case.left_out} == {"iat-investigate", "mdt3-delegate"}


async def test_a_team_whose_lead_fails_is_left_out(
    provider: FakeProvider, solve: Solve, case: Case
) -> None:
    provider.when("Your task: organise exactly", PLAN)
    provider.fail_next(
        "context_length", match=lambda r: "lead the Hearts" in r.text and "conclusion" in r.text
    )
    decision = await solve(ADVANCED, team_size=2)
    assert [team.name for team in decision.teams] == ["First", "Review"]
    assert case.left_out[0].phase == "team-report"


async def test_a_coordinator_that_refuses_gives_no_answer(
    provider: FakeProvider, solve: Solve
) -> None:
    provider.fail_next("refusal", match="Your role: coordinator")
    with pytest.raises(StructuredOutputError):
        await solve(ADVANCED)
