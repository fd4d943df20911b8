"""The events of a case, which listeners display."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exaid_core import AgentSummary


@dataclass(frozen=True, slots=True)
class CaseBegan:
    """A case has started."""

    case_id: str
    text: str
    """The case as the agents read it."""


@dataclass(frozen=True, slots=True)
class NodeBegan:
    """A node of the graph has started."""

    number: int
    """Number of the node run within the case, from 1."""
    node: str


@dataclass(frozen=True, slots=True)
class Said:
    """An agent has produced a piece of text."""

    number: int
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """A node of the graph has ended."""

    number: int
    node: str
    failure: str = ""
    """Why a specialist gave no opinion; empty if it gave one."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """EXAID has written a summary."""

    summary: AgentSummary


@dataclass(frozen=True, slots=True)
class Recommended:
    """The synthesis is complete; EXAID may still be running."""

    text: str
    """Full text of the recommendation."""
    recommendation: Mapping[str, str]
    """Field -> text of the recommendation."""
    asked_at_the_limit: str = ""
    """Specialist that the orchestrator asked for when no node run was left; usually empty."""


@dataclass(frozen=True, slots=True)
class CaseEnded:
    """A case has ended; no further events follow."""

    failure: str = ""
    """Why the case has no recommendation; empty if it has one."""
    exaid: str = ""
    """Problem with the summaries, or `off` without EXAID; empty if everything is fine."""


Event = CaseBegan | NodeBegan | Said | NodeEnded | Summarised | Recommended | CaseEnded
OnEvent = Callable[[Event], None]
"""Callback for events. It must not block; an error that it raises ends the case, except for a
`Summarised` event."""
