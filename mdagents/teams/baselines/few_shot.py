"""Few-shot: one physician sees solved questions and names an answer (1 call, depth 1)."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.agents import replies
from mdagents.agents.case import Case
from mdagents.agents.prompts import render
from mdagents.datasets.exemplars import SHOTS, Exemplars, open_exemplars
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
    exemplars=lambda train: open_exemplars(train.dataset, train.order, train.seed),
)
async def solve(
    case: Case, question: Question, settings: TeamSettings, *, exemplars: Exemplars
) -> Decision:
    """Show the exemplars, then the question, and ask for the letter.

    Exemplars come first because they are the same for all questions of a run, so that prompt caches
    hit.

    Raises:
        ProviderError, StructuredOutputError: The model did not reply.
    """
    shown = exemplars.beside(question)
    if len(shown) < SHOTS:
        case.repairs.append(f"only {len(shown)} exemplars differ from the question")
    agent = physician(case)
    agent.exemplars = _solved(shown)
    choice = await agent.ask(
        render("few_shot", letters=question.letters),
        replies.choice(question.letters),
        phase="answer",
    )
    return Decision(letter=choice.answer, analysis="")


def _solved(exemplars: Sequence[Question]) -> str:
    blocks = [f"{exemplar.block()}\nAnswer: {exemplar.gold}" for exemplar in exemplars]
    return "\n\n".join(["Examples:", *blocks])
