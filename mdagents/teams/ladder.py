"""The ladder of `--router disagreement`: a question climbs while the experts do not agree.

    basic         experts judge alone; if all name one letter and are sure, it is the decision
    intermediate  the same experts debate their opinions; if all agree, that is the decision
    advanced      teams that know how the debate ended, and a coordinator who decides

Calls: 1 + N when all agree at once (4 by default), up to R(T·N + N) for the debate, and those
of the advanced team. No model rates the question, nothing is asked twice, and where all agree no
model is asked to decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.events import Routed, Rung
from mdagents.agents.replies import Opinion
from mdagents.datasets.questions import Question
from mdagents.settings import AGREEMENT, Difficulty, RoutedBy, TeamSettings
from mdagents.teams import advanced
from mdagents.teams.basic import hear_experts
from mdagents.teams.decision import Decision
from mdagents.teams.intermediate import Debate
from mdagents.teams.router import Route

_FEWEST = 2
"""Minimum number of experts who can agree: one alone agrees with nobody."""

Opinions = Sequence[tuple[Agent, Opinion]]
Stops = Callable[[Difficulty, Opinions], bool]
"""Function that returns whether a question stops on a rung, given the experts' opinions."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Stop rule: all experts name one letter and, on the first rung, are sure of it."""

    least: float = AGREEMENT
    """Minimum mean stated confidence of unanimous first opinions, 0 to 1."""

    def __call__(self, level: Difficulty, opinions: Opinions) -> bool:
        """Return whether the question stops at `level`."""
        letters = {opinion.answer for _, opinion in opinions}
        if len(opinions) < _FEWEST or len(letters) > 1:
            return False
        return level is not Difficulty.BASIC or mean_confidence(opinions) >= self.least


def mean_confidence(opinions: Opinions) -> float:
    """Return the mean stated confidence, rounded so that the mean of three times 0.8 is 0.8."""
    return round(fmean(opinion.confidence for _, opinion in opinions), 9)


class Ladder:
    """The climb of one question.

    Args:
        case: Case in progress.
        settings: Numbers of the teams; the debate has the experts of the basic team.
        stops: Decides whether the question stops at a level.
        skip: Levels that are left out. A question that stops at one has no decision, and no
            question climbs if all levels above are left out.
    """

    def __init__(
        self,
        case: Case,
        settings: TeamSettings,
        stops: Stops,
        skip: Collection[Difficulty] = (),
    ) -> None:
        self._case = case
        self._question: Question = case.question
        self._settings = settings
        self._stops = stops
        self._skip = skip
        self.route = Route(Difficulty.BASIC, RoutedBy.DISAGREEMENT)
        """Current level of the question; at the end, the level where it stopped and the reason."""

    async def solve(self) -> Decision | None:
        """Return the decision; None when the question stopped at a level that is left out.

        Raises:
            ProviderError, StructuredOutputError: No expert replied, or nobody could decide.
        """
        if self._is_left_out_from(Difficulty.BASIC, "every level is left out"):
            return None
        self._go_to(Difficulty.BASIC, "its experts judge first")
        opinions = await hear_experts(self._case, self._question, self._settings)
        debate = Debate(
            self._case, self._question, self._settings, [expert for expert, _ in opinions]
        )
        for expert, opinion in opinions:
            debate.state(expert, opinion, round_=0)
        if self._judge(Difficulty.BASIC, opinions):
            return self._agreed(debate)
        if self._is_left_out_from(Difficulty.INTERMEDIATE, self.route.reasoning):
            return None

        self._go_to(Difficulty.INTERMEDIATE, self.route.reasoning)
        await debate.hold_rounds()
        final = [(expert, expert.opinion) for expert in debate.experts if expert.opinion]
        if self._judge(Difficulty.INTERMEDIATE, final):
            return self._agreed(debate)
        if self._is_left_out_from(Difficulty.ADVANCED, self.route.reasoning):
            return None

        self._go_to(Difficulty.ADVANCED, self.route.reasoning)
        decision = await advanced.solve(
            self._case, self._question, self._settings, known=debate.course()
        )
        votes = dict(Counter(team.answer for team in decision.teams).most_common())
        why = f"the coordinator decided: {decision.letter}"
        self._note(Rung(Difficulty.ADVANCED, votes, None, decided=True, why=why))
        return debate.decision(decision.letter, decision.analysis, decision.teams)

    def _judge(self, level: Difficulty, opinions: Opinions) -> bool:
        """Record the opinions of a level's experts; return whether the question stops there."""
        votes = dict(Counter(opinion.answer for _, opinion in opinions).most_common())
        confidence = mean_confidence(opinions)
        stops = self._stops(level, opinions)
        named = ", ".join(f"{letter} {count}" for letter, count in votes.items())
        if len(opinions) < _FEWEST:
            why = f"only one expert replied ({named})"
        elif len(votes) > 1:
            why = f"the experts are split ({named})"
        else:
            why = f"all name {next(iter(votes))}, mean confidence {confidence:.2f}"
        self._note(Rung(level, votes, round(confidence, 4), decided=stops, why=why))
        return stops

    def _agreed(self, debate: Debate) -> Decision | None:
        """Return the unanimous decision of the experts; None if their level is left out."""
        if self.route.difficulty in self._skip:
            return None
        final = debate.stated[-1]
        surest = max(
            {each.agent: each for each in debate.stated}.values(), key=lambda each: each.confidence
        )
        analysis = f"{self.route.reasoning}. {surest.reasoning}"
        return debate.decision(final.answer, analysis)

    def _is_left_out_from(self, level: Difficulty, why: str) -> bool:
        """Return whether all levels from `level` on are left out; the question then stops there."""
        levels = list(Difficulty)
        is_left_out = all(above in self._skip for above in levels[levels.index(level) :])
        if is_left_out:
            self.route = Route(level, RoutedBy.DISAGREEMENT, why, self.route.rungs)
        return is_left_out

    def _go_to(self, level: Difficulty, why: str) -> None:
        self.route = Route(level, RoutedBy.DISAGREEMENT, why, self.route.rungs)
        self._case.tell(Routed(level, RoutedBy.DISAGREEMENT, why))

    def _note(self, rung: Rung) -> None:
        rungs = (*self.route.rungs, rung)
        self.route = Route(rung.level, RoutedBy.DISAGREEMENT, rung.why, rungs)
        self._case.tell(rung)
