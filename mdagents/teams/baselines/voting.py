"""The vote over independent opinions, made without a model."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from mdagents.agents.agent import Agent
from mdagents.agents.replies import Opinion
from mdagents.teams.decision import Decision, Stated


def by_majority(opinions: Sequence[tuple[Agent, Opinion]]) -> Decision:
    """Return the decision for the answer with the most votes.

    A tie goes to the answer with the higher mean stated confidence, then to the one that comes
    first. The argument is that of the first agent who gave the answer.

    Args:
        opinions: At least one, each with its agent.
    """
    ballots: dict[str, list[Opinion]] = {}
    for _, opinion in opinions:
        ballots.setdefault(opinion.answer, []).append(opinion)
    # max takes the first of equals, and letters stand in the order in which they were first named.
    letter, votes = max(
        ballots.items(),
        key=lambda ballot: (len(ballot[1]), _mean_confidence(ballot[1])),
    )
    return Decision(
        letter=letter,
        analysis=f"{len(votes)} of {len(opinions)} votes. {votes[0].reasoning}",
        opinions=tuple(Stated.by(agent, opinion) for agent, opinion in opinions),
    )


def _mean_confidence(opinions: Sequence[Opinion]) -> float:
    # Rounded, so that values that are equal on paper tie here.
    return round(fmean(opinion.confidence for opinion in opinions), 9)
