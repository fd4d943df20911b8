"""Events of a question in progress, as its observers receive them.

    Started
    Routed           to a team or a method; on a ladder, to each team in turn
      TurnBegan      an agent is asked; TraceEvent: a piece of its text; TurnEnded
      Recruited      the panel, or all teams
      DebateMessage  delivered to an expert, when the turn is over for all
    Rung           of a ladder: a team has stated its opinions
      ExaidStep      a call of EXAID has ended, possibly after the end; only with --otel
      Summarised     by EXAID, possibly after the end
    Ended

Turns overlap: agents that are asked at once begin and end in any order. An agent's text comes in
pieces while a reply is streamed, which only EXAID asks for, and otherwise in one piece before
`TurnEnded`. Replies from the cache cause the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.events import TraceEvent
from mdagents.datasets.questions import Question
from mdagents.settings import Difficulty, RoutedBy
from mdagents_llm.pictures import Picture

if TYPE_CHECKING:
    from exaid_core.trace.run_records import BufferDecision, SummaryEvent


@dataclass(frozen=True, slots=True)
class Started:
    """A question is started."""

    question: Question
    pictures: tuple[Picture, ...] = ()
    """Pictures of the question as sent; the run's folder has the copies by now."""

    def without_content(self) -> Started:
        """Return the event without the bytes of its pictures, to be sent to another process."""
        return Started(
            replace(
                self.question,
                pictures=tuple(replace(one, content=b"") for one in self.question.pictures),
            ),
            tuple(replace(one, base64="") for one in self.pictures),
        )


@dataclass(frozen=True, slots=True)
class Routed:
    """The team or method that answers is known."""

    level: Difficulty | None
    """Level of the team; None: a method, which has no levels."""
    by: RoutedBy
    reason: str
    """Reason of the router, or opinions of the experts so far; empty when no model was asked."""


@dataclass(frozen=True, slots=True)
class Rung:
    """The opinions of a team of a ladder, after which the question stops or climbs."""

    level: Difficulty
    votes: dict[str, int]
    """Presented letter -> number of experts (advanced team: of teams) who hold it, most first."""
    confidence: float | None
    """Mean stated confidence of the team's experts, 0 to 1; None for the advanced team."""
    decided: bool
    """Whether the question stops at this level."""
    why: str


@dataclass(frozen=True, slots=True)
class Member:
    """A recruited agent."""

    agent: str
    """`agent_id` of the member."""
    role: str
    """Role, unique in a panel; two teams may have the same."""
    reports_to: str | None = None
    """Role of the expert above; None when independent."""
    team: str = ""
    """Name of the multidisciplinary team, whose lead comes first; empty outside such a team."""


@dataclass(frozen=True, slots=True)
class Recruited:
    """A panel or all teams are complete; the experts of a debate are numbered in this order."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """An agent is asked."""

    agent: str
    """`agent_id` of the agent."""
    role: str
    phase: str
    """Step of the protocol, as in the labels of calls: `opinion`, `round-2-turn-1`."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """An agent has replied or failed."""

    agent: str
    """`agent_id` of the agent."""
    phase: str
    failed: bool = False
    answer: str | None = None
    """Presented letter; None when no answer was requested."""
    confidence: float | None = None
    """Confidence as the model stated it, 0 to 1; None when it was not requested."""


@dataclass(frozen=True, slots=True)
class DebateMessage:
    """A message from one expert to another."""

    round: int
    turn: int
    sender: str
    """`agent_id` of the sender."""
    recipient: str
    """`agent_id` of the recipient."""
    text: str


@dataclass(frozen=True, slots=True)
class ExaidStep:
    """EXAID has logged a decision, or a summary or failed attempt at one."""

    record: BufferDecision | SummaryEvent
    agents: tuple[str, ...]
    """`agent_id` of each agent whose text it is about."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """EXAID has made a summary."""

    number: int
    """Number of the summary within the question, from 1."""
    summary: AgentSummary


@dataclass(frozen=True, slots=True)
class Ended:
    """The question is decided."""

    answer: str | None
    """Presented letter; None after an error, or when the level is left out."""
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
    | ExaidStep
    | Summarised
    | Ended
)
"""Any event for an observer. Of the trace, only deltas: the agents announce their turns."""

Observer = Callable[[Event], None]
"""Callback for events. It returns at once and delays no agent; slow work is done elsewhere."""


def unobserved(event: Event) -> None:
    """Ignore an event: the observer of a case that nobody watches."""
