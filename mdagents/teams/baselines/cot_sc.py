"""Self-consistency: chains of thought at a higher temperature, and a vote (5 calls, depth 1).

Source: Wang et al. 2023, https://arxiv.org/abs/2203.11171.
"""

from __future__ import annotations

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamSettings
from mdagents.teams.baselines.alone import physician
from mdagents.teams.baselines.cot import reason
from mdagents.teams.baselines.voting import by_majority
from mdagents.teams.decision import Decision

SAMPLES = 5

_SEEDS_APART = 10_000
"""Distance between the seeds of two samples: more than a run has epochs, each of which takes the
next seed. Otherwise an endpoint that honours seeds would give one sample twice."""


async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Sample all chains at once and take the answer that most of them end in.

    A tie goes to the answer with the higher mean stated confidence, then to the one sampled first.
    A sample that fails is left out and named in the record.

    Raises:
        ProviderError, StructuredOutputError: Every sample failed.
    """

    async def think(agent: Agent) -> Opinion:
        return await reason(agent, question, settings, phase="sample")

    samples = [sample(case, number) for number in range(SAMPLES)]
    return by_majority(await case.ask_all(samples, "sample", think))


def sample(case: Case, number: int) -> Agent:
    """Return one of the equal agents, which differ only in which reply to the request they get.

    Args:
        case: The question; an epoch of a run is a case of its own.
        number: Counted from 0.
    """
    agent = physician(case, f"sample-{number + 1}")
    agent.temperature = case.settings.expert_temperature
    agent.repeat = case.repeat * SAMPLES + number
    agent.seed = case.seed + number * _SEEDS_APART
    return agent
