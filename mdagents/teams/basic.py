"""The basic team: independent experts and an arbitrator (1 + N + 1 calls, depth 3)."""

from __future__ import annotations

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.events import Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method
from mdagents.teams.recruitment import recruit_experts


@Method(depth=3, reads=("basic_experts", "opinion_words", "verdict_words"))
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Recruit N experts, let each judge alone, let an arbitrator decide.

    Raises:
        ProviderError, StructuredOutputError: No expert replied, or the arbitrator did not.
    """
    letters = question.letters
    opinions = await hear_experts(case, question, settings)
    arbitrator = case.decider("arbitrator", "Arbitrator", TeamRole.DECISION)
    verdict = await arbitrator.ask(
        render("arbitrate", words=settings.verdict_words, letters=letters),
        replies.verdict(letters, settings.verdict_words),
        phase="arbitrate",
        shared=_assessments(opinions),
    )
    return Decision(
        letter=verdict.answer,
        analysis=verdict.analysis,
        opinions=tuple(Stated.by(expert, opinion) for expert, opinion in opinions),
    )


async def hear_experts(
    case: Case, question: Question, settings: TeamSettings
) -> list[tuple[Agent, Opinion]]:
    """Recruit N experts and let each judge alone, all at once (1 + N calls, depth 2).

    Returns:
        (expert, opinion) of those who replied.

    Raises:
        ProviderError, StructuredOutputError: No expert replied.
    """
    profiles = await recruit_experts(case, settings.basic_experts)
    experts = [
        case.expert(f"expert-{number}", profile.role, profile.expertise)
        for number, profile in enumerate(profiles, start=1)
    ]
    case.tell(Recruited(tuple(Member(expert.id, expert.role) for expert in experts)))

    async def judge(expert: Agent) -> Opinion:
        task = render("opinion", words=settings.opinion_words, letters=question.letters)
        reply = replies.opinion(question.letters, settings.opinion_words)
        return await expert.ask(task, reply, phase="opinion")

    return await case.ask_all(experts, "opinion", judge)


def _assessments(opinions: list[tuple[Agent, Opinion]]) -> str:
    lines = [
        f"- {expert.role}: {opinion.reasoning} "
        f"(answer {opinion.answer}, confidence {opinion.confidence:g})"
        for expert, opinion in opinions
    ]
    return "Independent assessments:\n" + "\n".join(lines)
