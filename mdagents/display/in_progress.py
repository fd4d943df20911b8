"""State of the questions in progress, from the events of their feed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.events import TraceEvent
from mdagents.agents.events import (
    Ended,
    Event,
    Member,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.display.labels import by_role, label_of, phase_in_words
from mdagents.records.summaries import ItemKey
from mdagents_llm.text import one_line

_MOST = 1_000  # questions; more than are ever in progress, so only stuck ones are dropped
_DELTAS = 100  # latest text deltas of a question; a display shows a line or two


@dataclass(eq=False, slots=True)
class OpenQuestion:
    """State of a question for displays."""

    label: str
    """Id of the question for display."""
    question: Question | None = None
    """The question; None if it started before the display."""
    level: str = ""
    """Level of the question; empty before routing, and for a method without levels."""
    phase: str = ""
    """Phase of the latest turn, in words."""
    members: tuple[Member, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)
    """Name of an agent among agents, an id or `Expert 2` -> role."""
    speaking: dict[str, str] = field(default_factory=dict)
    """`agent_id` -> role of each agent with a turn in progress; the latest last."""
    votes: dict[str, str] = field(default_factory=dict)
    """`agent_id` -> letter that the agent holds, excluding agents that decide."""
    decided: str | None = None
    """Letter of the decision; None before a decision."""
    summary: AgentSummary | None = None
    """Latest summary; None before the first."""
    summaries: int = 0
    """Number of summaries so far."""
    ended: bool = False
    since: float | None = None
    """Time of the first look at the question, in seconds on the run's clock."""
    heard_at: float = 0.0
    """Time of the last look that found news, in seconds on the run's clock."""
    has_news: bool = True
    """Whether something happened since the last look."""
    _words: deque[TraceEvent] = field(default_factory=lambda: deque(maxlen=_DELTAS))

    def take(self, event: Event) -> None:
        """Apply an event of the question."""
        self.has_news = True
        match event:
            case TraceEvent():
                self._words.append(event)
            case Started(question):
                self.question = question
            case Routed(level=level):
                self.level = level or ""
            case Recruited(members):
                self.members = members
                self.roles |= {member.agent: member.role for member in members}
                self.roles |= {f"Expert {n}": one.role for n, one in enumerate(members, start=1)}
            case TurnBegan(agent, role, phase):
                self.roles[agent] = self.speaking[agent] = role
                self.phase = phase_in_words(phase)
            case TurnEnded():
                self.speaking.pop(event.agent, None)
                self._note_answer(event)
            case Summarised(number, summary):
                self.summary, self.summaries = summary, number
            case Ended():
                self.ended, self.phase = True, "finished"
                self.speaking.clear()

    def _note_answer(self, turn: TurnEnded) -> None:
        if turn.answer is None:
            return
        if turn.phase == "sample" or any(turn.agent == member.agent for member in self.members):
            self.votes[turn.agent] = turn.answer
        else:
            self.decided = turn.answer

    def last_words(self) -> tuple[str, str]:
        """Return the last speaker's role and latest text; two empty texts before any."""
        if not self._words:
            return "", ""
        last = self._words[-1]
        said = "".join(word.text for word in self._words if word.turn_id == last.turn_id)
        return self.roles.get(last.agent_id, last.agent_id), by_role(one_line(said), self.roles)

    def holders(self, letter: str) -> list[str]:
        """Return the roles of the current holders of an answer."""
        return [self.roles[agent] for agent, held in self.votes.items() if held == letter]


class UnderWay:
    """Follows the questions of a run, from the first event of each to its last summary."""

    def __init__(self) -> None:
        self._open: dict[ItemKey, OpenQuestion] = {}  # in the order of their start
        self._ended: dict[ItemKey, OpenQuestion] = {}  # their summaries may still follow

    def __iter__(self) -> Iterator[OpenQuestion]:
        """Iterate over the questions in progress in the order of their start."""
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def take(self, item: ItemKey, event: Event) -> OpenQuestion:
        """Apply an event of a question, and return the question."""
        question = self._open.get(item) or self._ended.get(item)
        if question is None:
            # A question of an earlier start has only events of summaries.
            is_over = isinstance(event, Summarised)
            question = self._open[item] = OpenQuestion(label_of(item), ended=is_over)
            _forget_oldest(self._open)
        question.take(event)
        if question.ended and item in self._open:
            self._ended[item] = self._open.pop(item)
            _forget_oldest(self._ended)
        return question

    def look(self, now: float) -> None:
        """Set the time of questions with news to `now` (seconds on the run's clock)."""
        for question in (*self._open.values(), *self._ended.values()):
            if question.has_news:
                question.heard_at, question.has_news = now, False
                if question.since is None:
                    question.since = now

    def ended(self, item: ItemKey) -> OpenQuestion | None:
        """Return a question that has ended; None if it had no events."""
        return self._ended.get(item)

    @property
    def last_ended(self) -> OpenQuestion | None:
        """Question that ended last; None before the first."""
        return next(reversed(self._ended.values()), None)


def _forget_oldest(questions: dict[ItemKey, OpenQuestion]) -> None:
    if len(questions) > _MOST:
        del questions[next(iter(questions))]
