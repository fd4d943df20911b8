"""The course of a question through its team: opinions, messages and decision, as recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from exaid_core.schema.agent_summary import LIMITS
from mdagents.scoring.fields import (
    REVIEW,
    confidence_of,
    count_of,
    entries_of,
    object_of,
    options_of,
    response_text,
    text_of,
)
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status


@dataclass(frozen=True, slots=True)
class Held:
    """An opinion of an expert, or the conclusion of a multidisciplinary team."""

    agent: str
    role: str
    round: int
    """0: before it had read any other; a review team, which reads the others, has 1."""
    letter: str
    """Presented letter; of options with the same text, one for all."""
    confidence: float | None
    """As stated, 0 to 1; None for a team and where the record lacks it."""
    text: str
    place: int
    """Position in the record's `opinions`, or in `teams` where there are no experts."""


@dataclass(frozen=True, slots=True)
class Message:
    """A debate message that was delivered."""

    round: int
    turn: int
    sender: str
    recipient: str
    text: str
    place: int
    """Position in the record's `interactions`."""


@dataclass(frozen=True)
class Course:
    """What a team did with a question."""

    question_id: str
    epoch: int
    level: str
    question: str
    options: Mapping[str, str]
    right: frozenset[str]
    """Presented letters that count as right."""
    decision: str
    """Presented letter."""
    analysis: str
    """Argument of the decision."""
    summaries: tuple[str, ...]
    """Texts of EXAID's summaries."""
    held: tuple[Held, ...]
    """In the order in which the opinions were stated."""
    messages: tuple[Message, ...]
    """In the order of delivery."""
    above: Mapping[str, str]
    """`agent` -> `agent` of the expert it reports to."""
    by_messages: bool
    """Whether experts wrote to each other; otherwise each round shows them all opinions."""
    is_teams: bool
    """Whether the opinions are those of multidisciplinary teams."""

    @cached_property
    def first(self) -> dict[str, Held]:
        """The first opinion of each agent that had one before it read others."""
        first: dict[str, Held] = {}
        for each in self.held:
            if each.round == 0:
                first.setdefault(each.agent, each)
        return first

    @cached_property
    def last(self) -> dict[str, Held]:
        """The last opinion of each agent."""
        return {each.agent: each for each in self.held}

    @property
    def is_right(self) -> bool:
        """Whether the decision is right."""
        return self.decision in self.right


def course_of(row: ScoredRow, record: Mapping[str, Any]) -> Course | None:
    """Return the course of an answered question with at least two first opinions.

    None for any other question, and where the right option is not known.
    """
    if row.status != Status.ANSWERED or not row.right_letters or not row.response:
        return None
    options = options_of(record.get("options"))
    if not options:
        return None
    held = _opinions(record, options)
    is_teams = not held
    held = held or _conclusions(record, options)
    if row.alike:
        held = [replace(each, letter=row.one_of(each.letter)) for each in held]
    course = Course(
        question_id=row.question_id,
        epoch=row.epoch,
        level=row.difficulty,
        question=text_of(record, "question"),
        options=options,
        right=frozenset(row.right_letters),
        decision=row.response,
        analysis=_analysis(record),
        summaries=tuple(_summaries(record)),
        held=tuple(held),
        messages=tuple(_messages(record)),
        above=_above(record),
        by_messages=bool(record.get("panel")),
        is_teams=is_teams,
    )
    return course if len(course.first) > 1 else None


def majority_of(letters: Sequence[str]) -> str | None:
    """Return the letter that more than half hold; None without one."""
    if not letters:
        return None
    letter = max(letters, key=letters.count)
    return letter if letters.count(letter) * 2 > len(letters) else None


def _opinions(record: Mapping[str, Any], options: Mapping[str, str]) -> list[Held]:
    return [
        Held(
            agent=text_of(stated, "agent") or str(place),
            role=text_of(stated, "role"),
            round=count_of(stated.get("round")) or 0,
            letter=letter,
            confidence=confidence_of(stated.get("confidence")),
            text=text_of(stated, "reasoning"),
            place=place,
        )
        for place, stated in enumerate(entries_of(record, "opinions"))
        if (letter := text_of(stated, "answer")) in options
    ]


def _conclusions(record: Mapping[str, Any], options: Mapping[str, str]) -> list[Held]:
    """Return the conclusions of teams; a lone review team has read nobody."""
    reports = entries_of(record, "teams")
    assessed = any(report.get("kind") != REVIEW for report in reports)
    return [
        Held(
            agent=text_of(report, "name") or str(place),
            role=text_of(report, "name"),
            round=int(assessed and report.get("kind") == REVIEW),
            letter=letter,
            confidence=None,
            text=text_of(report, "findings"),
            place=place,
        )
        for place, report in enumerate(reports)
        if (letter := text_of(report, "answer")) in options
    ]


def _messages(record: Mapping[str, Any]) -> list[Message]:
    return [
        Message(
            round=count_of(message.get("round")) or 0,
            turn=count_of(message.get("turn")) or 0,
            sender=text_of(message, "sender"),
            recipient=text_of(message, "recipient"),
            text=text_of(message, "text"),
            place=place,
        )
        for place, message in enumerate(entries_of(record, "interactions"))
    ]


def _above(record: Mapping[str, Any]) -> dict[str, str]:
    panel = entries_of(record, "panel")
    by_role = {text_of(member, "role"): text_of(member, "agent") for member in panel}
    return {
        text_of(member, "agent"): by_role[text_of(member, "reports_to")]
        for member in panel
        if text_of(member, "reports_to") in by_role
    }


def _analysis(record: Mapping[str, Any]) -> str:
    """Return the argument of the decision; empty where the record states the answer alone."""
    if isinstance(record.get("analysis"), str):
        return text_of(record, "analysis")
    response = record.get("response")
    return text_of(response, "analysis") if isinstance(response, dict) else response_text(response)


def _summaries(record: Mapping[str, Any]) -> list[str]:
    return [
        "\n".join(text_of(summary, name) for name in LIMITS)
        for summary in entries_of(object_of(record, "exaid"), "summaries")
    ]
