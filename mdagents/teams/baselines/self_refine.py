"""Self-refine: one physician answers, criticizes and revises (at most 1 + 2R sequential calls).

Source: Madaan et al. 2023, https://arxiv.org/abs/2303.17651; rounds as in MedAgentsBench.
"""

from __future__ import annotations

from mdagents.agents import replies
from mdagents.agents.case import Case, ModelError
from mdagents.agents.prompts import render
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.alone import physician
from mdagents.teams.baselines.cot import reason
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.declaration import Method

ROUNDS = 3


@Method(
    roles=(TeamRole.DECISION,),
    depth=1 + 2 * ROUNDS,
    reads=("cot_words", "message_words"),
    temperatures=("decision_temperature",),
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Answer; criticize and revise until the critique finds nothing, or R rounds are over.

    A critique or revision that fails is left out and named in the record; the previous answer
    stands.

    Raises:
        ProviderError, StructuredOutputError: The first answer failed.
    """
    author, letters = physician(case), question.letters
    stated = [Stated.by(author, await reason(author, question, settings, phase="answer"))]
    for round_ in range(1, ROUNDS + 1):
        answer, words = stated[-1], settings.message_words
        shared = f"Your answer so far: {answer.reasoning} (answer {answer.answer})"
        phase = f"critique-{round_}"
        try:
            critique = await author.ask(
                render("self_refine/critique", words=words),
                replies.critique(words),
                phase=phase,
                shared=shared,
            )
            if not critique.needs_change:
                break
            phase = f"revise-{round_}"
            revised = await author.ask(
                render("self_refine/revise", critique=critique.critique, words=settings.cot_words,
                       letters=letters),
                replies.opinion(letters, settings.cot_words),
                phase=phase,
                shared=shared,
            )  # fmt: skip
        except ModelError as error:
            case.leave_out(author, phase, error)
            break
        stated.append(Stated.by(author, revised, round_))
    return Decision(stated[-1].answer, stated[-1].reasoning, opinions=tuple(stated))
