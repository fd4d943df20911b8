"""The result of a team: the decision, and the opinions and messages that led to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mdagents.agents.agent import Agent
from mdagents.agents.events import DebateMessage
from mdagents.agents.replies import Opinion


@dataclass(frozen=True, slots=True)
class Stated:
    """An opinion as an agent stated it."""

    agent: str
    role: str
    round: int
    """Number of the debate round after which the opinion was stated; 0: before any debate."""
    answer: str
    confidence: float
    """Confidence as the model stated it, 0 to 1."""
    reasoning: str

    @classmethod
    def by(cls, agent: Agent, opinion: Opinion, round: int = 0) -> Stated:
        """Return the opinion that `agent` stated after round `round`."""
        return cls(
            agent.id, agent.role, round, opinion.answer, opinion.confidence, opinion.reasoning
        )


@dataclass(frozen=True, slots=True)
class Panelist:
    """An expert of a debate, with its place in the hierarchy."""

    agent: str
    role: str
    emoji: str
    reports_to: str | None
    """Role of the expert above; None when independent."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of an assistant of a team."""

    agent: str
    findings: str


@dataclass(frozen=True, slots=True)
class ReportedTeam:
    """A multidisciplinary team and its conclusion."""

    name: str
    purpose: str
    kind: str
    """Kind of the team: `initial`, `specialist` or `final_review`."""
    members: tuple[str, ...]
    """`agent_id` of each member; the lead first."""
    instructions: str
    """Instructions of the lead to the assistants; empty when it worked alone."""
    investigations: tuple[Finding, ...]
    """Findings of the assistants that replied."""
    findings: str
    answer: str
    dissent: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Outcome of a team. The letter is one that a model gave, never a guess."""

    letter: str
    analysis: str
    opinions: tuple[Stated, ...] = ()
    """Opinions in the order in which they were stated."""
    panel: tuple[Panelist, ...] = ()
    messages: tuple[DebateMessage, ...] = ()
    """Debate messages that were delivered."""
    dropped_messages: int = 0
    """Number of messages to their own sender or to an unknown recipient."""
    teams: tuple[ReportedTeam, ...] = ()

    def votes(self) -> dict[str, int]:
        """Return letter -> number of experts (or teams) that hold it at the end, most first."""
        last = {stated.agent: stated.answer for stated in self.opinions}
        letters: Iterable[str] = last.values() if last else (team.answer for team in self.teams)
        return dict(Counter(letters).most_common())

    def confidence(self) -> float | None:
        """Return the mean final confidence of the experts who hold the final letter.

        None when no expert holds it.
        """
        last = {stated.agent: stated for stated in self.opinions}
        agreeing = [s.confidence for s in last.values() if s.answer == self.letter]
        return round(sum(agreeing) / len(agreeing), 4) if agreeing else None
