"""Multi-agent debate: N equal agents answer in R rounds, then vote (≤ N × R calls, depth ≤ R).

Source: Du et al. 2023, https://arxiv.org/abs/2305.14325. In the paper an agent reads its own answer
as the last turn of its chat; here all answers stand in one list, which is the same for all agents.
"""

from __future__ import annotations

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.datasets.questions import Question
from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.alone import apart
from mdagents.teams.decision import Decision
from mdagents.teams.declaration import Method
from mdagents.teams.rounds import answers_in_rounds, decided_by
from mdagents.teams.voting import by_majority


@Method(
    roles=(TeamRole.EXPERT,),
    depth=lambda settings: settings.answer_rounds,
    reads=("debate_experts", "answer_rounds", "opinion_words"),
    temperatures=("expert_temperature",),
    controls=True,
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Let all agents answer alone, then in view of all answers, until they agree or R rounds end.

    Raises:
        ProviderError, StructuredOutputError: Nobody answered in the first round.
    """
    debaters = [_debater(case, place, settings) for place in range(settings.debate_experts)]
    stated = await answers_in_rounds(
        case, question, settings, debaters, again="debate/again", with_confidence=False
    )
    return decided_by(by_majority, stated, settings.peers)


def _debater(case: Case, place: int, settings: TeamSettings) -> Agent:
    agent = case.decider(f"debater-{place + 1}", f"Debater {place + 1}", TeamRole.EXPERT)
    agent.temperature = settings.expert_temperature
    return apart(agent, place, settings.debate_experts)
