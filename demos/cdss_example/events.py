"""What happens in a case, told to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exaid_core import AgentSummary


@dataclass(frozen=True, slots=True)
class CaseBegan:
    """A case is taken."""

    case_id: str
    text: str
    """The case as the agents read it."""


@dataclass(frozen=True, slots=True)
class NodeBegan:
    """A node of the graph runs."""

    number: int
    """Which node run of the case it is, from 1."""
    node: str


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of what an agent says."""

    number: int
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """A node of the graph has run."""

    number: int
    node: str
    failure: str = ""
    """Why a specialist has given no opinion; empty if it has."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """EXAID has written a summary."""

    summary: AgentSummary


@dataclass(frozen=True, slots=True)
class Recommended:
    """The synthesis is there; EXAID may still be at work."""

    text: str
    """All of it."""
    recommendation: Mapping[str, str]
    """The same by fields."""
    asked_at_the_limit: str = ""
    """The specialist that the orchestrator asked for when no node run was left; mostly empty."""


@dataclass(frozen=True, slots=True)
class CaseEnded:
    """Nothing more is said of the case."""

    failure: str = ""
    """Why it has no recommendation; empty if it has one."""
    exaid: str = ""
    """What is the matter with the summaries; mostly empty."""


Event = CaseBegan | NodeBegan | Said | NodeEnded | Summarised | Recommended | CaseEnded
OnEvent = Callable[[Event], None]
"""Must not block. What it raises ends the case, but for a `Summarised`."""
