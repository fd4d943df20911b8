"""ReConcile: a round table of different models, and a vote by confidence (≤ R × models, depth R).

Source: Chen et al. 2024, https://arxiv.org/abs/2309.13007. Of its prompts, the human explanations
that had corrected each model are left out: the data sets here have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.feed import Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import TeamSettings
from mdagents.teams.decision import Decision, Stated


async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Let each model answer alone, then in up to R - 1 rounds with all answers before it; vote.

    It ends when all agree. A model whose turn fails keeps its last answer; one that never answered
    has no vote.

    Raises:
        ProviderError, StructuredOutputError: No model answered in the first round.
    """
    words, letters = settings.opinion_words, question.letters
    reply = replies.opinion(letters, words)
    seats = case.seats
    case.tell(Recruited(tuple(Member(seat.id, seat.role) for seat in seats)))

    async def answer(seat: Agent) -> Opinion:
        task = render("opinion", words=words, letters=letters)
        return await seat.ask(task, reply, phase="opinion")

    stated: list[Stated] = []
    at_table: list[Agent] = []
    for seat, opinion in await case.ask_all(seats, "opinion", answer):
        at_table.append(seat)
        stated.append(Stated.by(seat, opinion))

    for round_ in range(1, settings.answer_rounds):
        last = {each.agent: each for each in stated}
        if len({each.answer for each in last.values()}) == 1:
            break
        phase, shared = f"round-{round_}-update", _table(list(last.values()))

        async def reconsider(seat: Agent, phase: str = phase, shared: str = shared) -> Opinion:
            task = render("reconcile", role=seat.role, words=words, letters=letters)
            return await seat.ask(task, reply, phase=phase, shared=shared)

        for seat, opinion in await case.ask_all(at_table, phase, reconsider, required=False):
            stated.append(Stated.by(seat, opinion, round_))
    return _by_weight(stated)


def _table(answers: Sequence[Stated]) -> str:
    """Return what each said last, those of one answer together, as the paper groups them."""
    lines = [
        f"- {each.role} (answer {each.answer}, confidence {each.confidence:g}): {each.reasoning}"
        for each in sorted(answers, key=lambda each: each.answer)
    ]
    return "\n".join(["The answers so far:", *lines])


def _by_weight(stated: Sequence[Stated]) -> Decision:
    """Return the decision for the answer of most weight; a tie goes to the one that comes first."""
    last = {each.agent: each for each in stated}
    weights: defaultdict[str, float] = defaultdict(float)
    for each in last.values():
        weights[each.answer] += weight_of(each.confidence)
    # Rounded, so that weights that are equal on paper tie here.
    letter = max(weights, key=lambda answer: round(weights[answer], 9))
    first = next(each for each in last.values() if each.answer == letter)
    share = f"{weights[letter]:.1f} of {sum(weights.values()):.1f}"
    return Decision(
        letter=letter,
        analysis=f"{share} by weight of confidence. {first.reasoning}",
        opinions=tuple(stated),
    )


def weight_of(confidence: float) -> float:
    """Return the weight of a vote with that stated confidence (0 to 1).

    It counters that models state too much confidence. Source: the paper, its section on the vote.
    """
    if confidence >= 1:
        return 1.0
    if confidence >= 0.9:
        return 0.8
    if confidence >= 0.8:
        return 0.5
    return 0.3 if confidence > 0.6 else 0.1
