"""The physician who answers alone: what zero-shot, few-shot and chain of thought have in common."""

from __future__ import annotations

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.settings import TeamRole


def physician(case: Case, agent_id: str = "physician") -> Agent:
    """Return an agent with the model and temperature of decisions, not told of any panel."""
    agent = case.decider(agent_id, "Physician", TeamRole.DECISION)
    agent.system = "system_alone"
    return agent
