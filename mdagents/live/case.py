"""One question as its feed tells of it: turns, votes, messages and summaries, as they stand."""

from __future__ import annotations

from dataclasses import dataclass, field

from exaid_core.schema.agent_summary import AgentSummary
from mdagents.agents.feed import (
    DebateMessage,
    Ended,
    Member,
    Recruited,
    Routed,
    Rung,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.live.lines import Charged, FeedLine, Words
from mdagents.records.summaries import ItemKey


@dataclass(eq=False, slots=True)
class Turn:
    """One turn of an agent."""

    agent: str
    """`agent_id`"""
    role: str
    phase: str
    """The step of the protocol, as calls are labelled."""
    began_at: int
    """In ms since 1970 UTC, as all times here."""
    text: str = ""
    seqs: tuple[int, int] | None = None
    """First and last sequence number of its words in the trace; None while it has none."""
    ended_at: int | None = None
    failed: bool = False
    answer: str | None = None
    """Presented letter; None when none was asked for."""
    confidence: float | None = None
    tokens: int = 0
    """Input plus output, of all attempts that had a reply."""
    reasoning: str = ""
    """Hidden reasoning, where it is kept."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An expert held another answer than before."""

    agent: str
    before: str
    after: str
    turn: int
    """Index of the turn in which it was said."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message and when it reached its reader."""

    message: DebateMessage
    at: int
    said_in: int | None
    """Index of the turn in which it was written; None when that is not known."""


@dataclass(frozen=True, slots=True)
class Made:
    """A summary, when it was made, and what of."""

    number: int
    summary: AgentSummary
    at: int
    of_turns: tuple[int, ...]
    """Indices of the turns that it was made from."""


@dataclass(eq=False, slots=True)
class LiveCase:
    """What is known of a question so far.

    It may have begun before the first line that is known; then its question is None.
    """

    item: ItemKey
    question: Question | None = None
    started_at: int | None = None
    routed: Routed | None = None
    """Where it is sent; on a ladder, last."""
    rungs: list[Rung] = field(default_factory=list)
    """The teams of a ladder that were heard."""
    members: tuple[Member, ...] = ()
    turns: list[Turn] = field(default_factory=list)
    messages: list[Delivered] = field(default_factory=list)
    summaries: list[Made] = field(default_factory=list)
    flips: list[Flip] = field(default_factory=list)
    votes: dict[str, str] = field(default_factory=dict)
    """`agent_id` of a member of the panel, or of a sample -> the letter that it holds."""
    exaid_tokens: int = 0
    """What EXAID used."""
    ended: Ended | None = None
    ended_at: int | None = None
    last_at: int | None = None
    """When the last happened that is known of it."""

    def take(self, line: FeedLine) -> None:
        """Note a line that is about this question."""
        self.last_at = line.at
        match line.what:
            case Started(question):
                self._begin(question, line.at)
            case Routed() as routed:
                self.routed = routed
            case Rung() as rung:
                self.rungs.append(rung)
            case Recruited(members):
                self.members = members
            case TurnBegan(agent, role, phase):
                self.turns.append(Turn(agent, role, phase, line.at))
            case Words() as words:
                self._hear(words, line.at)
            case TurnEnded() as end:
                self._end_turn(end, line.at)
            case Charged() as charged:
                self._charge(charged)
            case DebateMessage() as message:
                self.deliver(message, line.at)
            case Summarised(number, summary):
                self.summaries.append(Made(number, summary, line.at, self._turns_of(summary)))
            case Ended() as ended:
                self.ended, self.ended_at = ended, line.at

    def deliver(self, message: DebateMessage, at: int) -> None:
        """Note that a message has reached its reader."""
        phase = f"round-{message.round}-turn-{message.turn}"
        said_in = next(
            (
                index
                for index in reversed(range(len(self.turns)))
                if (self.turns[index].agent, self.turns[index].phase) == (message.sender, phase)
            ),
            None,
        )
        self.messages.append(Delivered(message, at, said_in))

    @property
    def tokens(self) -> int:
        """What the agents used, input plus output."""
        return sum(turn.tokens for turn in self.turns)

    @property
    def speaking(self) -> list[Turn]:
        """The turns under way."""
        return [turn for turn in self.turns if turn.ended_at is None]

    def _begin(self, question: Question, at: int) -> None:
        """Begin anew: a question that was interrupted is asked again from the start."""
        self.question, self.started_at = question, at
        self.routed = self.ended = self.ended_at = None
        self.members = ()
        self.votes = {}
        self.exaid_tokens = 0
        self.rungs, self.turns, self.messages = [], [], []
        self.summaries, self.flips = [], []

    def _hear(self, words: Words, at: int) -> None:
        turn = next((t for t in reversed(self.turns) if t.agent == words.agent), None)
        if turn is None:  # its beginning is not known
            turn = Turn(words.agent, words.agent, "", at)
            self.turns.append(turn)
        turn.text += words.text
        turn.seqs = (turn.seqs[0] if turn.seqs else words.seqs[0], words.seqs[1])

    def _end_turn(self, end: TurnEnded, at: int) -> None:
        open_ones = [
            (index, turn)
            for index, turn in enumerate(self.turns)
            if turn.agent == end.agent and turn.ended_at is None
        ]
        if not open_ones:
            return
        index, turn = open_ones[-1]
        turn.ended_at, turn.failed = at, end.failed
        turn.answer, turn.confidence = end.answer, end.confidence
        has_vote = end.phase == "sample" or any(one.agent == end.agent for one in self.members)
        if end.answer is not None and has_vote:
            before = self.votes.get(end.agent)
            if before is not None and before != end.answer:
                self.flips.append(Flip(end.agent, before, end.answer, index))
            self.votes[end.agent] = end.answer

    def _charge(self, charged: Charged) -> None:
        if charged.of_exaid:
            self.exaid_tokens += charged.tokens
            return
        of_agent = [turn for turn in self.turns if turn.agent == charged.agent]
        of_phase = [turn for turn in of_agent if turn.phase == charged.phase]
        for turn in (of_phase or of_agent)[-1:]:
            turn.tokens += charged.tokens
            turn.reasoning = "\n\n".join(filter(None, (turn.reasoning, charged.reasoning)))

    def _turns_of(self, summary: AgentSummary) -> tuple[int, ...]:
        return tuple(
            index
            for index, turn in enumerate(self.turns)
            if turn.seqs is not None
            and turn.agent in summary.agents
            and any(
                first <= turn.seqs[1] and turn.seqs[0] <= last
                for first, last in summary.source_seqs
            )
        )
