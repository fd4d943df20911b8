"""The physician who answers alone, and equal agents who differ in nothing but their luck."""

from __future__ import annotations

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.settings import TeamRole


def physician(case: Case, agent_id: str = "physician") -> Agent:
    """Return an agent with the model and temperature of decisions, not told of any panel."""
    agent = case.decider(agent_id, "Physician", TeamRole.DECISION)
    agent.system = "system_alone"
    return agent


_SEEDS_APART = 10_000
"""Distance between the seeds of two equal agents: more than a run has epochs, each of which takes
the next seed. Otherwise an endpoint that honours seeds would give one reply twice."""


def apart(agent: Agent, place: int, count: int) -> Agent:
    """Let one of several equal agents get replies of its own.

    Args:
        agent: As it was made for its case; an epoch of a run is a case of its own.
        place: Among the equals, from 0.
        count: How many they are.
    """
    agent.seed += place * _SEEDS_APART
    agent.repeat = agent.repeat * count + place
    return agent
