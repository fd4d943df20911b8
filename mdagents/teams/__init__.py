"""The teams: each file is one protocol, read from top to bottom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from mdagents.agents.case import Case
from mdagents.datasets.questions import Question
from mdagents.settings import Difficulty, TeamSettings
from mdagents.teams import advanced, basic, intermediate
from mdagents.teams.decision import Decision

Solve = Callable[[Case, Question, TeamSettings], Awaitable[Decision]]

TEAMS: Mapping[Difficulty, Solve] = {
    Difficulty.BASIC: basic.solve,
    Difficulty.INTERMEDIATE: intermediate.solve,
    Difficulty.ADVANCED: advanced.solve,
}
"""Difficulty -> function of the team that answers the question."""

__all__ = ["TEAMS", "Decision", "Solve"]
