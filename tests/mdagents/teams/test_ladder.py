"""The router that asks nobody: a question climbs while experts do not agree."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.agents.events import Ended, Event, Recruited, Routed, Rung
from mdagents.runs.config import RunConfig
from mdagents.runs.solver import Solved, Solver
from mdagents.settings import Difficulty, RoutedBy
from mdagents_llm.clock import Clock
from mdagents_llm.errors import ProviderError
from tests.fake_provider import FakeProvider, SeenRequest, ServedCall, depth
from tests.mdagents.teams.debates import chatter, silence
from tests.support.whole_runs import Run, records

BASIC, INTERMEDIATE, ADVANCED = Difficulty
FLAGS = ("--router", "disagreement")
FIRST, UPDATED = "judge the question on your own", "Say what you think now"


async def climbed(case: Case, **flags: Any) -> Solved:
    config = RunConfig(model="gpt-4o-mini", router="disagreement", **flags)
    case.settings = config.team
    return await Solver(config).solve(case, Clock(), None)


def first_opinions(provider: FakeProvider, letters: str, confidence: float = 0.9) -> None:
    """The experts name these letters, whichever asks first."""
    left = list(letters)

    def reply(request: SeenRequest) -> dict[str, Any]:
        letter = left.pop(0)
        return {"reasoning": f"First I say {letter}.", "answer": letter, "confidence": confidence}

    provider.when(FIRST, reply)


def later_opinions(provider: FakeProvider, letters: str) -> None:
    """After a round expert 1 names the first of these letters, and so on."""

    def reply(request: SeenRequest) -> dict[str, Any]:
        number = re.search(r"You are expert (\d)", request.text)
        assert number is not None
        letter = letters[int(number[1]) - 1]
        return {"reasoning": f"Now I say {letter}.", "answer": letter, "confidence": 0.5}

    provider.when(UPDATED, reply)


def persona(call: ServedCall) -> str:
    (line,) = re.findall(r"Your role: .*", call.text)
    return str(line)


async def test_experts_who_agree_decide_with_four_calls(provider: FakeProvider, case: Case) -> None:
    provider.latency = 0.1
    first_opinions(provider, "CCC")
    solved = await climbed(case)
    assert solved.decision is not None
    assert solved.route is not None
    assert (solved.decision.letter, len(provider.calls)) == ("C", 4)
    assert depth(provider.calls) == 2
    assert solved.route.routed_by is RoutedBy.DISAGREEMENT
    assert solved.route.difficulty is BASIC
    assert solved.route.rungs == (
        Rung(BASIC, {"C": 3}, 0.9, decided=True, why="all name C, mean confidence 0.90"),
    )
    assert solved.decision.confidence() == 0.9


@pytest.mark.sweep
async def test_experts_who_never_agree_climb_the_whole_ladder(
    provider: FakeProvider, case: Case
) -> None:
    provider.latency = 0.2  # calls side by side must be seen to overlap, also on a busy machine
    first_opinions(provider, "ABC")
    later_opinions(provider, "ABC")
    chatter(provider)
    solved = await climbed(case)
    rounds, turns, experts = 3, 3, 3
    debate = rounds * (turns * experts + experts)
    assert len(provider.calls) == 4 + debate + 14
    assert depth(provider.calls) == 2 + rounds * (turns + 1) + 8
    assert solved.route is not None
    assert [(rung.level, rung.decided) for rung in solved.route.rungs] == [
        (BASIC, False), (INTERMEDIATE, False), (ADVANCED, True),
    ]  # fmt: skip
    assert solved.route.rungs[0].why == "the experts are split (A 1, B 1, C 1)"
    assert solved.route.difficulty is ADVANCED
    assert solved.decision is not None
    assert len(solved.decision.teams) == 3
    assert len(solved.decision.opinions) == 12


@pytest.mark.sweep
async def test_nobody_is_asked_twice_for_the_same(provider: FakeProvider, case: Case) -> None:
    first_opinions(provider, "ABB")
    later_opinions(provider, "ABB")
    chatter(provider)
    await climbed(case)
    prompts = Counter(call.text for call in provider.calls)
    assert max(prompts.values()) == 1
    assert sum(FIRST in text for text in prompts) == 3
    assert sum("choose exactly 3 medical specialists" in text for text in prompts) == 1
    assert not any("Your role: arbitrator" in text for text in prompts)
    assert not any("Your role: moderator" in text for text in prompts)


async def test_the_debate_begins_with_the_opinions_and_the_experts_that_are_there(
    provider: FakeProvider, case: Case
) -> None:
    first_opinions(provider, "ABB")
    silence(provider)
    solved = await climbed(case, num_rounds=1)
    turns = [call for call in provider.calls if "decide whether it helps" in call.text]
    assert len(turns) == 3
    personas = {persona(call) for call in turns}
    asked_first = [call for call in provider.calls if FIRST in call.text]
    assert personas == {persona(call) for call in asked_first}
    for call in turns:
        assert call.text.count("First I say A.") == 1
        assert call.text.count("First I say B.") == 2
    assert solved.route is not None
    assert solved.route.difficulty is ADVANCED


async def test_a_debate_that_ends_in_agreement_decides(provider: FakeProvider, case: Case) -> None:
    first_opinions(provider, "ABB")
    later_opinions(provider, "BBB")
    chatter(provider)
    solved = await climbed(case, num_turns=1)
    assert solved.decision is not None
    assert solved.route is not None
    assert solved.decision.letter == "B"
    assert len(provider.calls) == 4 + 3 + 3
    assert [rung.level for rung in solved.route.rungs] == [BASIC, INTERMEDIATE]
    assert solved.decision.votes() == {"B": 3}
    assert {message.round for message in solved.decision.messages} == {1}
    assert solved.decision.panel[0].reports_to is None


async def test_all_in_the_advanced_team_are_told_how_the_debate_ended(
    provider: FakeProvider, case: Case
) -> None:
    first_opinions(provider, "ABC")
    silence(provider)
    await climbed(case)
    advanced = provider.calls[4 + 3 :]
    assert "organise exactly 3 multidisciplinary teams" in advanced[0].text
    for call in advanced[1:]:
        assert "Final opinions:" in call.text
        assert "Nobody asked for a discussion." in call.text


@pytest.mark.parametrize(
    ("confidence", "least", "level"),
    [(0.8, 0.8, BASIC), (0.79, 0.8, INTERMEDIATE), (0.1, 0.0, BASIC), (0.99, 1.0, INTERMEDIATE)],
)
async def test_how_sure_they_must_be(
    provider: FakeProvider, case: Case, confidence: float, least: float, level: Difficulty
) -> None:
    first_opinions(provider, "DDD", confidence)
    silence(provider)
    solved = await climbed(case, agreement=least)
    assert solved.route is not None
    assert solved.decision is not None
    assert solved.route.difficulty is level
    assert solved.decision.letter == "D", "unsure, but of one mind: a silent debate ends it"


async def test_one_expert_agrees_with_nobody(provider: FakeProvider, case: Case) -> None:
    first_opinions(provider, "CCC")
    provider.fail_next("context_length", times=2, match=lambda r: FIRST in r.text)
    solved = await climbed(case)
    assert solved.route is not None
    assert solved.route.difficulty is ADVANCED
    assert solved.route.rungs[0].why == "only one expert replied (C 1)"
    assert len(case.left_out) == 2


async def test_without_any_opinion_there_is_no_answer(provider: FakeProvider, case: Case) -> None:
    provider.fail_next("context_length", times=3, match=lambda r: FIRST in r.text)
    solved = await climbed(case)
    assert isinstance(solved.error, ProviderError)
    assert solved.decision is None
    assert solved.route is not None
    assert solved.route.difficulty is BASIC


@pytest.mark.parametrize(
    ("skip", "letters", "calls", "level", "is_answered"),
    [
        (BASIC, "CCC", 4, BASIC, False),
        (INTERMEDIATE, "CCC", 4, BASIC, True),
        (ADVANCED, "CCC", 4, BASIC, True),
        (BASIC, "ABC", 7 + 14, ADVANCED, True),
        (ADVANCED, "ABC", 7, ADVANCED, False),
        ((INTERMEDIATE, ADVANCED), "ABC", 4, INTERMEDIATE, False),
        ((BASIC, ADVANCED), "ABC", 7, ADVANCED, False),
        (tuple(Difficulty), "ABC", 0, BASIC, False),
    ],
)
async def test_a_question_is_left_out_where_it_would_stop(
    provider: FakeProvider,
    case: Case,
    skip: Any,
    letters: str,
    calls: int,
    level: Difficulty,
    is_answered: bool,
) -> None:
    first_opinions(provider, letters)
    silence(provider)
    skip = (skip,) if isinstance(skip, Difficulty) else skip
    solved = await climbed(case, skip=skip)
    assert solved.route is not None
    assert (solved.error, solved.route.difficulty) == (None, level)
    assert (solved.decision is not None) == is_answered
    assert len(provider.calls) == calls


async def test_observers_are_told_each_rung(provider: FakeProvider, case: Case) -> None:
    events: list[Event] = []
    case.tell = events.append
    first_opinions(provider, "ABC")
    silence(provider)
    await climbed(case)
    told = [event for event in events if isinstance(event, Routed | Rung | Recruited | Ended)]
    assert [type(event).__name__ for event in told] == [
        "Routed", "Recruited", "Rung", "Routed", "Rung", "Routed", "Recruited", "Rung", "Ended",
    ]  # fmt: skip
    assert [event.level for event in told if isinstance(event, Routed)] == list(Difficulty)


# -- whole runs -------------------------------------------------------------------------------


@pytest.mark.process
def test_a_run_at_random(provider: FakeProvider, run: Run) -> None:
    draw = random.Random(3)

    def reply(request: SeenRequest) -> dict[str, Any]:
        letter = draw.choice("AAAAB")
        return {"reasoning": f"{letter}.", "answer": letter, "confidence": 0.9}

    provider.when(FIRST, reply)
    silence(provider)
    status, out, err = run(*FLAGS, "--num-samples", "12")
    assert status == 0
    assert "adaptive by disagreement below 0.8" in err
    levels = Counter(record["difficulty"] for record in records())
    assert set(levels) == {BASIC, ADVANCED}, "silent debates change nobody's mind"
    for record in records():
        assert record["routed_by"] == "disagreement"
        assert record["status"] == "answered"
        assert record["calls"] == (4 if record["difficulty"] == BASIC else 7 + 14)
        assert [rung["level"] for rung in record["rungs"]] == (
            [BASIC] if record["difficulty"] == BASIC else list(Difficulty)
        )
        assert record["rungs"][-1]["decided"]
        assert record["routing_reason"] == record["rungs"][-1]["why"]
    assert sum(record["calls"] for record in records()) == len(provider.calls)
    assert "routing by disagreement: " in out


@pytest.mark.process
def test_it_is_another_run_than_that_of_the_model(provider: FakeProvider, run: Run) -> None:
    first_opinions(provider, "C" * 12)
    run("--num-samples", "1", *FLAGS)
    run("--num-samples", "1", *FLAGS, "--agreement", "0.5")
    assert len(provider.calls) == 4, "agreement changes no prompt: what was said is kept"
    assert "already finished" in run("--num-samples", "1", *FLAGS, "--agreement", "0.8")[2]
    run("--num-samples", "1")
    assert len(list(Path("output").glob("*/run.json"))) == 3


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--method", "cot"), "--router chooses among the teams"),
        (("--difficulty", "basic"), "--router chooses among the teams"),
        (("--num-experts", "1"), "needs --num-experts 2 or more"),
        (("--agreement", "1.5"), "--agreement is 1.5 but must be 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    flags: tuple[str, ...], problem: str, provider: FakeProvider, run: Run
) -> None:
    status, out, err = run(*FLAGS, *flags)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err
    assert provider.calls == []


def test_agreement_belongs_to_it(run: Run) -> None:
    status, _, err = run("--agreement", "0.5")
    assert (status, err) == (2, "error: --agreement belongs to --router disagreement\n")


def test_the_forecast_spans_the_ladder(provider: FakeProvider, run: Run) -> None:
    status, out, _ = run(*FLAGS, "--num-samples", "2", "--dry-run")
    assert status == 0
    assert provider.calls == []
    assert re.search(r"\| basic +\| +4 \|", out)
    assert re.search(r"\| advanced +\| +21–54 \|", out)
    assert "the whole run: 8–108 calls" in out
