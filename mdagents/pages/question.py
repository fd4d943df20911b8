"""View model of a question's page, from a live feed or from one rebuilt from records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.templates import LABELS, flags
from mdagents.display.labels import phase_in_words
from mdagents.live.case import LiveCase, Made, Turn
from mdagents.pages.changes import Cause, causes
from mdagents.pages.html_parts import Part, made_by
from mdagents.pages.phrase_links import Phrase, phrases
from mdagents.pages.pictures import ShownPicture, shown_pictures
from mdagents.pages.sentences import Quote
from mdagents.pages.team_graph import (
    Panel,
    colors_of,
    draw_panel,
    initials_of,
    roles_of,
    since_start,
)
from mdagents.scoring.formatting import percent

_UPDATE = re.compile(r"round-(\d+)-update")


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent, as a circle with its initials."""

    role: str
    initials: str
    color: int


@dataclass(frozen=True, slots=True)
class Option:
    """An option as it was presented."""

    letter: str
    text: str
    is_right: bool
    is_answer: bool
    votes: int
    """Number of experts or teams that hold the option."""
    holders: tuple[Speaker, ...]
    """Known holders."""
    pictures: Sequence[ShownPicture]
    """Pictures of the option."""


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn of an agent, as the page shows it."""

    index: int
    agent: str
    """`agent_id` of the speaker."""
    role: str
    color: int
    section: int
    """Number of the section that holds the turn."""
    at: int
    """When the turn began, in ms since the question started."""
    ended: int | None
    """When the turn ended, in ms since the question started; None while it is running."""
    text: str
    failed: bool
    answer: str
    """Letter of the answer; empty if none was requested."""
    before: str
    """Letter that the agent held before, if the turn changed it; else empty."""
    has_vote: bool
    """Whether the answer counts as a vote, rather than as the decision."""
    confidence: str
    """Stated confidence as a percentage; empty if not stated."""
    tokens: int
    reasoning: str
    """Hidden reasoning, if it is kept."""
    recipients: tuple[str, ...]
    """Roles of the agents that the turn wrote to."""
    cause: Cause | None
    """Why the agent changed its answer; None if it did not."""


@dataclass(frozen=True, slots=True)
class Card:
    """A summary by EXAID, as the page shows it."""

    number: int
    of: tuple[str, ...]
    """Roles of the summarized agents."""
    turns: tuple[int, ...]
    """Indices of the summarized turns."""
    at: int
    """When the summary was made, in ms since the question started."""
    fields: tuple[tuple[str, tuple[Phrase, ...], bool], ...]
    """(label, phrases, whether the field is only the placeholder) of each field."""
    alerts: tuple[str, ...]
    """Critical alerts in the turns, whether or not the summary reports them."""
    flags: tuple[str, ...]
    """Problems of the summary, in words."""


@dataclass(frozen=True, slots=True)
class Held:
    """The answer that an expert or team gave at one step."""

    letter: str
    turn: int
    at: int
    changed: bool
    said: Quote | None
    """Sentence that explains the change; None if there was no change or no such sentence."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Who held which answer, step by step."""

    steps: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[Held | None, ...]], ...]
    """(role, color index, answer or None for each step) of each expert or team."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The turns of one agent on the timeline."""

    role: str
    color: int
    tokens: int
    bars: tuple[tuple[int, int, int, str], ...]
    """(start, length, turn index, description); start and length are in thousandths of the line."""


