"""Majority vote: the experts of the basic team without its arbitrator (1 + N calls, depth 2)."""

from __future__ import annotations

from mdagents.agents.case import Case
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.basic import hear_experts
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method
from mdagents.teams.voting import by_majority


@Method(
    roles=(TeamRole.RECRUITER, TeamRole.EXPERT),
    depth=2,
    reads=("basic_experts", "opinion_words"),
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Recruit N experts, let each judge alone, and take the most frequent answer.

    A tie goes to the answer with the higher mean stated confidence, then to the one named first.

    Raises:
        ProviderError, StructuredOutputError: No expert replied.
    """
    heard = await hear_experts(case, question, settings)
    return by_majority([Stated.by(expert, opinion) for expert, opinion in heard])
