"""Who answers the questions of a run: the team that a route leads to, or a baseline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from infra.clock import Clock
from infra.errors import (
    BenchError,
    ConfigError,
    LimitExceeded,
    ProviderError,
    StructuredOutputError,
)
from mdagents.agents.case import Case
from mdagents.agents.feed import Ended, Routed, Started
from mdagents.datasets.dataset import Dataset
from mdagents.datasets.exemplars import open_exemplars
from mdagents.runs.config import ADAPTIVE, RunConfig
from mdagents.settings import ALONE, Difficulty, Method, RoutedBy, TeamRole
from mdagents.teams import TEAMS, Decision, Solve
from mdagents.teams.baselines import cot, cot_sc, few_shot, majority_vote, zero_shot
from mdagents.teams.router import Route, route

BASELINES: Mapping[Method, Solve] = {
    Method.ZERO_SHOT: zero_shot.solve,
    Method.COT: cot.solve,
    Method.COT_SC: cot_sc.solve,
    Method.MAJORITY_VOTE: majority_vote.solve,
}
"""How a baseline answers; few-shot needs its exemplars in addition."""


def roles_at_work(config: RunConfig) -> tuple[TeamRole, ...]:
    """Return the roles of which a model can be asked in a run."""
    if config.method in ALONE:
        return (TeamRole.DECISION,)
    if config.method is Method.MAJORITY_VOTE:
        return TeamRole.RECRUITER, TeamRole.EXPERT
    is_routed = ADAPTIVE in config.levels
    return tuple(role for role in TeamRole if is_routed or role is not TeamRole.ROUTER)


@dataclass(frozen=True, slots=True)
class Solved:
    """How a case ended."""

    route: Route | None
    """None when routing failed."""
    decision: Decision | None
    """None when its level is left out, and after an error."""
    error: BenchError | None
    wall_seconds: float


class Solver:
    """Chooses the team or baseline for a question, and runs it.

    Args:
        config: What is asked for.
        dataset: Where the questions are, and the train split of few-shot; None: no data set.

    Raises:
        ConfigError: The train split for few-shot is missing.
    """

    def __init__(self, config: RunConfig, dataset: Dataset | None = None) -> None:
        self._config = config
        self._baseline: Solve | None = None
        if config.method is Method.FEW_SHOT:
            if dataset is None:
                raise ConfigError("few_shot takes its exemplars from a data set: use a run")
            exemplars = open_exemplars(dataset, config.option_order, config.seed)
            self._baseline = partial(few_shot.solve, exemplars=exemplars)
        elif config.method is not Method.MDAGENTS:
            self._baseline = BASELINES[config.method]

    async def solve(self, case: Case, clock: Clock, level: Difficulty | None) -> Solved:
        """Route and answer a question; an error of a model call becomes part of the result.

        Args:
            case: What to answer.
            clock: For the wall time.
            level: The level to which it goes; None: a router rates it. A baseline has none.

        Raises:
            EndpointDown: A model cannot reply.
        """
        route: Route | None = None
        decision: Decision | None = None
        error: BenchError | None = None
        started = clock.monotonic()
        case.tell(Started(case.question))
        try:
            async with _time_limit(self._config.limits.sample_seconds):
                route = await self.route(case, level)
                case.tell(Routed(route.difficulty, route.routed_by, route.reasoning))
                if route.difficulty not in self._config.skip:
                    decision = await self.at(route)(case, case.question, self._config.team)
        except (ProviderError, StructuredOutputError, LimitExceeded) as caught:
            error = caught
        case.tell(Ended(decision.letter if decision else None, str(error) if error else None))
        return Solved(route, decision, error, clock.monotonic() - started)

    async def route(self, case: Case, level: Difficulty | None) -> Route:
        """Return where the question goes, by asking the router unless the level is given.

        Raises:
            ProviderError: The router's endpoint gave no usable reply.
        """
        if self._baseline is not None:
            return Route(None, RoutedBy.METHOD)
        if level is not None:
            return Route(level, RoutedBy.FORCED)
        return await route(case)

    def at(self, route: Route) -> Solve:
        """Return the team or baseline that answers on a route."""
        if route.difficulty is not None:
            return TEAMS[route.difficulty]
        assert self._baseline is not None, "only a baseline has no level"
        return self._baseline


@asynccontextmanager
async def _time_limit(seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise LimitExceeded(f"the question has reached --sample-time-limit {seconds:g}") from None
