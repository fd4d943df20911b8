"""A physician who answers alone, and equal agents that differ only in their seeds."""

from __future__ import annotations

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.settings import TeamRole


def physician(case: Case, agent_id: str = "physician") -> Agent:
    """Return an agent with the model and temperature of decisions, and prompts without a panel."""
    agent = case.decider(agent_id, "Physician", TeamRole.DECISION)
    agent.system = "system_alone"
    return agent


_SEEDS_APART = 10_000
"""Distance between the seeds of two equal agents.

It exceeds the number of epochs of a run, each of which takes the next seed. Otherwise an endpoint
that honors seeds would give one reply twice."""


def apart(agent: Agent, place: int, count: int) -> Agent:
    """Give one of several equal agents its own seed, so that it gets its own replies.

    Args:
        agent: Agent as made for its case; each epoch of a run is a separate case.
        place: Index of the agent among its equals, from 0.
        count: Number of equal agents.
    """
    seed = agent.seed + place * _SEEDS_APART
    agent.seed = (seed + 2**63) % 2**64 - 2**63  # a client of a server may use all 64 bits
    agent.repeat = agent.repeat * count + place
    return agent
