"""ReConcile: a round table of different models, and a vote by confidence (≤ R × models, depth ≤ R).

Source: Chen et al. 2024, https://arxiv.org/abs/2309.13007. The paper's prompts also show human
explanations that corrected each model; they are left out, because the data sets here have none.
"""

from __future__ import annotations

from functools import partial

from mdagents.agents.case import Case
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.decision import Decision
from mdagents.teams.declaration import Method
from mdagents.teams.rounds import answers_in_rounds, decided_by
from mdagents.teams.voting import by_weight


@Method(
    roles=(TeamRole.EXPERT,),
    depth=lambda settings: settings.answer_rounds,
    reads=("answer_rounds", "opinion_words"),
    temperatures=("expert_temperature",),
    seats=2,
    controls=True,
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Let each model answer alone, then in view of all answers; vote when all agree or time is up.

    The models are those of the roles `expert-1`, `expert-2` and so on.

    Raises:
        ProviderError, StructuredOutputError: No model answered in the first round.
    """
    stated = await answers_in_rounds(
        case, question, settings, case.seats, again="reconcile/again", with_confidence=True
    )
    return decided_by(partial(by_weight, weight=weight_of), stated, settings.peers)


def weight_of(confidence: float) -> float:
    """Return the weight of a vote with a stated confidence from 0 to 1.

    The weights counter the overconfidence of models. Source: the paper's section on the vote.
    """
    if confidence >= 1:
        return 1.0
    if confidence >= 0.9:
        return 0.8
    if confidence >= 0.8:
        return 0.5
    return 0.3 if confidence > 0.6 else 0.1
