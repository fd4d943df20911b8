"""Chain of thought: one physician reasons, then names an answer (1 call, depth 1)."""

from __future__ import annotations

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.alone import physician
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method


@Method(
    roles=(TeamRole.DECISION,),
    depth=1,
    reads=("cot_words",),
    temperatures=("decision_temperature",),
    communicates=False,
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Ask for the steps and the letter.

    Raises:
        ProviderError, StructuredOutputError: The model did not reply.
    """
    reasoner = physician(case)
    opinion = await reason(reasoner, question, settings, phase="answer")
    return Decision(
        letter=opinion.answer,
        analysis=opinion.reasoning,
        opinions=(Stated.by(reasoner, opinion),),
    )


async def reason(
    agent: Agent, question: Question, settings: TeamSettings, *, phase: str
) -> Opinion:
    """Ask for one chain of thought and the answer that it ends in.

    Raises:
        ProviderError, StructuredOutputError: The model did not reply.
    """
    task = render("cot", words=settings.cot_words, letters=question.letters)
    return await agent.ask(task, replies.opinion(question.letters, settings.cot_words), phase=phase)
