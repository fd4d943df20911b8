"""Zero-shot: one physician names an answer without any reasoning (1 call, depth 1)."""

from __future__ import annotations

from mdagents.agents import replies
from mdagents.agents.case import Case
from mdagents.agents.prompts import render
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.alone import physician
from mdagents.teams.decision import Decision
from mdagents.teams.declaration import Method


@Method(
    roles=(TeamRole.DECISION,),
    depth=1,
    reads=(),
    temperatures=("decision_temperature",),
    communicates=False,
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Ask for the letter.

    Raises:
        ProviderError, StructuredOutputError: The model did not reply.
    """
    choice = await physician(case).ask(
        render("zero_shot", letters=question.letters),
        replies.choice(question.letters),
        phase="answer",
    )
    return Decision(letter=choice.answer, analysis="")
