"""Votes over opinions, counted without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from mdagents.teams.decision import Decision, Stated


def by_majority(stated: Sequence[Stated]) -> Decision:
    """Return the decision for the answer with the most votes.

    Each agent's last opinion counts as its vote. A tie goes to the answer with the higher mean
    stated confidence, then to the one named first. The argument is that of the first agent who
    holds the answer.

    Args:
        stated: Opinions in the order in which they were stated; at least one.
    """
    return _by(
        stated,
        lambda ballot: (len(ballot), _rounded(fmean(each.confidence for each in ballot))),
        lambda ballot, all_: f"{len(ballot)} of {len(all_)} votes.",
    )


def by_weight(stated: Sequence[Stated], weight: Callable[[float], float]) -> Decision:
    """Return the decision for the answer with the most weight; a tie goes to the one named first.

    Args:
        stated: Opinions in the order in which they were stated; at least one.
        weight: Stated confidence (0 to 1) of an agent -> weight of its vote.
    """

    def of(ballot: Sequence[Stated]) -> float:
        return sum(weight(each.confidence) for each in ballot)

    return _by(
        stated,
        lambda ballot: _rounded(of(ballot)),
        lambda ballot, all_: f"{of(ballot):.1f} of {of(all_):.1f} by weight of confidence.",
    )


def _by(
    stated: Sequence[Stated],
    merit: Callable[[Sequence[Stated]], float | tuple[float, float]],
    result: Callable[[Sequence[Stated], Sequence[Stated]], str],
) -> Decision:
    held = list({each.agent: each for each in stated}.values())
    ballots: dict[str, list[Stated]] = {}
    for each in held:
        ballots.setdefault(each.answer, []).append(each)
    # max takes the first of equals, and letters are in the order in which they were first named.
    letter, ballot = max(ballots.items(), key=lambda entry: merit(entry[1]))
    return Decision(
        letter=letter,
        analysis=f"{result(ballot, held)} {ballot[0].reasoning}",
        opinions=tuple(stated),
    )


def _rounded(value: float) -> float:
    """Round, so that values that are equal on paper tie."""
    return round(value, 9)
