"""The turns of a finished case in order of their start, each with EXAID's summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.traces import Trace
from mdagents.records.case_files import read_case
from mdagents.scoring.fields import entries_of, object_of
from mdagents_llm.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """One turn of an agent."""

    agent: str
    """Id of the agent (`agent_id`)."""
    started_ms: int
    """Start of the turn in ms since 1970 UTC."""
    ended_ms: int
    text: str
    """Text of the turn; empty when the turn failed before any text."""
    summaries: tuple[AgentSummary, ...]
    """Summaries whose newest text is from this turn, in order of creation."""


class OtherAttemptError(ConfigError):
    """A trace and a record that stem from different attempts at a question.

    The cause is an interrupted `--retry-errors` of an earlier version, or a kill between writing
    the trace and its record.
    """


def read_transcript(run: Path, record: Mapping[str, Any]) -> list[TranscriptTurn]:
    """Return the turns of a question that a run of this program answered.

    Args:
        run: Folder of the run.
        record: Record of the question, with `case_id` and `exaid.summaries`.

    Returns:
        The turns in order of their start; empty when the run has no trace of the case.

    Raises:
        RecordError: The trace exists and cannot be read.
        ConfigError: A summary in the record cannot be read.
        OtherAttemptError: The trace belongs to another attempt than the record.
    """
    trace = read_case(run, str(record.get("case_id")))
    if trace is None:
        return []
    summaries = _by_turn(trace, summaries_of(record))
    return [
        TranscriptTurn(
            agent=turn.agent_id,
            started_ms=turn.start_ms,
            ended_ms=turn.end_ms,
            text=turn.text.strip(),
            summaries=tuple(summaries.get(turn.turn_id, ())),
        )
        for turn in trace.turns
    ]


def summaries_of(record: Mapping[str, Any]) -> list[AgentSummary]:
    """Return EXAID's summaries of a question, in order; empty for another program's record.

    Raises:
        ConfigError: A summary is invalid.
    """
    try:
        return [
            AgentSummary.model_validate({k: v for k, v in summary.items() if k != "event_id"})
            for summary in entries_of(object_of(record, "exaid"), "summaries")
        ]
    except ValidationError as error:
        raise ConfigError(
            f"question {record.get('question_id')}: exaid.summaries cannot be read "
            f"({type(error).__name__})"
        ) from error


def check_trace(trace: Trace, summaries: Sequence[AgentSummary]) -> None:
    """Check that the summaries of a record were made from a trace.

    Raises:
        OtherAttemptError: The trace belongs to another attempt than the record.
    """
    _by_turn(trace, summaries)


def _by_turn(trace: Trace, summaries: Sequence[AgentSummary]) -> dict[int, list[AgentSummary]]:
    """Return turn_id -> summaries whose newest text is from that turn."""
    said = {event.seq: event for event in trace.events}
    placed: dict[int, list[AgentSummary]] = {}
    for summary in summaries:
        newest = max((end for _, end in summary.source_seqs), default=None)
        event = None if newest is None else said.get(newest)
        if event is None or event.agent_id not in summary.agents:
            raise OtherAttemptError(
                f"{trace.meta.case_id}: its trace is not of this record: a summary is of an event "
                f"{newest} of {', '.join(summary.agents) or 'nobody'}, which it does not hold"
            )
        placed.setdefault(event.turn_id, []).append(summary)
    return placed
