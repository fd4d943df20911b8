"""MedAgents: experts analyze; a report sums up and is revised until all experts agree with it.

Calls: 1 + E + 1 + E + 1 when all agree at once, 1 + E + 1 + R(E + 1) + 1 when they never do; depth
5 to 4 + 2R. Source: Tang et al. 2024, https://arxiv.org/abs/2311.10537. In the paper, question
and options have separate experts; here each expert analyzes both.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.prompts import render
from mdagents.agents.replies import Consent
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.basic import hear_experts
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method


@Method(
    depth=lambda settings: 4 + 2 * settings.rounds,
    reads=("basic_experts", "rounds", "opinion_words", "investigate_words", "verdict_words"),
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Gather experts, sum up their analyses, consult them on the report, and decide from it.

    The report is revised from the objections in up to R rounds. An expert whose analysis failed
    takes no further part; a failed vote does not count as agreement, and without any vote the
    report goes to the decision as it is.

    Raises:
        ProviderError, StructuredOutputError: No expert replied, or report or decision failed.
    """
    words, letters = settings.verdict_words, question.letters
    heard = await hear_experts(case, question, settings)
    stated = tuple(Stated.by(expert, opinion) for expert, opinion in heard)
    experts = [expert for expert, _ in heard]
    reporter = case.decider("reporter", "Reporter", TeamRole.DECISION)

    async def report(task: str, phase: str, shared: str) -> str:
        reply = await reporter.ask(task, replies.investigation(words), phase=phase, shared=shared)
        return f"Report:\n{reply.findings}"

    text = await report(render("medagents/report", words=words), "report-1", _analyses(stated))
    for round_ in range(1, settings.rounds + 1):
        votes = await _consult(case, experts, text, f"consult-{round_}", settings)
        objections = [
            f"- {expert.role}: {vote.objection}" for expert, vote in votes if not vote.agrees
        ]
        if not objections:
            break
        shared = "\n".join([text, "", "Objections of the experts:", *objections])
        task = render("medagents/revise", words=words)
        text = await report(task, f"report-{round_ + 1}", shared)

    decider = case.decider("decider", "Decision maker", TeamRole.DECISION)
    verdict = await decider.ask(
        render("medagents/decide", words=words, letters=letters),
        replies.verdict(letters, words),
        phase="decide",
        shared=text,
    )
    return Decision(verdict.answer, verdict.analysis, opinions=stated)


async def _consult(
    case: Case, experts: Sequence[Agent], text: str, phase: str, settings: TeamSettings
) -> list[tuple[Agent, Consent]]:
    """Ask every expert at once whether it agrees with the report."""
    words = settings.investigate_words

    async def vote(expert: Agent) -> Consent:
        task = render("medagents/consult", words=words)
        return await expert.ask(task, replies.consent(words), phase=phase, shared=text)

    return await case.ask_all(experts, phase, vote, required=False)


def _analyses(stated: Sequence[Stated]) -> str:
    lines = [f"- {each.role}: {each.reasoning} (answer {each.answer})" for each in stated]
    return "\n".join(["Analyses of the experts:", *lines])
