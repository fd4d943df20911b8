"""The questions under way, as their feed tells of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from exaid_core.channel import one_line
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.events import TraceEvent
from mdagents.agents.feed import (
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
from mdagents.display.words import by_role, label_of, phase_in_words
from mdagents.records.summaries import ItemKey

_MOST = 1_000  # questions; more than are ever under way, so only those that never end are forgotten
_DELTAS = 100  # of a turn; what was said last fills a line or two


@dataclass(eq=False, slots=True)
class OpenQuestion:
    """A question as a display knows it."""

    label: str
    """How a person knows it."""
    question: Question | None = None
    """None when it started before the display did."""
    level: str = ""
    """Empty before it is routed, and for a method without levels."""
    phase: str = ""
    """In words, of the turn that began last."""
    members: tuple[Member, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)
    """What agents call one another, an id or `Expert 2` -> role."""
    speaking: dict[str, str] = field(default_factory=dict)
    """`agent_id` -> role, of those whose turn is under way; the latest last."""
    votes: dict[str, str] = field(default_factory=dict)
    """`agent_id` -> the letter that the agent holds now; without those who decide."""
    decided: str | None = None
    """The letter of the decision."""
    summary: AgentSummary | None = None
    """The latest."""
    summaries: int = 0
    """Number of summaries so far."""
    ended: bool = False
    since: float | None = None
    """When it was first looked at, in seconds on the clock of the run."""
    heard_at: float = 0.0
    """When it was last looked at with something new, in the same seconds."""
    has_news: bool = True
    """Whether something happened since the last look."""
    _words: deque[TraceEvent] = field(default_factory=lambda: deque(maxlen=_DELTAS))

    def take(self, event: Event) -> None:
        """Note what happens in it."""
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
        """Return who spoke last, and the end of what was said; two empty texts before that."""
        if not self._words:
            return "", ""
        last = self._words[-1]
        said = "".join(word.text for word in self._words if word.turn_id == last.turn_id)
        return self.roles.get(last.agent_id, last.agent_id), by_role(one_line(said), self.roles)

    def holders(self, letter: str) -> list[str]:
        """Return the roles of those who hold an answer now."""
        return [self.roles[agent] for agent, held in self.votes.items() if held == letter]


class UnderWay:
    """Follows the questions of a run, from the first that is told of each to its last summary."""

    def __init__(self) -> None:
        self._open: dict[ItemKey, OpenQuestion] = {}  # in the order in which they were taken up
        self._ended: dict[ItemKey, OpenQuestion] = {}  # whose summaries may still follow

    def __iter__(self) -> Iterator[OpenQuestion]:
        """Iterate over the open ones, the one that was taken up first comes first."""
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def take(self, item: ItemKey, event: Event) -> OpenQuestion:
        """Note what happens in a question, and return it."""
        question = self._open.get(item) or self._ended.get(item)
        if question is None:
            # Of a question of an earlier start only the summaries are told.
            is_over = isinstance(event, Summarised)
            question = self._open[item] = OpenQuestion(label_of(item), ended=is_over)
            _forget_oldest(self._open)
        question.take(event)
        if question.ended and item in self._open:
            self._ended[item] = self._open.pop(item)
            _forget_oldest(self._ended)
        return question

    def look(self, now: float) -> None:
        """Note that it is `now` (seconds, on the clock of the run)."""
        for question in (*self._open.values(), *self._ended.values()):
            if question.has_news:
                question.heard_at, question.has_news = now, False
                if question.since is None:
                    question.since = now

    def ended(self, item: ItemKey) -> OpenQuestion | None:
        """Return a question that has ended; None for one of which nothing was told."""
        return self._ended.get(item)

    @property
    def last_ended(self) -> OpenQuestion | None:
        """The question that ended last; None before that."""
        return next(reversed(self._ended.values()), None)


def _forget_oldest(questions: dict[ItemKey, OpenQuestion]) -> None:
    if len(questions) > _MOST:
        del questions[next(iter(questions))]
