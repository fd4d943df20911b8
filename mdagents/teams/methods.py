"""The methods that `--method` can name besides the teams, and the resources that each needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mdagents.datasets.dataset import Dataset
from mdagents.datasets.exemplars import Exemplars, exemplars_hash, open_exemplars
from mdagents.datasets.questions import OptionOrder
from mdagents.settings import IN_ROUNDS, Difficulty, Method, TeamRole, TeamSettings
from mdagents.teams import Solve, own_method
from mdagents.teams.baselines import (
    cot,
    cot_sc,
    debate,
    few_shot,
    majority_vote,
    medagents,
    medprompt,
    multi_persona,
    reconcile,
    self_refine,
    zero_shot,
)
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import print_line

if TYPE_CHECKING:
    from mdagents_llm.embeddings import Embedder  # loads numpy, which few methods need

_DECIDER = (TeamRole.DECISION,)
_PANEL = (TeamRole.RECRUITER, TeamRole.EXPERT)
_OF_BASIC, _OF_TEAMS = 3, 10
_OF_EXEMPLARS = {Method.FEW_SHOT: 1, Method.MEDPROMPT: 5}


@dataclass(frozen=True, slots=True)
class Protocol:
    """A built-in method that needs nothing but the question."""

    solve: Solve
    roles: tuple[TeamRole, ...]
    """Roles whose models the method asks."""
    depth: int
    """Maximum number of sequential calls, without re-asks; for a debate, the calls of one round."""


PROTOCOLS: Mapping[Method, Protocol] = {
    Method.ZERO_SHOT: Protocol(zero_shot.solve, _DECIDER, 1),
    Method.COT: Protocol(cot.solve, _DECIDER, 1),
    Method.COT_SC: Protocol(cot_sc.solve, _DECIDER, 1),
    Method.SELF_REFINE: Protocol(self_refine.solve, _DECIDER, 7),
    Method.MULTI_PERSONA: Protocol(multi_persona.solve, _DECIDER, 4),
    Method.MAJORITY_VOTE: Protocol(majority_vote.solve, _PANEL, 2),
    Method.DEBATE: Protocol(debate.solve, (TeamRole.EXPERT,), 1),
    Method.RECONCILE: Protocol(reconcile.solve, (TeamRole.EXPERT,), 1),
    Method.MEDAGENTS: Protocol(medagents.solve, (*_PANEL, TeamRole.DECISION), 10),
}
"""Built-in methods except those that read the train split."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """Resources for finding train questions that are similar to a question."""

    embedder: Embedder | None
    """Embedder of this machine; None without one."""
    cache_dir: Path
    """The user's cache folder, which holds the vectors."""
    say: Callable[[str], None] = print_line
    """Shows a line to the user before a long wait begins."""


def no_embedding() -> Embedding:
    """Return an Embedding without an embedder."""
    return Embedding(None, Path())


async def _nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True)
class OpenMethod:
    """A method that is ready to answer questions once `prepare` has been awaited."""

    solve: Solve
    prepare: Callable[[], Awaitable[None]] = _nothing
    """Slow preparation that runs once, before the first question."""
    exemplars_sha256: str = ""
    """SHA-256 of the train split that the method reads; empty for none.

    Part of a run's identity."""
    source_sha256: str = ""
    """SHA-256 of the source of a user-defined method; empty for the versioned built-in methods.

    Part of a run's identity."""
    exemplars: Exemplars | None = None
    """Exemplars, if the method shows the same ones for all questions; None otherwise."""


def with_exemplars(exemplars: Exemplars) -> OpenMethod:
    """Return the method `few_shot` with exemplars that were read elsewhere."""
    return OpenMethod(partial(few_shot.solve, exemplars=exemplars), exemplars=exemplars)


def roles_of(method: str) -> tuple[TeamRole, ...]:
    """Return the roles whose models a method other than `mdagents` can ask."""
    if own_method.is_own(method):
        return TeamRole.RECRUITER, TeamRole.EXPERT, TeamRole.DECISION
    protocol = PROTOCOLS.get(Method(method))
    return protocol.roles if protocol else _DECIDER


def depth_of(method: str, levels: Iterable[str], team: TeamSettings) -> int:
    """Return the maximum number of sequential calls, without re-asks.

    Args:
        method: Method, as `--method` names it; a user-defined one counts as 1, since its depth is
            unknown.
        levels: Levels to which the questions of `mdagents` go.
        team: Numbers of the teams.
    """
    if own_method.is_own(method):
        return 1
    if method == Method.MDAGENTS:
        # Recruitment, experts, arbitrator; other levels have debates or teams, or a router first.
        return _OF_BASIC if set(levels) == {Difficulty.BASIC} else _OF_TEAMS
    if method in IN_ROUNDS:
        return team.answer_rounds
    protocol = PROTOCOLS.get(Method(method))
    return protocol.depth if protocol else _OF_EXEMPLARS[Method(method)]


def open_method(
    method: str,
    dataset: Dataset | None,
    order: OptionOrder,
    seed: int,
    embedding: Callable[[], Embedding],
) -> OpenMethod | None:
    """Open a method.

    Args:
        method: Method, as `--method` names it.
        dataset: Data set of the questions, with its train split; None: no data set.
        order: Order of the options of exemplars.
        seed: Seed for the choice of exemplars.
        embedding: Returns the embedding; called only by methods that find similar questions,
            because an embedder is slow to load.

    Returns:
        The method; None for `mdagents`, whose teams are chosen question by question.

    Raises:
        ConfigError: The train split that the method needs is missing, or a user-defined method
            cannot be used.
    """
    if own_method.is_own(method):
        own = own_method.load(method)
        return OpenMethod(own.solve, source_sha256=own.source_sha256)
    if method == Method.MDAGENTS:
        return None
    if protocol := PROTOCOLS.get(Method(method)):
        return OpenMethod(protocol.solve)
    if dataset is None:
        raise ConfigError(f"{method} takes its exemplars from a data set: use a run")
    match Method(method):
        case Method.FEW_SHOT:
            read = exemplars_hash(dataset.path)
            return replace(
                with_exemplars(open_exemplars(dataset, order, seed)), exemplars_sha256=read
            )
        case Method.MEDPROMPT:
            read, by = exemplars_hash(dataset.path, method), embedding()
            library = medprompt.open_library(
                dataset, order, seed, embedder=by.embedder, cache_dir=by.cache_dir, say=by.say
            )
            solve = partial(medprompt.solve, library=library)
            return OpenMethod(solve, library.prepare, exemplars_sha256=read)
    raise AssertionError("all others have a protocol")
