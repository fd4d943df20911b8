"""Answers in rounds: all agents answer alone, then in view of all answers, until they agree."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.events import Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamSettings
from mdagents.teams.decision import Stated


async def answers_in_rounds(
    case: Case,
    question: Question,
    settings: TeamSettings,
    agents: Sequence[Agent],
    *,
    again: str,
    with_confidence: bool,
) -> list[Stated]:
    """Let all agents answer in up to R rounds, all at once in each.

    The rounds end when all agree, because nobody would have anything to answer. An agent whose turn
    fails keeps its last answer; one that fails in the first round takes no further part.

    Args:
        case: Case in progress.
        question: Question to answer.
        settings: Numbers of the teams; R is `answer_rounds`.
        agents: Agents that answer.
        again: Name of the prompt from the second round on.
        with_confidence: Whether agents see how confident the others are.

    Returns:
        All answers, in the order of the rounds.

    Raises:
        ProviderError, StructuredOutputError: Nobody answered in the first round.
    """
    words, letters = settings.opinion_words, question.letters
    reply = replies.opinion(letters, words)
    case.tell(Recruited(tuple(Member(agent.id, agent.role) for agent in agents)))
    first = render("opinion", words=words, letters=letters)

    async def answer(agent: Agent) -> Opinion:
        return await agent.ask(first, reply, phase="opinion")

    answered = await case.ask_all(agents, "opinion", answer)
    taking_part = [agent for agent, _ in answered]
    stated = [Stated.by(agent, opinion) for agent, opinion in answered]
    for round_ in range(1, settings.answer_rounds):
        last = list({each.agent: each for each in stated}.values())
        if len({each.answer for each in last}) == 1:
            break
        phase, shared = f"round-{round_}-update", _answers(last, with_confidence)

        async def reconsider(agent: Agent, phase: str = phase, shared: str = shared) -> Opinion:
            task = render(again, role=agent.role, words=words, letters=letters)
            return await agent.ask(task, reply, phase=phase, shared=shared)

        heard = await case.ask_all(taking_part, phase, reconsider, required=False)
        stated += [Stated.by(agent, opinion, round_) for agent, opinion in heard]
    return stated


def _answers(last: Sequence[Stated], with_confidence: bool) -> str:
    """Return the last answer of each agent, grouped by answer."""
    lines = []
    for each in sorted(last, key=lambda each: each.answer):
        sure = f", confidence {each.confidence:g}" if with_confidence else ""
        lines.append(f"- {each.role} (answer {each.answer}{sure}): {each.reasoning}")
    return "\n".join(["The answers so far:", *lines])
