"""The turns of a finished case in the order in which they began, with EXAID's summaries of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.traces import Trace, read_trace
from mdagents.records.folder import case_files
from mdagents.scoring.fields import entries_of, object_of
from mdagents_llm.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """One turn of an agent."""

    agent: str
    """`agent_id`"""
    started_ms: int
    """In ms since 1970 UTC."""
    ended_ms: int
    text: str
    """Empty when the turn failed before any text."""
    summaries: tuple[AgentSummary, ...]
    """Those whose newest text is of this turn, in the order in which they were made."""


class OtherAttemptError(ConfigError):
    """A trace is of another attempt at its question than the record.

    An interrupted `--retry-errors` of an earlier version could leave that behind, and so can a kill
    between the trace and its record.
    """


def read_transcript(run: Path, record: Mapping[str, Any]) -> list[TranscriptTurn]:
    """Return the turns of a question that a run of this program answered.

    Args:
        run: Folder of the run.
        record: Of the question, with `case_id` and `exaid.summaries`.

    Returns:
        The turns in the order in which they began; empty when the run kept no trace of the case.

    Raises:
        RecordError: The trace is there and cannot be read.
        ConfigError: A summary in the record cannot be read.
        OtherAttemptError: The trace is not of this record.
    """
    path, _ = case_files(run, str(record.get("case_id")))
    if not path.is_file():
        return []
    trace = read_trace(path)
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
        ConfigError: One of them is not a valid summary.
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


def trace_is_of(trace: Trace, summaries: Sequence[AgentSummary]) -> None:
    """Check that the summaries of a record were made from a trace.

    Raises:
        OtherAttemptError: The trace is not of this record.
    """
    _by_turn(trace, summaries)


def _by_turn(trace: Trace, summaries: Sequence[AgentSummary]) -> dict[int, list[AgentSummary]]:
    """Return turn_id -> summaries whose newest text is of that turn."""
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
