"""Who answers the questions of a run: the team that a route leads to, or a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mdagents.agents.case import Case
from mdagents.datasets.dataset import Dataset
from mdagents.datasets.exemplars import open_exemplars
from mdagents.runs.config import RunConfig
from mdagents.settings import Method, RoutedBy
from mdagents.teams import TEAMS, Solve
from mdagents.teams.baselines import cot, cot_sc, few_shot, majority_vote, zero_shot
from mdagents.teams.router import Route, route

BASELINES: Mapping[Method, Solve] = {
    Method.ZERO_SHOT: zero_shot.solve,
    Method.COT: cot.solve,
    Method.COT_SC: cot_sc.solve,
    Method.MAJORITY_VOTE: majority_vote.solve,
}
"""How a baseline answers; few-shot needs its exemplars besides."""


class Solver:
    """Chooses who answers a question.

    Args:
        config: What is asked for.
        dataset: Where the questions are, beside the train split of few-shot.

    Raises:
        ConfigError: Few-shot has no train split.
    """

    def __init__(self, config: RunConfig, dataset: Dataset) -> None:
        self._difficulty = config.difficulty
        self._baseline: Solve | None = None
        if config.method is Method.FEW_SHOT:
            exemplars = open_exemplars(dataset, config.option_order, config.seed)
            self._baseline = partial(few_shot.solve, exemplars=exemplars)
        elif config.method is not Method.MDAGENTS:
            self._baseline = BASELINES[config.method]

    async def route(self, case: Case) -> Route:
        """Where the question goes: asked of the router unless that is settled.

        Raises:
            ProviderError: The router's endpoint gave no usable reply.
        """
        if self._baseline is not None:
            return Route(None, RoutedBy.METHOD)
        if self._difficulty is not None:
            return Route(self._difficulty, RoutedBy.FORCED)
        return await route(case)

    def at(self, route: Route) -> Solve:
        """Who answers a question that goes there."""
        if route.difficulty is not None:
            return TEAMS[route.difficulty]
        assert self._baseline is not None, "only a baseline has no level"
        return self._baseline
