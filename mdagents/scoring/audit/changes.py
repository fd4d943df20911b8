"""Changes of an expert's answer, and what the expert had read just before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from mdagents.scoring.audit.course import Course, Held, majority_of
from mdagents.scoring.audit.findings import Findings, wording
from mdagents.teams.digest import names_option


@dataclass(frozen=True, slots=True)
class Read:
    """A text that an expert read between two opinions: a message, or another's opinion."""

    sender: Held | None
    """Opinion of the sender at that time; None when none is recorded."""
    sender_id: str
    text: str
    is_message: bool
    place: int
    """Position among the messages, or among the opinions."""
    new_findings: int
    """Number of findings of the case in it that nobody had named before."""


@dataclass(frozen=True, slots=True)
class Restated:
    """An opinion that an expert stated again after it had read something, or nothing."""

    before: Held
    after: Held
    read: tuple[Read, ...]
    """What the expert read in between, in order."""
    causes: tuple[Read, ...]
    """Texts that argued for a new answer. Those whose sender held that answer and
    named it, else those whose sender held it, else those that named it; empty where nothing that
    was read argued for it."""
    others: str | None
    """Letter that more than half of the others held just before; None without one."""

    @property
    def is_change(self) -> bool:
        """Whether the answer changed."""
        return self.before.letter != self.after.letter

    @property
    def followed_majority(self) -> bool:
        """Whether the new answer is that of the majority of the others."""
        return self.is_change and self.others == self.after.letter

    def longest(self) -> Read | None:
        """Return the longest of at least two texts read; None for a tie."""
        return _only_largest([(len(each.text), each) for each in self.read])

    def most_confident(self) -> Read | None:
        """Return the text of the most confident of at least two senders; None for a tie."""
        sure = {
            each.sender_id: (each.sender.confidence, each)
            for each in self.read
            if each.sender is not None and each.sender.confidence is not None
        }
        return _only_largest(list(sure.values()))

    def first(self) -> Read | None:
        """Return the first of at least two texts read."""
        return self.read[0] if len(self.read) > 1 else None


def restated(course: Course, novelty: Novelty) -> list[Restated]:
    """Return each opinion that an expert stated again, in order; none for teams."""
    if course.is_teams:
        return []
    held: dict[str, Held] = {}
    found: list[Restated] = []
    for round_ in sorted({each.round for each in course.held}):
        before = dict(held)
        now = [each for each in course.held if each.round == round_]
        for each in now:
            earlier = held.get(each.agent)
            if earlier is not None and round_:
                read = tuple(_read(course, each, earlier, before, novelty))
                found.append(
                    Restated(
                        earlier,
                        each,
                        read,
                        _causes(course, earlier, each, read),
                        majority_of([h.letter for a, h in before.items() if a != each.agent]),
                    )
                )
        held.update({each.agent: each for each in now})
    return found


class Novelty:
    """The findings that each text is the first to name.

    Texts of one turn are written at the same time, so that each is compared with earlier turns.

    Args:
        course: The course of the question.
        findings: Findings of the case.
    """

    def __init__(self, course: Course, findings: Findings) -> None:
        self.of_message: dict[int, set[str]] = {}
        self.of_opinion: dict[int, set[str]] = {}
        said: set[str] = set()
        # Messages of a round come before the opinions that they lead to.
        turns: dict[tuple[int, float], list[tuple[dict[int, set[str]], int, str]]] = {}
        for message in course.messages:
            turn = turns.setdefault((message.round, message.turn), [])
            turn.append((self.of_message, message.place, message.text))
        for opinion in course.held:
            turn = turns.setdefault((opinion.round, inf), [])
            turn.append((self.of_opinion, opinion.place, opinion.text))
        for when in sorted(turns):
            new: set[str] = set()
            for kept, place, text in turns[when]:
                named = findings.named(wording(text))
                kept[place] = named - said
                new |= named
            said |= new


def _read(
    course: Course,
    after: Held,
    earlier: Held,
    before: dict[str, Held],
    novelty: Novelty,
) -> list[Read]:
    """Return what an expert read between two opinions.

    Args:
        course: The course of the question.
        after: The later opinion.
        earlier: The earlier one of the same expert.
        before: Opinion of each agent before the round.
        novelty: New findings of each text.
    """
    if course.by_messages:
        return [
            Read(
                before.get(message.sender),
                message.sender,
                message.text,
                True,
                message.place,
                len(novelty.of_message[message.place]),
            )
            for message in course.messages
            if message.recipient == after.agent and earlier.round < message.round <= after.round
        ]
    return [
        Read(held, agent, held.text, False, held.place, len(novelty.of_opinion[held.place]))
        for agent, held in before.items()
        if agent != after.agent
    ]


def _causes(course: Course, earlier: Held, after: Held, read: Sequence[Read]) -> tuple[Read, ...]:
    if earlier.letter == after.letter:
        return ()
    letter, text = after.letter, course.options[after.letter]

    def strength(each: Read) -> int:
        held = each.sender is not None and each.sender.letter == letter
        return 2 * held + names_option(each.text, letter, text)

    ranked = [(strength(each), each) for each in read]
    best = max((rank for rank, _ in ranked), default=0)
    return tuple(each for rank, each in ranked if best and rank == best)


def _only_largest(sized: Sequence[tuple[float, Read]]) -> Read | None:
    if len(sized) < 2:
        return None
    largest = max(size for size, _ in sized)
    of_that_size = [each for size, each in sized if size == largest]
    return of_that_size[0] if len(of_that_size) == 1 else None
