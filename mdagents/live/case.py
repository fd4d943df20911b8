"""Current state of one question from its feed: turns, votes, messages and summaries."""

from __future__ import annotations

from dataclasses import dataclass, field

from exaid_core.schema.agent_summary import AgentSummary
from mdagents.agents.events import (
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
from mdagents.datasets.questions import Question, look_alikes
from mdagents.live.lines import Charged, FeedLine, Pictured, Words
from mdagents.records.pictures import PictureRecord
from mdagents.records.summaries import ItemKey


@dataclass(eq=False, slots=True)
class Turn:
    """One turn of an agent."""

    agent: str
    """`agent_id` of the speaker."""
    role: str
    phase: str
    """Step of the protocol, as in the phase of calls."""
    began_at: int
    """Start of the turn, in ms since 1970 UTC, like all times in this module."""
    text: str = ""
    seqs: tuple[int, int] | None = None
    """First and last sequence number of the words in the trace; None before the first word."""
    ended_at: int | None = None
    failed: bool = False
    answer: str | None = None
    """Presented letter of the answer; None if none was requested."""
    confidence: float | None = None
    tokens: int = 0
    """Input plus output tokens of all attempts that had a reply."""
    reasoning: str = ""
    """Hidden reasoning, if it is kept."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of an expert's answer."""

    agent: str
    before: str
    after: str
    turn: int
    """Index of the turn that gave the new answer."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message with its delivery time."""

    message: DebateMessage
    at: int
    said_in: int | None
    """Index of the turn that wrote the message; None if unknown."""


@dataclass(frozen=True, slots=True)
class Made:
    """A summary with its time and its turns."""

    number: int
    summary: AgentSummary
    at: int
    of_turns: tuple[int, ...]
    """Indices of the summarized turns."""


@dataclass(eq=False, slots=True)
class LiveCase:
    """State of a question so far.

    `question` is None if the question started before the first known line of the feed.
    """

    item: ItemKey
    question: Question | None = None
    pictures: tuple[PictureRecord, ...] = ()
    """Pictures of the question, in the order of its prompts."""
    started_at: int | None = None
    routed: Routed | None = None
    """Latest routing decision; on a ladder, that of the current rung."""
    rungs: list[Rung] = field(default_factory=list)
    """Rungs of a ladder whose teams have answered."""
    members: tuple[Member, ...] = ()
    turns: list[Turn] = field(default_factory=list)
    messages: list[Delivered] = field(default_factory=list)
    summaries: list[Made] = field(default_factory=list)
    flips: list[Flip] = field(default_factory=list)
    votes: dict[str, str] = field(default_factory=dict)
    """`agent_id` of a panel member or sample -> letter that it holds."""
    exaid_tokens: int = 0
    """Tokens that EXAID used."""
    ended: Ended | None = None
    ended_at: int | None = None
    last_at: int | None = None
    """Time of the latest known event; None before the first."""

    def take(self, line: FeedLine) -> None:
        """Apply a feed line of this question."""
        self.last_at = line.at
        match line.what:
            case Started(question):
                self._begin(question, line.at)
            case Pictured(pictures):
                self.pictures = pictures
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

    @property
    def right_letters(self) -> list[str]:
        """Presented letters that count as right: those that look like the right option."""
        question = self.question
        if question is None:
            return []
        pictures = [(one.option, one.caption, one.sha256) for one in self.pictures]
        return look_alikes(question.gold, question.options, pictures)

    def deliver(self, message: DebateMessage, at: int) -> None:
        """Record the delivery of a message."""
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
        """Input plus output tokens that the agents used."""
        return sum(turn.tokens for turn in self.turns)

    @property
    def speaking(self) -> list[Turn]:
        """Turns in progress."""
        return [turn for turn in self.turns if turn.ended_at is None]

    def _begin(self, question: Question, at: int) -> None:
        """Reset the state, since an interrupted question is asked again from the start."""
        self.question, self.started_at = question, at
        self.routed = self.ended = self.ended_at = None
        self.members, self.pictures = (), ()
        self.votes = {}
        self.exaid_tokens = 0
        self.rungs, self.turns, self.messages = [], [], []
        self.summaries, self.flips = [], []

    def _hear(self, words: Words, at: int) -> None:
        turn = next((t for t in reversed(self.turns) if t.agent == words.agent), None)
        if turn is None:  # its beginning is unknown
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