class QuestionPage:
    """A question as its page shows it.

    Args:
        case: State of the question so far.
        right: Presented letters that count as right.
        votes: Letter -> number of holders, if not every holder is known.
        is_at_work: Whether the run is running; False if it was stopped.
        folder: Folder of the run, which has copies of the pictures.
        pictures_at: Address of these copies; empty for a report.
    """

    def __init__(
        self,
        case: LiveCase,
        right: Sequence[str],
        votes: Mapping[str, int] | None = None,
        *,
        is_at_work: bool = True,
        folder: Path = Path(),
        pictures_at: str = "",
    ) -> None:
        self.case = case
        self._folder, self._pictures_at = folder, pictures_at
        self.is_at_work = is_at_work and case.ended is None
        self.right = right
        self._votes = votes
        self.roles = roles_of(case)
        self.colors = colors_of(case)
        self._sections: dict[str, int] = {}
        for turn in case.turns:
            self._sections.setdefault(_section(turn), len(self._sections))

    @cached_property
    def pictures(self) -> list[ShownPicture]:
        """Pictures of the question and of its options, in the order of the prompts."""
        case = self.case
        return shown_pictures(case.pictures, case.item[0], self._folder, self._pictures_at)

    @property
    def options(self) -> list[Option]:
        """The presented options with their holders."""
        question, answer = self.case.question, self.case.ended and self.case.ended.answer
        if question is None:
            return []
        found = []
        for letter, text in question.options.items():
            holders = tuple(
                self.speaker(agent) for agent, held in self.case.votes.items() if held == letter
            )
            votes = len(holders) if self._votes is None else self._votes.get(letter, 0)
            found.append(
                Option(
                    letter,
                    text,
                    letter in self.right,
                    letter == answer,
                    votes,
                    holders,
                    [picture for picture in self.pictures if picture.option == letter],
                )
            )
        return found

    @property
    def panel(self) -> Panel:
        """Drawing of the agents and their messages."""
        return draw_panel(self.case, is_at_work=self.is_at_work)

    @property
    def phase(self) -> str:
        """Latest step of the protocol, in words; empty before the first."""
        turns = self.case.turns
        return phase_in_words(turns[-1].phase) if turns else ""

    @property
    def speaking(self) -> list[str]:
        """Roles of the agents that are speaking."""
        return [self.roles[turn.agent] for turn in self.case.speaking]

    @property
    def sections(self) -> list[tuple[int, str]]:
        """(number, heading) of each step of the protocol that has a turn."""
        return [(number, title) for title, number in self._sections.items()]

    @cached_property
    def turns(self) -> list[ShownTurn]:
        """All turns, in the order of their start."""
        return [self.turn(index) for index in range(len(self.case.turns))]

    def turn(self, index: int) -> ShownTurn:
        """Return the view model of one turn."""
        turn, case = self.case.turns[index], self.case
        changed = any(flip.turn == index for flip in case.flips)
        cause = next((c for c in self.changes if c.flip.turn == index), None) if changed else None
        sent = [message for message in case.messages if message.said_in == index]
        return ShownTurn(
            index=index,
            agent=turn.agent,
            role=self.roles[turn.agent],
            color=self.colors[turn.agent],
            section=self._sections[_section(turn)],
            at=since_start(case, turn.began_at),
            ended=None if turn.ended_at is None else since_start(case, turn.ended_at),
            text=turn.text,
            failed=turn.failed,
            answer=turn.answer or "",
            before=cause.flip.before if cause else "",
            has_vote=turn.agent in case.votes,
            confidence="" if turn.confidence is None else percent(turn.confidence),
            tokens=turn.tokens,
            reasoning=turn.reasoning,
            recipients=tuple(self.role(one.message.recipient) for one in sent),
            cause=cause,
        )

    def role(self, agent: str) -> str:
        """Return the role of an agent; its id if the role is unknown."""
        return self.roles.get(agent, agent)

    def speaker(self, agent: str) -> Speaker:
        """Return the view model of an agent."""
        role = self.role(agent)
        return Speaker(role, initials_of(role), self.colors.get(agent, 0))

    @property
    def cards(self) -> list[Card]:
        """All summaries, in the order of their creation."""
        return [self.card(made) for made in self.case.summaries]

    def card(self, made: Made) -> Card:
        """Return the view model of one summary."""
        turns = self.case.turns
        first = min(made.of_turns, default=0)
        found = phrases(
            made.summary,
            {index: turns[index] for index in made.of_turns},
            {index: turns[index] for index in range(first)},
        )
        return Card(
            number=made.number,
            of=tuple(map(self.role, made.summary.agents)),
            turns=made.of_turns,
            at=since_start(self.case, made.at),
            fields=tuple(
                (label, found[name], getattr(made.summary, name) == PLACEHOLDER)
                for name, label in LABELS.items()
            ),
            alerts=made.summary.alerts,
            flags=tuple(flags(made.summary)),
        )

    @property
    def strip(self) -> Strip:
        """Answers of the experts or teams after each step."""
        case = self.case
        changed = {cause.flip.turn: cause for cause in self.changes}
        steps: dict[str, int] = {}
        held: dict[str, dict[int, Held]] = {}
        for index, turn in enumerate(case.turns):
            if turn.answer is None or turn.agent not in case.votes:
                continue
            step = steps.setdefault(_step(turn), len(steps))
            at = since_start(case, turn.ended_at)
            said = changed[index].said if index in changed else None
            given = Held(turn.answer, index, at, index in changed, said)
            held.setdefault(turn.agent, {})[step] = given
        rows = tuple(
            (
                self.roles[agent],
                self.colors[agent],
                tuple(of_agent.get(step) for step in range(len(steps))),
            )
            for agent, of_agent in held.items()
        )
        return Strip(tuple(steps), rows)

    @property
    def lanes(self) -> list[Lane]:
        """The timeline: a lane for each agent, in the order in which they appear."""
        case, whole = self.case, max(self.length, 1)
        lanes: dict[str, list[tuple[int, int, int, str]]] = {}
        for index, turn in enumerate(case.turns):
            start = since_start(case, turn.began_at)
            end = whole if turn.ended_at is None else since_start(case, turn.ended_at)
            what = f"{phase_in_words(turn.phase)}, {(end - start) / 1000:.1f} s"
            if turn.tokens:
                what += f", {turn.tokens:,} tokens"
            bar = (1000 * start // whole, max(4, 1000 * (end - start) // whole), index, what)
            lanes.setdefault(turn.agent, []).append(bar)
        spent = {agent: 0 for agent in lanes}
        for turn in case.turns:
            spent[turn.agent] += turn.tokens
        return [
            Lane(self.roles[agent], self.colors[agent], spent[agent], tuple(bars))
            for agent, bars in lanes.items()
        ]

    @property
    def length(self) -> int:
        """Ms from the start of the question to its latest event."""
        case = self.case
        times = [case.ended_at, *(made.at for made in case.summaries)]
        times += [at for turn in case.turns for at in (turn.began_at, turn.ended_at)]
        return max((since_start(case, at) for at in times), default=0)

    @cached_property
    def changes(self) -> Sequence[Cause]:
        """Changes of experts' answers, each with its cause."""
        return causes(self.case)

    def writers(self, cause: Cause) -> list[tuple[str, int | None]]:
        """Return (sender's role, turn index) of each message that came before a change."""
        return [(self.role(m.message.sender), m.said_in) for m in cause.messages]

    @property
    def deciding(self) -> int | None:
        """Index of the turn that decided the question; None if no turn did."""
        case = self.case
        for index in reversed(range(len(case.turns))):
            turn = case.turns[index]
            if turn.answer is not None and turn.agent not in case.votes:
                return index
        return None

    @property
    def tied(self) -> list[str]:
        """Other letters with as many votes as the answer, if votes decided; else empty."""
        held = Counter(self.case.votes.values())
        answer = self.case.ended.answer if self.case.ended else None
        if answer is None or self.deciding is not None:
            return []
        return sorted(one for one in held if one != answer and held[one] == held[answer])

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the page in order."""
        case, macro = self.case, partial(made_by, "question_parts.html")
        ended = sum(turn.ended_at is not None for turn in case.turns)
        told = (len(case.turns), ended, len(case.messages), case.ended, case.members)
        stands = (*told, self.is_at_work)
        yield Part("state", "verdict", (stands, case.routed), macro("state", self))
        yield Part("pictures", "top", case.pictures, macro("pictures", self))
        held = (tuple(case.votes.items()), case.ended, case.pictures)
        yield Part("options", "top", held, macro("options", self))
        yield Part("ladder", "top", tuple(rung.why for rung in case.rungs), macro("ladder", self))
        yield Part("panel", "middle", stands, macro("panel", self))
        yield Part("strip", "top", stands, macro("strip", self))
        yield Part(
            "lanes", "middle", (stands, case.tokens, len(case.summaries)), macro("lanes", self)
        )
        for number, title in self.sections:
            yield Part(f"section-{number}", "turns", title, macro("section", self, number, title))
        sent = Counter(message.said_in for message in case.messages)
        for index, turn in enumerate(case.turns):
            section, id_ = f"section-{self._sections[_section(turn)]}", f"turn-{index}"
            make = partial(self.turn, index)
            yield Part(id_, section, None, macro("turn", self, make), grows=turn.text)
            head = (
                turn.ended_at,
                turn.tokens,
                sent[index],
                self.roles[turn.agent],
                self.is_at_work,
            )
            yield Part(f"{id_}-head", id_, head, macro("turn_head", self, make))
            if turn.reasoning:
                yield Part(f"{id_}-thoughts", id_, turn.reasoning, macro("thoughts", make))
        for made in case.summaries:
            make_card = partial(self.card, made)
            yield Part(
                f"summary-{made.number}", "cards", made.of_turns, macro("card", self, make_card)
            )
        yield Part("decision", "end", (case.ended, len(case.flips)), macro("decision", self))


def _section(turn: Turn) -> str:
    return phase_in_words(turn.phase) or "turns"


def _step(turn: Turn) -> str:
    """Return the step in which a turn gave its answer, in a word or two."""
    if of_round := _UPDATE.fullmatch(turn.phase):
        return f"round {of_round[1]}"
    if turn.phase.endswith(("-synthesise", ": its report")):
        return "report"
    return {"opinion": "first", "sample": "answer"}.get(turn.phase, phase_in_words(turn.phase))
