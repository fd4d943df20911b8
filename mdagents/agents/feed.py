"""What happens in a question while it runs, as its observers are told it.

    Started
    Routed           to a team or a method; on a ladder, to each team in turn
      TurnBegan      an agent is asked; TraceEvent: a piece of what it says; TurnEnded
      Recruited      the panel, or all teams
      DebateMessage  delivered to an expert, when the turn is over for all
      Rung           of a ladder: a team was heard
      Summarised     by EXAID, maybe after the end
    Ended

Turns overlap: agents that are asked at once begin and end in any order. What an agent says comes
in pieces while a reply is streamed, which only EXAID asks for; else in one before `TurnEnded`.
Replies from the cache are told in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.events import TraceEvent
from mdagents.datasets.questions import Question
from mdagents.settings import Difficulty, RoutedBy


@dataclass(frozen=True, slots=True)
class Started:
    """A question is taken up."""

    question: Question


@dataclass(frozen=True, slots=True)
class Routed:
    """It is known who answers."""

    level: Difficulty | None
    """None: a method, which has no levels."""
    by: RoutedBy
    reason: str
    """The router's, or what the experts said so far; empty when nobody was asked."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A team of a ladder was heard, and the question stops there or climbs on."""

    level: Difficulty
    votes: dict[str, int]
    """Presented letter -> experts (in the advanced team: teams) who hold it, most first."""
    confidence: float | None
    """Mean of what its experts stated, 0 to 1; None for the advanced team."""
    decided: bool
    """Whether the question stops there."""
    why: str


@dataclass(frozen=True, slots=True)
class Member:
    """An agent that was recruited."""

    agent: str
    """`agent_id`"""
    role: str
    """Unique in a panel; two teams may have the same."""
    reports_to: str | None = None
    """Role of the expert above."""
    team: str = ""
    """Name of its multidisciplinary team, whose lead comes first."""


@dataclass(frozen=True, slots=True)
class Recruited:
    """A panel or all teams are complete; the experts of a debate are numbered in this order."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """An agent is asked."""

    agent: str
    """`agent_id`"""
    role: str
    phase: str
    """The step of the protocol, as calls are labelled: `opinion`, `round-2-turn-1`."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """An agent has replied, or failed to."""

    agent: str
    """`agent_id`"""
    phase: str
    failed: bool = False
    answer: str | None = None
    """Presented letter; None when none was asked for."""
    confidence: float | None = None
    """0 to 1, as the model stated it; None when none was asked for."""


@dataclass(frozen=True, slots=True)
class DebateMessage:
    """A message from one expert to another."""

    round: int
    turn: int
    sender: str
    """`agent_id`"""
    recipient: str
    """`agent_id`"""
    text: str


@dataclass(frozen=True, slots=True)
class Summarised:
    """EXAID has made a summary."""

    number: int
    """Within the question, from 1."""
    summary: AgentSummary


@dataclass(frozen=True, slots=True)
class Ended:
    """The question is decided."""

    answer: str | None
    """Presented letter; None when its level is left out, and after an error."""
    error: str | None


Event = (
    Started
    | Routed
    | Recruited
    | Rung
    | TurnBegan
    | TraceEvent
    | TurnEnded
    | DebateMessage
    | Summarised
    | Ended
)
"""All that an observer is told. Of the trace only its deltas: turns are told by their agents."""

Observer = Callable[[Event], None]
"""Returns at once and keeps no agent waiting: what is costly is done later, and elsewhere."""


def unobserved(event: Event) -> None:
    """Tell nobody."""
