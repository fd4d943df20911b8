"""The declaration of a method: what a run knows about it before it asks a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, fields
from typing import TypeVar

from mdagents.settings import TeamRole, TeamSettings
from mdagents.teams.decision import Decision
from mdagents.teams.train_split import OpenExemplars, TrainSplit
from mdagents_llm.errors import ConfigError

Solving = TypeVar("Solving", bound=Callable[..., Awaitable[Decision]])

_NUMBERS = frozenset(field.name for field in fields(TeamSettings))
TEMPERATURES = ("decision_temperature", "expert_temperature")
_ATTRIBUTE = "mdagents_method"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Properties of a method, and the decorator of its `solve` that declares them.

    The defaults hold for a method without a declaration.

    Raises:
        ValueError: `roles` has no `TeamRole`, or `reads` names no number of `TeamSettings`.
    """

    roles: tuple[TeamRole, ...] = (TeamRole.RECRUITER, TeamRole.EXPERT, TeamRole.DECISION)
    """Roles whose models the method asks."""
    depth: int | Callable[[TeamSettings], int] = 1
    """Maximum number of sequential calls, without re-asks; a function if it depends on settings."""
    # Only a method that declares `answer_rounds` reads it, so that runs of earlier versions, whose
    # identity lacks it, can be resumed.
    reads: Collection[str] = _NUMBERS - {"answer_rounds"}
    """Counts and word limits of `TeamSettings` that the method reads."""
    temperatures: Collection[str] = TEMPERATURES
    """Which temperatures of `TeamSettings` the method's turns have."""
    communicates: bool = True
    """Whether agents read each other; False: one turn, or a vote over several turns."""
    seats: int = 0
    """Minimum number of experts with models of their own (`case.seats`), at least two of them
    different; 0: the method needs none."""
    controls: bool = False
    """Whether the method reads `settings.peers`, so that it can be a control of an audit."""
    one_process: bool = False
    """Whether all questions must be answered in one process, such as for what they share."""
    exemplars: Callable[[TrainSplit], OpenExemplars] | None = None
    """Opens the exemplars, which `solve` gets as its argument `exemplars`; None: it shows none."""

    def __post_init__(self) -> None:
        if isinstance(self.reads, str):
            raise ValueError(f"reads is the text {self.reads!r}; write ({self.reads!r},)")
        if odd := [role for role in self.roles if role not in set(TeamRole)]:
            raise ValueError(f"roles has {', '.join(map(str, odd))}; use {', '.join(TeamRole)}")
        if unknown := set(self.reads) - _NUMBERS:
            raise ValueError(f"reads has {', '.join(sorted(unknown))}, not in TeamSettings")

    def __call__(self, solve: Solving) -> Solving:
        """Declare these properties for a method, and return its `solve` as it is."""
        setattr(solve, _ATTRIBUTE, self)
        return solve

    def steps(self, settings: TeamSettings) -> int:
        """Return the maximum number of sequential calls with these settings.

        Raises:
            ConfigError: The declared function raised.
        """
        if not callable(self.depth):
            return self.depth
        try:
            return self.depth(settings)
        except Exception as error:  # a user's function
            raise ConfigError(
                f"the depth of the method raised {type(error).__name__}: {error}"
            ) from error


def declared_by(solve: Callable[..., Awaitable[Decision]]) -> Method:
    """Return the properties that a `solve` declares; the defaults if it declares none."""
    found: Method = getattr(solve, _ATTRIBUTE, Method())
    return found
