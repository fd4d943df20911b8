"""What the page shows of one question, out of its record and, where there is one, its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from mdagents.scoring.cells import number, percent
from mdagents.scoring.fields import confidence_of, entries_of, object_of, options_of
from mdagents.scoring.rows import ScoredRow
from mdagents.transcripts import SpokenTurn, read_transcript, summaries_of

SUMMARY_FIELDS = {name: name.replace("_", " ") for name in LIMITS}
"""Field of a summary -> its heading."""


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
    """What one agent said in one go."""

    agent: str
    role: str
    """As people read it; empty when the record does not say."""
    at: str
    """Seconds from the first turn to the start of this one, `12.3 s`."""
    text: str
    summaries: tuple[AgentSummary, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """Somebody's answer to the question and the reason for it."""

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
class Transcript:
    """All that is shown of one question."""

    row: ScoredRow
    question: str
    options: tuple[Option, ...]
    figures: tuple[tuple[str, str], ...]
    """(what, how much)"""
    turns: tuple[ShownTurn, ...]
    """Empty when the run kept no trace."""
    summaries: tuple[AgentSummary, ...]
    """Those of EXAID that stand beside no turn, since there is none."""
    statements: tuple[Statement, ...]
    messages: tuple[Message, ...]
    teams: tuple[Mapping[str, Any], ...]
    """As in the record."""
    analysis: str
    notes: tuple[str, ...]
    """The error, what was repaired, and who was left out."""


def make_transcript(run: Path, record: Mapping[str, Any], row: ScoredRow) -> Transcript:
    """The transcript of a question.

    Args:
        run: Folder of the run; it need not be there.
        record: The record of the question, ours or a foreign program's.
        row: The same as it was scored.

    Raises:
        RecordError, ConfigError: The trace or a summary is there and cannot be read.
    """
    response = record.get("response")
    turns = _turns(read_transcript(run, record), entries_of(record, "opinions"))
    return Transcript(
        row=row,
        question=str(record.get("question", "")),
        options=_options(record, row),
        figures=_figures(record, row),
        turns=turns,
        summaries=() if turns else tuple(summaries_of(record)),
        statements=tuple(
            Statement(
                who=str(opinion.get("agent", "")),
                when=_round(opinion.get("round")),
                answer=str(opinion.get("answer", "")),
                confidence=percent(confidence_of(opinion.get("confidence"))),
                reasoning=str(opinion.get("reasoning", "")),
            )
            for opinion in entries_of(record, "opinions")
        ),
        messages=tuple(
            Message(
                when=f"round {message.get('round')}, turn {message.get('turn')}",
                sender=str(message.get("sender", "")),
                recipient=str(message.get("recipient", "")),
                text=str(message.get("text", "")),
            )
            for message in entries_of(record, "interactions")
        ),
        teams=tuple(entries_of(record, "teams")),
        analysis="\n\n".join(map(str, response.values()))
        if isinstance(response, dict)
        else str(response or ""),
        notes=_notes(record),
    )


def _options(record: Mapping[str, Any], row: ScoredRow) -> tuple[Option, ...]:
    votes = object_of(record, "votes")
    return tuple(
        Option(
            letter=letter,
            text=text,
            is_right=letter in row.right_letters,
            is_answer=letter == row.response,
            votes=int(votes.get(letter, 0)),
        )
        for letter, text in (options_of(record.get("options")) or {}).items()
    )


def _figures(record: Mapping[str, Any], row: ScoredRow) -> tuple[tuple[str, str], ...]:
    watched = object_of(record, "watched")
    exaid = row.exaid_tokens or None
    routed = " ".join(filter(None, [row.difficulty, f"({row.routed_by})" if row.routed_by else ""]))
    figures = {
        "level": routed or None,
        "confidence": row.confidence and percent(row.confidence),
        "tokens": row.total_tokens and number(row.total_tokens, ",.0f"),
        "calls": row.calls and number(row.calls, "d"),
        "USD": row.cost_usd and number(row.cost_usd, ".5f"),
        "seconds": row.wall_seconds and number(row.wall_seconds, ",.1f"),
        "EXAID tokens": exaid and number(exaid, ",.0f"),
        "EXAID tail loss": exaid and percent(watched.get("tail_loss")),
        "missed alerts": watched.get("missed_alerts") or None,
    }
    return tuple((name, str(value)) for name, value in figures.items() if value)


def _turns(
    turns: Sequence[SpokenTurn], opinions: Sequence[Mapping[str, Any]]
) -> tuple[ShownTurn, ...]:
    roles = {str(opinion.get("agent")): str(opinion.get("role", "")) for opinion in opinions}
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


def _round(value: object) -> str:
    return f"after round {value}" if value else "first"


def _notes(record: Mapping[str, Any]) -> tuple[str, ...]:
    left_out = [
        f"{turn.get('agent')} was left out in {turn.get('phase')}: {turn.get('error')}"
        for turn in entries_of(record, "left_out")
    ]
    repairs = record.get("repairs")
    error = record.get("error")
    watching = object_of(record, "watched").get("error")
    return (
        *([f"error: {error}"] if error else []),
        *left_out,
        *(map(str, repairs) if isinstance(repairs, list) else []),
        *([f"watching broke off: {watching}"] if watching else []),
    )
