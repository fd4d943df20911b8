"""A question that is stopped at any moment, on every way to an answer, leaves nothing behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mdagents.agents.case import Case
from mdagents.agents.events import Event, TurnBegan, TurnEnded
from mdagents.runs.config import RunConfig
from mdagents.runs.solver import Solver
from mdagents.settings import MDAGENTS, Difficulty, Router
from mdagents.teams.methods import declared
from mdagents.teams.names import baseline_names
from mdagents_llm.clock import Clock
from tests.fake_provider import FakeProvider
from tests.mdagents.teams.debates import chatter
from tests.support.cancelling import cancel_sometime
from tests.support.whole_runs import ROUND_TABLE, WITH_TRAIN_SPLIT

WAYS: list[dict[str, Any]] = [
    *({"difficulty": level} for level in Difficulty),
    *({"method": m} for m in baseline_names() if m not in WITH_TRAIN_SPLIT),
    {"router": Router.DISAGREEMENT},
]


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(*way.values()))
async def test_a_question_that_is_stopped(
    provider: FakeProvider, case: Case, way: dict[str, Any]
) -> None:
    provider.latency = 0.02
    chatter(provider)
    chance = Random(str(way))
    roles = ROUND_TABLE if declared(way.get("method", MDAGENTS)).seats else {}
    config = RunConfig(model="gpt-4o-mini", preset="small", model_role=roles, **way)
    models = {**case.models, **dict.fromkeys(roles, case.models["expert"])}
    before, stopped = asyncio.all_tasks(), 0
    for repeat in range(12):
        events: list[Event] = []
        one = replace(case, settings=config.team, models=models, repeat=repeat, tell=events.append)
        solving = Solver(config).solve(one, Clock(), config.forced_level(0))
        stopped += await cancel_sometime(solving, chance, steps=60)
        assert asyncio.all_tasks() <= before
        began = [event.agent for event in events if isinstance(event, TurnBegan)]
        ended = [event.agent for event in events if isinstance(event, TurnEnded)]
        assert sorted(began) == sorted(ended), "no turn stays open"
    assert stopped, "at least one was stopped on its way"
