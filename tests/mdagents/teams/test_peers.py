"""Controls of a debate change what is read after the first opinions, and nothing before."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.runs.config import RunConfig
from mdagents.settings import Difficulty, Peers
from mdagents.teams.baselines import debate
from mdagents.teams.decision import Decision
from mdagents.teams.methods import TEAMS
from mdagents.teams.peers import exchanged, noise
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider, SeenRequest
from tests.mdagents.conftest import SCURVY
from tests.mdagents.teams.debates import chatter

Ask = Callable[[Peers], Awaitable[tuple[list[str], Decision]]]
ROLES = ("Internist", "Dentist", "Dietitian")
TURN, UPDATE, MODERATE = (
    "Your task in round 1",
    "Your task: round 1 is over",
    "Your role: moderator",
)


def others(prompt: str) -> list[str]:
    """The lines of a prompt that show opinions."""
    return re.findall(r"^- .*REASON.*$", prompt, re.MULTILINE)


def with_task(prompts: list[str], task: str) -> list[str]:
    return sorted(prompt for prompt in prompts if task in prompt)


@pytest.fixture
def ask(provider: FakeProvider, case: Case) -> Ask:
    """Holds a debate of one round under a control; gives its prompts and its decision."""

    def opinion(request: SeenRequest) -> dict[str, Any]:
        role = re.findall(rf"Your role: ({'|'.join(ROLES)})", request.text)[-1]
        number = ROLES.index(role) + 1
        sure = number / 10
        return {"reasoning": f"REASON-{number}.", "answer": "ABC"[number - 1], "confidence": sure}

    chatter(provider, "MESSAGE")
    provider.when('"confidence": a number', opinion)
    provider.when(
        "Your task: choose exactly",
        {"experts": [{"role": role, "expertise": "All.", "reports_to": None} for role in ROLES]},
    )

    async def hold(peers: Peers) -> tuple[list[str], Decision]:
        settings = replace(case.settings, rounds=1, turns=1, peers=peers)
        before = len(provider.calls)
        decision = await TEAMS[Difficulty.INTERMEDIATE](case, case.question, settings)
        return [call.text for call in provider.calls[before:]], decision

    return hold


@pytest.mark.parametrize("peers", Peers)
async def test_nothing_differs_up_to_the_first_opinions(ask: Ask, peers: Peers) -> None:
    full, _ = await ask(Peers.ALL)
    control, _ = await ask(peers)
    assert sorted(control[:4]) == sorted(full[:4])
    assert len(control) == len(full)


async def test_none_lets_each_expert_reconsider_alone(ask: Ask) -> None:
    full, _ = await ask(Peers.ALL)
    control, decision = await ask(Peers.NONE)
    assert with_task(control, TURN) == with_task(full, TURN)
    for prompt in with_task(control, UPDATE):
        assert "MESSAGE" not in prompt
        (own,) = others(prompt)
        number = re.findall(r"You are expert (\d)", prompt)[-1]
        assert f"REASON-{number}" in own
    assert decision.messages == ()
    assert len(decision.opinions) == 6
    (moderator,) = with_task(control, MODERATE)
    assert "MESSAGE" not in moderator


async def test_noise_is_about_other_questions_and_as_long(ask: Ask) -> None:
    full, _ = await ask(Peers.ALL)
    control, decision = await ask(Peers.NOISE)
    for noisy, real in zip(with_task(control, UPDATE), with_task(full, UPDATE), strict=True):
        assert "MESSAGE" not in noisy
        (own,) = others(noisy)
        assert f"REASON-{re.findall('You are expert (.)', noisy)[-1]}" in own
        shown = re.findall(r"answer [A-D]", noisy)
        assert len(shown) == 1, "the answers of the others would be no noise"
        assert abs(len(noisy) - len(real)) < 120
    assert all("MESSAGE" not in message.text for message in decision.messages)


async def test_shuffled_shows_the_same_words_under_other_names(ask: Ask) -> None:
    full, _ = await ask(Peers.ALL)
    control, _ = await ask(Peers.SHUFFLED)
    for shuffled, real in zip(with_task(control, UPDATE), with_task(full, UPDATE), strict=True):
        assert re.findall(r"(?:REASON|MESSAGE)\S+", shuffled) == re.findall(
            r"(?:REASON|MESSAGE)\S+", real
        )
        number = re.findall(r"You are expert (\d)", shuffled)[-1]
        for line in others(shuffled):
            name, reason = re.findall(r"Expert (\d) .*REASON-(\d)", line)[0]
            assert (name == reason) is (reason == number)
        (sender,) = re.findall(r"From Expert (\d): MESSAGE #(\d)", shuffled)
        assert sender[0] != sender[1]


async def test_the_devil_defends_a_wrong_option_from_the_first_opinions_on(ask: Ask) -> None:
    control, _ = await ask(Peers.DEVIL)
    told = [prompt for prompt in control if "you defend option" in prompt]
    assert len(told) == 2, "one expert, in a turn and when it reconsiders"
    letters = {re.findall(r"you defend option (.)", prompt)[0] for prompt in told}
    assert len(letters) == 1
    assert letters < {"A", "B", "D"}
    assert len({re.findall(r"You are expert (\d)", prompt)[-1] for prompt in told}) == 1
    assert told == [p for p in (await ask(Peers.DEVIL))[0] if "you defend option" in p]


async def test_blind_removes_names_roles_and_confidence(ask: Ask) -> None:
    control, _ = await ask(Peers.BLIND)
    for prompt in with_task(control, UPDATE):
        number = re.findall(r"You are expert (\d)", prompt)[-1]
        for line in others(prompt):
            is_own = f"REASON-{number}" in line
            assert ("confidence" in line) is is_own
            assert any(role in line for role in ROLES) is is_own
        assert "From An expert: MESSAGE" in prompt
    (moderator,) = with_task(control, MODERATE)
    assert not any(role in line for line in others(moderator) for role in ROLES)
    assert all("confidence" not in line for line in others(moderator))
    for prompt in with_task(control, TURN):  # whom to write to, one has to know
        assert len(re.findall(r"^- Expert \d.*REASON", prompt, re.MULTILINE)) == 3


async def test_fresh_shows_the_moderator_first_opinions_only(ask: Ask) -> None:
    full, _ = await ask(Peers.ALL)
    control, decision = await ask(Peers.FRESH)
    assert sorted(control[:-1]) == sorted(full[:-1])
    (moderator,) = with_task(control, MODERATE)
    assert "First opinions:" in moderator
    assert "Final opinions:" not in moderator
    assert "MESSAGE" not in moderator
    assert len(decision.messages) == 3


@pytest.mark.parametrize("peers", Peers)
async def test_debaters_who_see_all_answers(
    provider: FakeProvider, case: Case, peers: Peers
) -> None:
    letters = iter("ABCABC" * 2)
    provider.when(
        '"confidence": a number',
        lambda _: {"reasoning": "REASON.", "answer": next(letters), "confidence": 0.5},
    )
    settings = replace(case.settings, answer_rounds=2, peers=peers)
    decision = await debate.solve(case, case.question, settings)
    again = [call.text for call in provider.calls if "The answers so far" in call.text]
    assert len(again) == 3
    assert len(decision.opinions) == 6
    for prompt in again:
        shown = len(others(prompt))
        assert shown == (1 if peers in (Peers.NONE, Peers.NOISE) else 3)
    assert sum("you defend option" in prompt for prompt in again) == (peers is Peers.DEVIL)


@pytest.mark.parametrize("peers", Peers)
async def test_reviewers_and_coordinator_of_the_advanced_team(
    provider: FakeProvider, case: Case, peers: Peers
) -> None:
    provider.when(
        "draw the conclusion of your team", {"findings": "REASON.", "answer": "A", "dissent": "x"}
    )
    settings = replace(case.settings, peers=peers)
    decision = await TEAMS[Difficulty.ADVANCED](case, case.question, settings)
    coordinator = provider.calls[-1].text
    review = [call.text for call in provider.calls if "reviews the reports above" in call.text]
    assert bool(review) is (peers is not Peers.NONE)
    assert all(("REASON" in text) is (peers is not Peers.NOISE) for text in review)
    assert ("[Final Review]" in coordinator) is (peers is not Peers.FRESH)
    assert (f"{decision.teams[0].name}: REASON" in coordinator) is (
        peers not in (Peers.BLIND, Peers.SHUFFLED)
    )
    assert any("you defend option" in call.text for call in provider.calls) is (
        peers is Peers.DEVIL
    )


def test_names_are_exchanged_among_the_others() -> None:
    assert exchanged(["a", "b", "c"], "a") == {"a": "a", "b": "c", "c": "b"}
    assert exchanged(["a", "b"], "a") == {"a": "a", "b": "b"}
    assert exchanged(["a", "b", "c"], "") == {"a": "b", "b": "c", "c": "a"}


@pytest.mark.parametrize("length", [1, 30, 200, 5000])
def test_noise_has_the_length_of_what_it_replaces(length: int) -> None:
    text = noise(SCURVY.text, "b 1", length)
    assert 0 < len(text) <= length
    assert len(text) > length - 60
    assert text == noise(SCURVY.text, "b 1", length)
    if length > 30:
        assert text != noise(SCURVY.text, "c 1", length)


@pytest.mark.parametrize(
    "flags", [{"method": "cot"}, {"difficulty": "basic"}, {"method": "medagents"}]
)
def test_a_control_belongs_to_methods_whose_agents_read_each_other(flags: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="--peers none changes what experts read of each other"):
        RunConfig(peers="none", **flags)
