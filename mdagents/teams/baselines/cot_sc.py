"""Self-consistency: chains of thought at a higher temperature, and a vote (5 calls, depth 1).

Source: Wang et al. 2023, https://arxiv.org/abs/2203.11171.
"""

from __future__ import annotations

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.alone import apart, physician
from mdagents.teams.baselines.cot import reason
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method
from mdagents.teams.voting import by_majority

SAMPLES = 5


@Method(
    roles=(TeamRole.DECISION,),
    depth=1,
    reads=("cot_words",),
    temperatures=("expert_temperature",),
    communicates=False,
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Sample all chains at once and take the most frequent answer.

    A tie goes to the answer with the higher mean stated confidence, then to the one sampled first.
    A sample that fails is left out and named in the record.

    Raises:
        ProviderError, StructuredOutputError: Every sample failed.
    """

    async def think(agent: Agent) -> Opinion:
        return await reason(agent, question, settings, phase="sample")

    samples = [sample(case, place) for place in range(SAMPLES)]
    heard = await case.ask_all(samples, "sample", think)
    return by_majority([Stated.by(agent, opinion) for agent, opinion in heard])


def sample(case: Case, place: int) -> Agent:
    """Return one of the equal agents, which differ only in the reply that they get to a request.

    Args:
        case: Case in progress; each epoch of a run is a separate case.
        place: Index of the sample, from 0.
    """
    agent = physician(case, f"sample-{place + 1}")
    agent.temperature = case.settings.expert_temperature
    return apart(agent, place, SAMPLES)
