"""Multi-persona: one model plays P personas and decides (1 + P calls if they agree, else 3 + P).

Source: solo performance prompting, Wang et al. 2024, https://arxiv.org/abs/2307.05300; two personas
as in MedAgentsBench. In the paper, one reply holds everything; here each draft is a separate call,
so that no persona has read another's draft when it writes, and only the discussion is one reply.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case, ModelError
from mdagents.agents.events import Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.alone import physician
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method
from mdagents.teams.recruitment import recruit_experts

PERSONAS = 2


@Method(
    roles=(TeamRole.DECISION,),
    depth=4,
    reads=("cot_words", "opinion_words", "verdict_words"),
    temperatures=("decision_temperature",),
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Identify personas and let each draft an answer; where drafts differ, discuss and decide.

    Raises:
        ProviderError, StructuredOutputError: No persona drafted an answer, or the decision failed.
    """
    letters = question.letters
    profiles = await recruit_experts(
        case, PERSONAS, prompt="multi_persona/recruit", by=TeamRole.DECISION
    )
    personas = []
    for number, profile in enumerate(profiles, start=1):
        persona = case.decider(f"persona-{number}", profile.role, TeamRole.DECISION)
        persona.persona = render("persona", role=profile.role, expertise=profile.expertise)
        personas.append(persona)
    case.tell(Recruited(tuple(Member(persona.id, persona.role) for persona in personas)))

    async def draft(persona: Agent) -> Opinion:
        task = render("opinion", words=settings.opinion_words, letters=letters)
        reply = replies.opinion(letters, settings.opinion_words)
        return await persona.ask(task, reply, phase="opinion")

    drafted = await case.ask_all(personas, "opinion", draft)
    stated = tuple(Stated.by(persona, opinion) for persona, opinion in drafted)
    if len(stated) == PERSONAS and len({each.answer for each in stated}) == 1:
        return Decision(stated[0].answer, stated[0].reasoning, opinions=stated)

    drafts = _drafts(stated)
    discussion = await _discuss(case, drafts, settings)
    verdict = await physician(case).ask(
        render("multi_persona/conclude", words=settings.verdict_words, letters=letters),
        replies.verdict(letters, settings.verdict_words),
        phase="decide",
        shared=f"{drafts}\n\n{discussion}".strip(),
    )
    return Decision(verdict.answer, verdict.analysis, opinions=stated)


async def _discuss(case: Case, drafts: str, settings: TeamSettings) -> str:
    """Let the model speak for all personas in one reply; empty when that fails."""
    speaker, words = physician(case, "discussion"), settings.cot_words
    try:
        reply = await speaker.ask(
            render("multi_persona/discuss", words=words),
            replies.discussion(words),
            phase="discuss",
            shared=drafts,
        )
    except ModelError as error:
        case.leave_out(speaker, "discuss", error)
        return ""
    return f"Their discussion: {reply.discussion}"


def _drafts(stated: Sequence[Stated]) -> str:
    lines = [f"- {each.role}: {each.reasoning} (answer {each.answer})" for each in stated]
    return "\n".join(["Drafts of the personas:", *lines])
