"""View model of a decided question, from its record, its trace and the ledger.

A record of another program, or one without a trace, has no times and may lack most other data;
its page shows the contents of the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mdagents.agents.events import DebateMessage, Ended, Rung
from mdagents.datasets.questions import Question
from mdagents.live.case import LiveCase, Made, Turn
from mdagents.live.replay import replayed
from mdagents.pages.question import QuestionPage
from mdagents.records.case_files import read_case
from mdagents.records.sample import SampleRecord
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
from mdagents.scoring.run_pictures import pictures_of_record
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.transcripts import OtherAttemptError, check_trace, summaries_of
from mdagents.settings import Difficulty
from mdagents_llm.ledger import CallRow

_NO_TRACE = "There is no trace of this answer: what follows is from its record."


@dataclass(frozen=True, slots=True)
class Recorded:
    """Contents of the page of a decided question."""

    page: QuestionPage
    figures: tuple[tuple[str, str], ...]
    """(name, value) of each figure."""
    notes: tuple[str, ...]
    """Notes for the top of the page: the error, missing files."""
    repairs: tuple[str, ...]
    """Replies that were repaired by rule, and turns that were left out."""
    analysis: str
    """Text of the decision."""
    ledger_trouble: str = ""
    """Why the ledger cannot be read, so that tokens and costs are unknown; empty if it can."""


def read_question(
    run: Path,
    record: Mapping[str, Any],
    row: ScoredRow,
    calls: Sequence[CallRow],
    pictures_at: str = "",
    *,
    ledger_trouble: str = "",
) -> Recorded:
    """Return the page contents of a question from its files.

    Args:
        run: Folder of the run, which may be missing.
        record: Record of the question, from this or another program.
        row: Scored row of the record.
        calls: Ledger rows of this answer.
        pictures_at: Address of the pictures in the run's folder; empty for a report.
        ledger_trouble: Why the ledger cannot be read; then tokens, calls and costs are left out.

    Raises:
        RecordError: The trace exists and cannot be read.
        ConfigError: A summary in the record cannot be read.
    """
    notes = _notes(record)
    if ledger_trouble:
        notes.append(f"The ledger is damaged: tokens and costs are unknown. {ledger_trouble}")
    case = None
    try:
        case = _replayed(run, record, calls)
    except OtherAttemptError as error:
        notes.append(str(error))
    except ValidationError:
        notes.append("the record is of another version of this program, without its turns")
    if case is None:
        notes.append(_NO_TRACE)
        case = case_of_record(record, row)
    votes = object_of(record, "votes")
    counted = {letter: count_of(count) or 0 for letter, count in votes.items()}
    page = QuestionPage(case, row.right_letters, counted, folder=run, pictures_at=pictures_at)
    return Recorded(
        page=page,
        figures=_figures(record, row, has_ledger=not ledger_trouble),
        notes=tuple(notes),
        repairs=tuple(_repairs(record, page)),
        analysis=response_text(record.get("response")),
        ledger_trouble=ledger_trouble,
    )


def _replayed(run: Path, record: Mapping[str, Any], calls: Sequence[CallRow]) -> LiveCase | None:
    """Return the case that a trace and a record tell; None without a trace."""
    trace = read_case(run, str(record.get("case_id")))
    if trace is None:
        return None
    summaries = summaries_of(record)
    check_trace(trace, summaries)
    sample = SampleRecord.model_validate(record)
    case = LiveCase((sample.question_id, sample.epoch))
    for line in replayed(sample, summaries, trace, calls):
        case.take(line)
    return case


def case_of_record(record: Mapping[str, Any], row: ScoredRow) -> LiveCase:
    """Return the case rebuilt from a record alone; all times are 0."""
    options = options_of(record.get("options")) or {}
    turns = [*_opinions(record), *_messages(record), *_teams(record)]
    case = LiveCase(
        row.item,
        Question(row.question_id, text_of(record, "question"), options, row.label, {}),
        started_at=0,
        turns=turns,
        ended=Ended(row.response if row.response in options else None, _error(record)),
        ended_at=0,
    )
    case.pictures = pictures_of_record(record)
    case.rungs = list(_rungs(record))
    case.summaries = [
        Made(number, summary, 0, ()) for number, summary in enumerate(summaries_of(record), start=1)
    ]
    for message in entries_of(record, "interactions"):
        case.deliver(_message(message), 0)
    for turn in turns:
        if turn.answer is not None:
            case.votes[turn.agent] = turn.answer
    return case


def _rungs(record: Mapping[str, Any]) -> Iterator[Rung]:
    levels = {level.value: level for level in Difficulty}
    for rung in entries_of(record, "rungs"):
        if level := levels.get(text_of(rung, "level")):
            yield Rung(level, {}, None, rung.get("decided") is True, text_of(rung, "why"))


def _turn(agent: str, role: str, phase: str, text: str, **more: Any) -> Turn:
    return Turn(agent, role or agent, phase, began_at=0, text=text, ended_at=0, **more)


def _opinions(record: Mapping[str, Any]) -> Iterator[Turn]:
    for opinion in entries_of(record, "opinions"):
        after = count_of(opinion.get("round"))
        yield _turn(
            text_of(opinion, "agent"),
            text_of(opinion, "role"),
            f"round-{after}-update" if after else "opinion",
            text_of(opinion, "reasoning"),
            answer=text_of(opinion, "answer") or None,
            confidence=confidence_of(opinion.get("confidence")),
        )


def _message(message: Mapping[str, Any]) -> DebateMessage:
    return DebateMessage(
        count_of(message.get("round")) or 0,
        count_of(message.get("turn")) or 0,
        text_of(message, "sender"),
        text_of(message, "recipient"),
        text_of(message, "text"),
    )


def _messages(record: Mapping[str, Any]) -> Iterator[Turn]:
    roles = {
        text_of(said, "agent"): text_of(said, "role") for said in entries_of(record, "opinions")
    }
    for message in map(_message, entries_of(record, "interactions")):
        phase = f"round-{message.round}-turn-{message.turn}"
        text = f"to {roles.get(message.recipient) or message.recipient}: {message.text}"
        yield _turn(message.sender, roles.get(message.sender, ""), phase, text)


def _teams(record: Mapping[str, Any]) -> Iterator[Turn]:
    for team in entries_of(record, "teams"):
        name = text_of(team, "name")
        task = "\n".join(filter(None, (text_of(team, "purpose"), text_of(team, "instructions"))))
        if task:
            yield _turn(name, name, f"{name}: its task", task)
        for found in entries_of(team, "investigations"):
            agent = text_of(found, "agent")
            yield _turn(agent, agent, f"{name}: investigating", text_of(found, "findings"))
        findings, dissent = text_of(team, "findings"), text_of(team, "dissent")
        yield _turn(
            name,
            name,
            f"{name}: its report",
            findings + (f"\n\nDissent: {dissent}" if dissent else ""),
            answer=text_of(team, "answer") or None,
        )


def _error(record: Mapping[str, Any]) -> str | None:
    return text_of(record, "error") or None


def _figures(
    record: Mapping[str, Any], row: ScoredRow, *, has_ledger: bool
) -> tuple[tuple[str, str], ...]:
    watched = object_of(record, "watched")
    routed_by = f" ({row.routed_by})" if row.routed_by else ""
    figures = [
        ("status", row.status),
        ("level", f"{row.difficulty}{routed_by}" if row.difficulty else UNKNOWN),
        ("confidence", percent(row.confidence)),
        ("tokens", number(row.total_tokens, ",.0f") if has_ledger else UNKNOWN),
        ("calls", number(row.calls, ",.0f") if has_ledger else UNKNOWN),
        ("USD", number(row.cost_usd, ".5f") if has_ledger else UNKNOWN),
        ("seconds", number(row.wall_seconds, ",.1f")),
    ]
    if row.exaid_tokens:
        figures += [
            ("EXAID tokens", number(row.exaid_tokens, ",.0f") if has_ledger else UNKNOWN),
            ("in no EXAID summary", percent(number_of(watched.get("tail_loss")))),
            ("missed alerts", number(count_of(watched.get("missed_alerts")), "d")),
        ]
    return tuple(figure for figure in figures if figure[1] != UNKNOWN)


def _notes(record: Mapping[str, Any]) -> list[str]:
    notes = []
    if error := _error(record):
        notes.append(f"error: {error}")
    if broken := text_of(object_of(record, "watched"), "error"):
        notes.append(f"EXAID or its trace broke off: {broken}")
    return notes


def _repairs(record: Mapping[str, Any], page: QuestionPage) -> Iterator[str]:
    for turn in entries_of(record, "left_out"):
        who, phase = page.role(text_of(turn, "agent")), text_of(turn, "phase")
        yield f"{who} was left out in {phase}: {text_of(turn, 'error')}"
    repairs = record.get("repairs")
    yield from map(str, repairs if isinstance(repairs, list) else [])
