"""The solver: sends the questions of a run to the team that a route leads to, or to a method."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from mdagents.agents.case import Case, is_stray_cancellation
from mdagents.agents.events import Ended, Routed, Started
from mdagents.datasets.dataset import Dataset
from mdagents.datasets.questions import Question
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.settings import MDAGENTS, Difficulty, RoutedBy, Router, TeamRole
from mdagents.teams.decision import Decision
from mdagents.teams.ladder import Agreement, Ladder, Stops
from mdagents.teams.methods import TEAMS, OpenMethod, open_method
from mdagents.teams.router import Route, route
from mdagents.teams.train_split import Embedding, OpenExemplars, TrainSplit, no_embedding
from mdagents_llm.clock import Clock
from mdagents_llm.errors import (
    BenchError,
    LimitExceeded,
    PictureError,
    ProviderError,
    StructuredOutputError,
    UnexpectedError,
    is_debugging,
)
from mdagents_llm.layers.attempt import STOPPED
from mdagents_llm.pictures import Picture

_LOOKING = 1.0
"""Seconds between two looks at whether this process was stopped."""
_BEFORE = 0.001
"""Seconds between the last look and the limit, so that the look goes first if both are overdue."""

See = Callable[[Question], Awaitable[tuple[Picture, ...]]]
"""Function that returns the pictures of a question as its agents see them.

It raises PictureError if one cannot be shown, which costs the question.
"""


def roles_at_work(config: RunConfig) -> tuple[str, ...]:
    """Return the roles whose models a run can ask."""
    roles = config.declared.roles
    asks_router = ADAPTIVE in config.levels and config.router is Router.LLM
    router = (TeamRole.ROUTER,) if config.method == MDAGENTS and asks_router else ()
    return *router, *roles, *(config.own_experts if TeamRole.EXPERT in roles else ())


@dataclass(frozen=True, slots=True)
class Solved:
    """Result of a case."""

    route: Route | None
    """Route of the question; None when routing failed."""
    decision: Decision | None
    """Decision of the team; None after an error, or when the level is left out."""
    error: BenchError | None
    wall_seconds: float


class Way(Protocol):
    """Path of one question to its decision."""

    @property
    def route(self) -> Route | None:
        """Current route; None before it is known."""
        ...

    async def solve(self) -> Decision | None:
        """Return the decision; None when its level is left out."""
        ...


class Solver:
    """Chooses the team or method for a question, and runs it.

    Args:
        config: Configuration of the run.
        dataset: Data set of the questions, with its train split; None: no data set.
        embedding: Returns the embedding that finds similar questions; needed only with a data set.
        exemplars: Exemplars that were read elsewhere; None: they are read here if needed.

    Raises:
        ConfigError: The train split that a method needs is missing, or a user-defined method cannot
            be used.
    """

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset | None = None,
        embedding: Callable[[], Embedding] = no_embedding,
        exemplars: OpenExemplars | None = None,
    ) -> None:
        self._config = config
        train = None
        if dataset is not None:
            train = TrainSplit(dataset, config.option_order, config.seed, embedding)
        self.method: OpenMethod | None = open_method(config.method, train, exemplars)
        """Method that answers the questions; None: the teams do."""

    async def solve(
        self, case: Case, clock: Clock, level: Difficulty | None, see: See | None = None
    ) -> Solved:
        """Route and answer a question; an error of a model call becomes part of the result.

        An unexpected exception does as well: it costs this question, and no other.

        Args:
            case: Case to answer.
            clock: Clock for the wall time.
            level: Level that answers the question; None: a router chooses it, or the method has no
                levels.
            see: Returns the pictures of the question; None: they are in the case.

        Raises:
            EndpointDown: A model cannot reply.
            StorageError: The copy of a picture cannot be written.
            MethodError: A user-defined method failed.
        """
        way = self._way(case, level)
        decision: Decision | None = None
        error: BenchError | None = None
        started = clock.monotonic()
        try:
            try:
                if see is not None and case.question.pictures:
                    case.pictures = await see(case.question)
            finally:
                case.tell(Started(case.question, case.pictures))
            async with _time_limit(self._config.limits.sample_seconds):
                decision = await way.solve()
        except (ProviderError, StructuredOutputError, LimitExceeded, PictureError) as caught:
            error = caught
        except BenchError:
            raise
        except (Exception, asyncio.CancelledError) as caught:
            is_stray = is_stray_cancellation(caught)
            if not is_stray and (is_debugging() or not isinstance(caught, Exception)):
                raise
            error = UnexpectedError.of(caught)
        case.tell(Ended(decision.letter if decision else None, str(error) if error else None))
        return Solved(way.route, decision, error, clock.monotonic() - started)

    def _way(self, case: Case, level: Difficulty | None) -> Way:
        if level is None and self.climbs:
            return self.ladder(case, Agreement(self._config.least_agreement))
        return _ToOneTeam(self, case, level)

    @property
    def climbs(self) -> bool:
        """Whether questions without a forced level climb from team to team."""
        return self.method is None and self._config.router is Router.DISAGREEMENT

    def ladder(self, case: Case, stops: Stops) -> Ladder:
        """Return the climb of a question.

        Args:
            case: Case to answer.
            stops: Decides whether the question stops at a level.
        """
        return Ladder(case, case.settings, stops, self._config.skip)

    async def route(self, case: Case, level: Difficulty | None) -> Route:
        """Return the route of a question; the router is asked unless the level is given.

        Raises:
            ProviderError: The router's endpoint gave no usable reply.
        """
        if self.method is not None:
            return Route(None, RoutedBy.METHOD)
        if level is not None:
            return Route(level, RoutedBy.FORCED)
        return await route(case)

    async def at(self, route: Route, case: Case) -> Decision | None:
        """Return the decision of the team or method on a route; None if its level is left out."""
        if route.difficulty in self._config.skip:
            return None
        if route.difficulty is not None:
            return await TEAMS[route.difficulty](case, case.question, case.settings)
        assert self.method is not None, "only a method has no level"
        return await self.method.solve(case, case.question, case.settings)


class _ToOneTeam:
    """Path of a question that is sent to one team, or to a method."""

    def __init__(self, solver: Solver, case: Case, level: Difficulty | None) -> None:
        self._solver = solver
        self._case = case
        self._level = level
        self.route: Route | None = None

    async def solve(self) -> Decision | None:
        route = self.route = await self._solver.route(self._case, self._level)
        self._case.tell(Routed(route.difficulty, route.routed_by, route.reasoning))
        return await self._solver.at(route, self._case)


@asynccontextmanager
async def _time_limit(seconds: float | None) -> AsyncIterator[None]:
    """Limit the time of a question, in which the time of a stopped process does not count."""
    if seconds is None:
        yield
        return
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    limit = asyncio.timeout_at(ends)
    watching: asyncio.TimerHandle

    def watch(looked: float, due: float) -> None:
        nonlocal ends, watching
        now = loop.time()
        if now - due > STOPPED and not limit.expired():
            ends += now - looked  # when the stop began is unknown: at most _LOOKING too much
            limit.reschedule(ends)
        watching = look_again()

    def look_again() -> asyncio.TimerHandle:
        now, last = loop.time(), ends - _BEFORE
        due = last if now < last < now + _LOOKING else now + _LOOKING
        return loop.call_at(due, watch, now, due)

    watching = look_again()
    try:
        async with limit:
            yield
    except TimeoutError:
        raise LimitExceeded(f"the question has reached --sample-time-limit {seconds:g}") from None
    finally:
        watching.cancel()
