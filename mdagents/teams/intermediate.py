"""The intermediate team: experts debate in rounds of turns, and a moderator decides.

Calls: 1 + N + N + 1 when no expert writes, 1 + N + R(T·N + N) + 1 when every expert always does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case
from mdagents.agents.events import DebateMessage, Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import REASON_WORDS, Opinion, Participation
from mdagents.datasets.questions import Question
from mdagents.settings import DebatePolicy, Peers, TeamRole, TeamSettings
from mdagents.teams.decision import Decision, Panelist, ReportedTeam, Stated
from mdagents.teams.declaration import Method
from mdagents.teams.digest import digest
from mdagents.teams.memory import memory
from mdagents.teams.peers import PeerView, defend
from mdagents.teams.recruitment import Profile, recruit_ranked_experts
from mdagents.teams.voting import by_majority

_DOCTORS = ("\N{MAN}", "\N{WOMAN}", "\N{ADULT}")
_TONES = ("", *(chr(0x1F3FB + i) for i in range(3)))
EMOJIS = [f"{doctor}{tone}\u200d\u2695\ufe0f" for tone in _TONES for doctor in _DOCTORS]
"""Health worker emojis, one for each expert of the largest panel."""


@Method(
    depth=lambda settings: 3 + settings.rounds * (settings.turns + 1),
    reads=(
        "debate_experts",
        "rounds",
        "turns",
        "debate_opinion_words",
        "message_words",
        "verdict_words",
    ),
    controls=True,
)
async def solve(case: Case, question: Question, settings: TeamSettings) -> Decision:
    """Recruit N experts, let them form opinions and debate, and let a moderator decide.

    Raises:
        ProviderError, StructuredOutputError: No expert replied, or the moderator did not.
    """
    profiles = await recruit_ranked_experts(case, settings.debate_experts)
    experts = [
        case.expert(f"expert-{number}", profile.role, _expertise(profile))
        for number, profile in enumerate(profiles, start=1)
    ]
    case.tell(
        Recruited(
            tuple(
                Member(expert.id, expert.role, profile.reports_to)
                for expert, profile in zip(experts, profiles, strict=True)
            )
        )
    )
    debate = Debate(case, question, settings, experts)
    await debate.form_opinions()
    above = [profile.reports_to for profile in profiles]
    if settings.debate_policy is DebatePolicy.AGREED and debate.is_settled():
        agreed = by_majority(debate.stated)
        return debate.decision(agreed.letter, agreed.analysis, above=above)
    defend(debate.experts, question, settings.peers)
    await debate.hold_rounds()

    moderator = case.decider("moderator", "Moderator", TeamRole.DECISION)
    verdict = await moderator.ask(
        render("moderate", words=settings.verdict_words, letters=question.letters),
        replies.verdict(question.letters, settings.verdict_words),
        phase="moderate",
        shared=f"{_hierarchy(profiles)}\n\n{debate.course()}",
    )
    return debate.decision(verdict.answer, verdict.analysis, above=above)


def _expertise(profile: Profile) -> str:
    if profile.reports_to is None:
        return profile.expertise
    return f"{profile.expertise} You defer to the {profile.reports_to} in matters of doubt."


def _hierarchy(profiles: Sequence[Profile]) -> str:
    ranks = [f"{p.role} reports to {p.reports_to}" for p in profiles if p.reports_to]
    return f"Hierarchy: {'; '.join(ranks) or 'all are independent'}."


@dataclass(slots=True)
class Debate:
    """The state of a debate. An expert whose first opinion failed takes no part in it."""

    case: Case
    question: Question
    settings: TeamSettings
    panel: list[Agent]
    """All recruited experts; an expert's number is its position in this list, from 1."""
    stated: list[Stated] = field(default_factory=list)
    messages: list[DebateMessage] = field(default_factory=list)
    dropped: int = 0
    _view: PeerView = field(init=False)

    def __post_init__(self) -> None:
        self._view = PeerView(
            self.settings.peers,
            self.question,
            {expert.id: f"Expert {number}" for number, expert in enumerate(self.panel, start=1)},
            {expert.id: expert.role for expert in self.panel},
        )

    @property
    def experts(self) -> list[Agent]:
        """Experts who have an opinion and so take part."""
        return [expert for expert in self.panel if expert.opinion is not None]

    async def form_opinions(self) -> None:
        """Let every expert judge alone, all at once."""
        words, letters = self.settings.debate_opinion_words, self.question.letters

        async def judge(expert: Agent) -> Opinion:
            task = render("opinion", words=words, letters=letters)
            return await expert.ask(task, replies.opinion(letters, words), phase="opinion")

        for expert, opinion in await self.case.ask_all(self.panel, "opinion", judge):
            self.state(expert, opinion, round_=0)

    async def hold_rounds(self) -> None:
        """Debate until a round is silent, all agree, or R rounds are over."""
        for round_ in range(1, self.settings.rounds + 1):
            before = self._answers()
            anyone_spoke = await self.hold_round(round_)
            if not anyone_spoke or self.is_settled():
                break
            changes_only = self.settings.debate_policy is DebatePolicy.CHANGING
            if changes_only and self._answers() == before:
                break

    async def hold_round(self, round_: int) -> bool:
        """Hold the turns of a round; then ask the recipients of messages for their opinion again.

        Returns:
            Whether any expert wrote a message.
        """
        received: dict[Agent, list[DebateMessage]] = {}
        for turn in range(1, self.settings.turns + 1):
            sent = await self._hold_turn(round_, turn)
            if not sent:
                break
            for message in map(self._view.message, sent):
                recipient = next(e for e in self.experts if e.id == message.recipient)
                received.setdefault(recipient, [])
                if self.settings.peers is Peers.NONE:
                    continue
                recipient.inbox.append(message)
                self.case.tell(message)
                received[recipient].append(message)
                self.messages.append(message)
        if received:
            await self._update_opinions(round_, received)
        return bool(received)

    def is_settled(self) -> bool:
        """Return whether all opinions agree and there are no unread messages."""
        answers = set(self._answers())
        return len(answers) == 1 and not any(expert.inbox for expert in self.experts)

    def _answers(self) -> list[str]:
        return [expert.opinion.answer for expert in self.experts if expert.opinion]

    def _speakers(self, round_: int, turn: int) -> list[Agent]:
        """Return who may write in a turn: with `minority-first`, at first only a minority."""
        answers = self._answers()
        majority = max(answers, key=answers.count)
        if (
            self.settings.debate_policy is not DebatePolicy.MINORITY_FIRST
            or (round_, turn) != (1, 1)
            or not len(answers) > answers.count(majority) > len(answers) / 2
        ):
            return self.experts
        return [e for e in self.experts if e.opinion and e.opinion.answer != majority]

    async def _hold_turn(self, round_: int, turn: int) -> list[DebateMessage]:
        """Ask all experts at once whether they write to anyone; return the messages."""
        if len(self.experts) < 2:
            return []
        phase = f"round-{round_}-turn-{turn}"

        async def take_part(expert: Agent) -> Participation:
            task = render(
                "participate",
                number=self._number(expert),
                count=len(self.panel),
                round=round_,
                turn=turn,
                reason_words=REASON_WORDS,
                words=self.settings.message_words,
            )
            return await expert.ask(
                self._own(expert, "Unread messages to you", expert.read_inbox(), task),
                replies.participation(len(self.panel), self.settings.message_words),
                phase=phase,
                shared=self.current_opinions(expert, addressed=True),
            )

        sent = []
        for expert, reply in await self.case.ask_all(
            self._speakers(round_, turn), phase, take_part, required=False
        ):
            if not reply.participate:
                continue
            for message in reply.messages:
                recipient = self.panel[message.to - 1]
                if recipient is expert or recipient not in self.experts:
                    self.dropped += 1
                    continue
                sent.append(DebateMessage(round_, turn, expert.id, recipient.id, message.text))
        return sent

    async def _update_opinions(
        self, round_: int, received: dict[Agent, list[DebateMessage]]
    ) -> None:
        words, letters = self.settings.debate_opinion_words, self.question.letters
        phase = f"round-{round_}-update"

        async def reconsider(expert: Agent) -> Opinion:
            expert.read_inbox()
            task = render(
                "update",
                number=self._number(expert),
                count=len(self.panel),
                round=round_,
                words=words,
                letters=letters,
            )
            return await expert.ask(
                self._own(expert, "Messages to you in this round", received[expert], task),
                replies.opinion(letters, words),
                phase=phase,
                shared=self.current_opinions(expert),
            )

        for expert, opinion in await self.case.ask_all(
            list(received), phase, reconsider, required=False
        ):
            self.state(expert, opinion, round_)

    def current_opinions(self, reader: Agent, *, addressed: bool = False) -> str:
        """Return the current opinion of every expert, by number: the shared state of a turn.

        Args:
            reader: Expert who reads it; only a control (`settings.peers`) makes a difference.
            addressed: Whether the reader may write to the others; without it, and without peers,
                an expert sees its own opinion only.
        """
        current = {stated.agent: stated for stated in self.stated}
        if self.settings.peers is Peers.NONE and not addressed:
            current = {reader.id: current[reader.id]}
        lines = [
            self._view.opinion(stated, reader.id, addressed=addressed)
            for stated in current.values()
        ]
        return "\n".join(["Current opinions:", *lines])

    def course(self) -> str:
        """Return the moderator's view: first and final opinions, and the digest of the debate."""
        view = self._view
        first = [stated for stated in self.stated if stated.round == 0]
        if self.settings.peers is Peers.FRESH:
            return "\n".join(["First opinions:", *map(view.opinion, first)])
        final = {stated.agent: stated for stated in self.stated}
        restated = [
            view.opinion(stated) if stated.round else f"- {view.name(stated.agent)}: as at first"
            for stated in final.values()
        ]
        blocks = [
            "\n".join(["First opinions:", *map(view.opinion, first)]),
            "\n".join(["Final opinions:", *restated]),
            digest(self.question.options, self.stated, self.messages, view.name),
        ]
        return "\n\n".join(blocks)

    def state(self, expert: Agent, opinion: Opinion, round_: int) -> None:
        """Record an expert's opinion after a round; round 0 is before the debate."""
        expert.opinion = opinion
        self.stated.append(Stated.by(expert, opinion, round_))

    def decision(
        self,
        letter: str,
        analysis: str,
        teams: Sequence[ReportedTeam] = (),
        *,
        above: Sequence[str | None] = (),
    ) -> Decision:
        """Return a decision that rests on this debate.

        Args:
            letter: Letter that was decided on.
            analysis: Argument for the letter.
            teams: Teams that took over from the debate.
            above: Role to which each expert reports; empty: all are independent.
        """
        return Decision(
            letter=letter,
            analysis=analysis,
            opinions=tuple(self.stated),
            panel=tuple(
                Panelist(expert.id, expert.role, emoji, reports_to)
                for expert, emoji, reports_to in zip(
                    self.panel, EMOJIS, above or [None] * len(self.panel), strict=False
                )
            ),
            messages=tuple(self.messages),
            dropped_messages=self.dropped,
            teams=tuple(teams),
        )

    def _own(self, expert: Agent, title: str, shown: Sequence[DebateMessage], task: str) -> str:
        """Return the prompt part for this expert only: new messages, its memory and its task."""
        name = partial(self._view.name, reader=expert.id)
        wrote = [m for m in self.messages if m.sender == expert.id]
        read = [m for m in self.messages if m.recipient == expert.id and m not in shown]
        letters = [f"- From {name(message.sender)}: {message.text}" for message in shown]
        unread = "\n".join([f"{title}:", *letters]) if letters else ""
        parts = (unread, memory(wrote, read, name), task)
        return "\n\n".join(part for part in parts if part)

    def _number(self, expert: Agent) -> int:
        return self.panel.index(expert) + 1
