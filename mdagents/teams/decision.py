"""What a team returns: the decision and the opinions and messages that led to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mdagents.agents.agent import Agent
from mdagents.agents.feed import DebateMessage
from mdagents.agents.replies import Opinion


@dataclass(frozen=True, slots=True)
class Stated:
    """An opinion as an agent stated it."""

    agent: str
    role: str
    round: int
    """0: before any debate; r: after round r."""
    answer: str
    confidence: float
    """0 to 1, as the model stated it."""
    reasoning: str

    @classmethod
    def by(cls, agent: Agent, opinion: Opinion, round: int = 0) -> Stated:
        """Return the opinion that `agent` stated after round `round`."""
        return cls(
            agent.id, agent.role, round, opinion.answer, opinion.confidence, opinion.reasoning
        )


@dataclass(frozen=True, slots=True)
class Panelist:
    """An expert of a debate with its place in the hierarchy."""

    agent: str
    role: str
    emoji: str
    reports_to: str | None
    """Role of the expert above, or None when independent."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What an assistant of a team found."""

    agent: str
    findings: str


@dataclass(frozen=True, slots=True)
class ReportedTeam:
    """A multidisciplinary team and what it concluded."""

    name: str
    purpose: str
    kind: str
    """`initial`, `specialist` or `final_review`."""
    members: tuple[str, ...]
    """`agent_id` of each; the lead first."""
    instructions: str
    """What the lead asked for; empty when it worked alone."""
    investigations: tuple[Finding, ...]
    """Of each assistant that replied."""
    findings: str
    answer: str
    dissent: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a team. The letter is one that a model gave, never a guess."""

    letter: str
    analysis: str
    opinions: tuple[Stated, ...] = ()
    """In the order in which they were stated."""
    panel: tuple[Panelist, ...] = ()
    messages: tuple[DebateMessage, ...] = ()
    """Debate messages that were delivered."""
    dropped_messages: int = 0
    """Messages to oneself or to an unknown recipient."""
    teams: tuple[ReportedTeam, ...] = ()

    def votes(self) -> dict[str, int]:
        """Return letter -> how many experts (or teams) hold it at the end, most first."""
        last = {stated.agent: stated.answer for stated in self.opinions}
        letters: Iterable[str] = last.values() if last else (team.answer for team in self.teams)
        return dict(Counter(letters).most_common())

    def confidence(self) -> float | None:
        """Return the mean final confidence of experts who hold the final letter, if any."""
        last = {stated.agent: stated for stated in self.opinions}
        agreeing = [s.confidence for s in last.values() if s.answer == self.letter]
        return round(sum(agreeing) / len(agreeing), 4) if agreeing else None
