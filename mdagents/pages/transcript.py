"""What the page shows of one question, from its record and, if there is one, its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exaid_core.schema.agent_summary import AgentSummary
from mdagents.scoring.fields import (
    confidence_of,
    count_of,
    entries_of,
    number_of,
    object_of,
    options_of,
    response_text,
    text_of,
)
from mdagents.scoring.formatting import UNKNOWN, number, percent
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.transcripts import (
    OtherAttemptError,
    TranscriptTurn,
    read_transcript,
    summaries_of,
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option as it was presented."""

    letter: str
    text: str
    is_right: bool
    is_answer: bool
    votes: int
    """Experts or teams who hold it at the end."""


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn of an agent."""

    agent: str
    role: str
    """The name for readers; empty when the record does not state it."""
    at: str
    """Seconds from the first turn to the start of this one, `12.3 s`."""
    text: str
    summaries: tuple[AgentSummary, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """An agent's answer to the question and the reason for it."""

    who: str
    when: str
    answer: str
    confidence: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class Message:
    """From one expert to another."""

    when: str
    sender: str
    recipient: str
    text: str


@dataclass(frozen=True, slots=True)
class Team:
    """A multidisciplinary team and what it reported."""

    name: str
    purpose: str
    instructions: str
    investigations: tuple[tuple[str, str], ...]
    """(who, findings)"""
    findings: str
    answer: str
    dissent: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that is shown of one question."""

    status: str
    question: str
    options: tuple[Option, ...]
    figures: tuple[tuple[str, str], ...]
    """(what, how much)"""
    turns: tuple[ShownTurn, ...]
    """Empty when there is no trace of this record."""
    summaries: tuple[AgentSummary, ...]
    """EXAID's summaries without a turn, for a record without a trace."""
    statements: tuple[Statement, ...]
    messages: tuple[Message, ...]
    teams: tuple[Team, ...]
    analysis: str
    notes: tuple[str, ...]
    """The error, what was repaired, and who was left out."""


def make_transcript(run: Path, record: Mapping[str, Any], row: ScoredRow) -> Transcript:
    """Make the transcript of a question.

    Args:
        run: Folder of the run, which may be missing.
        record: The record of the question, ours or another program's.
        row: The same as it was scored.

    Raises:
        RecordError: The trace is there and cannot be read.
        ConfigError: A summary in the record cannot be read.
    """
    opinions = entries_of(record, "opinions")
    turns: tuple[ShownTurn, ...] = ()
    notes = _notes(record)
    try:
        turns = _turns(read_transcript(run, record), opinions)
    except OtherAttemptError as error:
        notes.append(str(error))
    return Transcript(
        status=row.status,
        question=text_of(record, "question"),
        options=_options(record, row),
        figures=_figures(record, row),
        turns=turns,
        summaries=() if turns else tuple(summaries_of(record)),
        statements=tuple(map(_statement, opinions)),
        messages=tuple(map(_message, entries_of(record, "interactions"))),
        teams=tuple(map(_team, entries_of(record, "teams"))),
        analysis=response_text(record.get("response")),
        notes=tuple(notes),
    )


def _options(record: Mapping[str, Any], row: ScoredRow) -> tuple[Option, ...]:
    votes = object_of(record, "votes")
    return tuple(
        Option(
            letter=letter,
            text=text,
            is_right=letter in row.right_letters,
            is_answer=letter == row.response,
            votes=count_of(votes.get(letter)) or 0,
        )
        for letter, text in (options_of(record.get("options")) or {}).items()
    )


def _figures(record: Mapping[str, Any], row: ScoredRow) -> tuple[tuple[str, str], ...]:
    watched = object_of(record, "watched")
    routed_by = f"({row.routed_by})" if row.routed_by else ""
    figures = [
        ("level", " ".join(filter(None, [row.difficulty, routed_by])) or UNKNOWN),
        ("confidence", percent(row.confidence)),
        ("tokens", number(row.total_tokens, ",.0f")),
        ("calls", number(row.calls, ",.0f")),
        ("USD", number(row.cost_usd, ".5f")),
        ("seconds", number(row.wall_seconds, ",.1f")),
    ]
    if row.exaid_tokens:
        figures += [
            ("EXAID tokens", number(row.exaid_tokens, ",.0f")),
            ("in no EXAID summary", percent(number_of(watched.get("tail_loss")))),
            ("missed alerts", number(count_of(watched.get("missed_alerts")), "d")),
        ]
    return tuple(figure for figure in figures if figure[1] != UNKNOWN)


def _turns(
    turns: Sequence[TranscriptTurn], opinions: Sequence[Mapping[str, Any]]
) -> tuple[ShownTurn, ...]:
    roles = {text_of(opinion, "agent"): text_of(opinion, "role") for opinion in opinions}
    return tuple(
        ShownTurn(
            agent=turn.agent,
            role=roles.get(turn.agent, ""),
            at=f"{(turn.started_ms - turns[0].started_ms) / 1000:.1f} s",
            text=turn.text,
            summaries=turn.summaries,
        )
        for turn in turns
    )


def _statement(opinion: Mapping[str, Any]) -> Statement:
    after = count_of(opinion.get("round"))
    return Statement(
        who=text_of(opinion, "agent"),
        when=f"after round {after}" if after else "first",
        answer=text_of(opinion, "answer"),
        confidence=percent(confidence_of(opinion.get("confidence"))),
        reasoning=text_of(opinion, "reasoning"),
    )


def _message(message: Mapping[str, Any]) -> Message:
    places = [
        f"{name} {place}"
        for name in ("round", "turn")
        if (place := count_of(message.get(name))) is not None
    ]
    return Message(
        when=", ".join(places),
        sender=text_of(message, "sender"),
        recipient=text_of(message, "recipient"),
        text=text_of(message, "text"),
    )


def _team(team: Mapping[str, Any]) -> Team:
    return Team(
        name=text_of(team, "name"),
        purpose=text_of(team, "purpose"),
        instructions=text_of(team, "instructions"),
        investigations=tuple(
            (text_of(found, "agent"), text_of(found, "findings"))
            for found in entries_of(team, "investigations")
        ),
        findings=text_of(team, "findings"),
        answer=text_of(team, "answer"),
        dissent=text_of(team, "dissent"),
    )


def _notes(record: Mapping[str, Any]) -> list[str]:
    notes = []
    if error := text_of(record, "error"):
        notes.append(f"error: {error}")
    for turn in entries_of(record, "left_out"):
        who, phase = text_of(turn, "agent"), text_of(turn, "phase")
        notes.append(f"{who} was left out in {phase}: {text_of(turn, 'error')}")
    repairs = record.get("repairs")
    notes += map(str, repairs if isinstance(repairs, list) else [])
    if broken := text_of(object_of(record, "watched"), "error"):
        notes.append(f"EXAID or its trace broke off: {broken}")
    return notes
