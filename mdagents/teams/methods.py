"""The methods that `--method` can name: their names, properties, and how they are opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

from mdagents.agents.case import Case
from mdagents.datasets.exemplars import exemplars_hash
from mdagents.datasets.questions import Question
from mdagents.settings import MDAGENTS, Difficulty, TeamSettings
from mdagents.teams import advanced, baselines, basic, intermediate, own_method
from mdagents.teams.decision import Decision
from mdagents.teams.declaration import Method, declared_by
from mdagents.teams.names import is_own
from mdagents.teams.train_split import OpenExemplars, TrainSplit
from mdagents_llm.errors import ConfigError

Solve = Callable[[Case, Question, TeamSettings], Awaitable[Decision]]

TEAMS: Mapping[Difficulty, Solve] = {
    Difficulty.BASIC: basic.solve,
    Difficulty.INTERMEDIATE: intermediate.solve,
    Difficulty.ADVANCED: advanced.solve,
}
"""Difficulty -> function of the team that answers the question."""


def _solve_of(method: str) -> Callable[..., Awaitable[Decision]]:
    """Return the `solve` of a built-in method other than `mdagents`."""
    solve: Callable[..., Awaitable[Decision]]
    solve = import_module(f"{baselines.__name__}.{method}").solve
    return solve


def declared(method: str, levels: Collection[str] = tuple(Difficulty)) -> Method:
    """Return the properties of a method; for `mdagents`, those of its teams together.

    Args:
        method: Method, as `--method` names it.
        levels: Levels to which the questions of `mdagents` go; a router chooses from all levels.

    Raises:
        ConfigError: A user-defined method cannot be loaded.
    """
    if is_own(method):
        return own_method.declared(method)
    if method != MDAGENTS:
        return declared_by(_solve_of(method))
    is_routed = not set(levels) <= set(Difficulty)
    teams = [declared_by(TEAMS[at]) for at in Difficulty if is_routed or at in levels]
    return Method(
        roles=tuple(dict.fromkeys(role for team in teams for role in team.roles)),
        depth=lambda settings: max(team.steps(settings) for team in teams),
        reads=frozenset().union(*(team.reads for team in teams)),
        temperatures=frozenset().union(*(team.temperatures for team in teams)),
        controls=any(team.controls for team in teams),
    )


async def _nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True)
class OpenMethod:
    """A method that is ready to answer questions once `prepare` has been awaited."""

    solve: Callable[..., Awaitable[Decision]]
    prepare: Callable[[], Awaitable[None]] = _nothing
    """Slow preparation that runs once, before the first question."""
    exemplars_sha256: str = ""
    """SHA-256 of the train split that the method reads; empty for none.

    Part of a run's identity."""
    source_sha256: str = ""
    """SHA-256 of the source of a user-defined method; empty for the versioned built-in methods.

    Part of a run's identity."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Module of the user's own that a user-defined method imports -> SHA-256.

    Part of a run's identity."""
    exemplars: OpenExemplars | None = None
    """Exemplars that the method shows; None: it shows none."""


def open_method(
    method: str, train: TrainSplit | None, exemplars: OpenExemplars | None = None
) -> OpenMethod | None:
    """Open a method.

    Args:
        method: Method, as `--method` names it.
        train: Train split of the run's data set; None: no data set.
        exemplars: Exemplars that were read elsewhere; None: they are read here if needed.

    Returns:
        The method; None for `mdagents`, whose teams are chosen question by question.

    Raises:
        ConfigError: The train split that the method needs is missing, or a user-defined method
            cannot be used.
    """
    if method == MDAGENTS:
        return None
    if is_own(method):
        own = own_method.load(method)
        solve, source, modules = own.solve, own.source_sha256, own.modules
    else:
        solve, source, modules = _solve_of(method), "", {}
    opens = declared_by(solve).exemplars
    if opens is None:
        return OpenMethod(solve, source_sha256=source, modules=modules)
    read = ""
    if exemplars is None:
        if train is None:
            raise ConfigError(f"{method} takes its exemplars from a data set: use a run")
        read = exemplars_hash(train.dataset.path, method)
        exemplars = opens(train)
    return OpenMethod(
        partial(solve, exemplars=exemplars), exemplars.prepare, read, source, modules, exemplars
    )
