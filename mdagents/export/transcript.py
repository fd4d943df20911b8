"""What happened while a question was answered, as spans: init, solvers, scorers.

In `solvers` is one span for the case, in it one for each turn of an agent, in that its calls. A
summary of EXAID follows the turn that holds the newest text that it covers; the calls of EXAID
have a span of their own, the last one. Phases are not spans: the viewer dissolves spans with
agents, and would show the summaries apart from the turns. Each turn names its phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.export.calls import Call
from mdagents.export.events import Event, Span, around, info, model_call
from mdagents.export.from_record import said_in_record, summaries_in_record
from mdagents.export.matching import calls_by_turn
from mdagents.scoring.transcripts import TranscriptTurn

EXAID = "exaid"
_Items = list[Span | Event]


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known of how a question was answered."""

    record: Mapping[str, Any]
    turns: Sequence[TranscriptTurn]
    """Empty without a trace."""
    calls: Sequence[Call]
    """Of the attempt that the record is of."""
    other_attempts: Sequence[Sequence[Call]]
    """Calls of attempts whose record was replaced, or was never written."""
    default_ms: int
    """When it was, in ms since 1970 UTC, if there are neither turns nor calls."""

    @property
    def first_ms(self) -> int:
        """When it began, in ms since 1970 UTC."""
        return min([turn.started_ms for turn in self.turns], default=self._first_call_ms)

    @property
    def _first_call_ms(self) -> int:
        return min([call.started_ms for call in self.calls], default=self.default_ms)


def case_span(name: str, sources: Sources) -> Span:
    """Return all that was done for a question.

    Args:
        name: Of the span.
        sources: What is known.
    """
    groups = _turns_and_calls(sources)
    if not sources.turns:
        at = sources.first_ms
        groups += [[span] for span in said_in_record(sources.record, at)]
        groups += [[info(at, EXAID, summary)] for summary in summaries_in_record(sources.record)]
    for number, attempt in enumerate(sources.other_attempts, start=1):
        calls = [model_call(call, "", None) for call in attempt]
        groups.append([around(f"other attempt {number}", "attempt", calls, sources.first_ms)])
    items = [*_in_order(groups), *_of_exaid(sources)]
    return around(name, "agent", items, sources.first_ms)


def _turns_and_calls(sources: Sources) -> list[_Items]:
    turns, calls = sources.turns, sources.calls
    placed, nowhere = calls_by_turn(turns, [call for call in calls if not call.of_exaid])
    within = _span_of(turns)
    groups: list[_Items] = [[model_call(call, "", within)] for call in nowhere]
    for turn, of_turn in zip(turns, placed, strict=True):
        notes = [
            info(turn.ended_ms, EXAID, summary.model_dump(mode="json"))
            for summary in turn.summaries
        ]
        groups.append([_turn(turn, of_turn), *notes])  # a turn and its summaries stay together
    return groups


def _of_exaid(sources: Sources) -> list[Span]:
    within = _span_of(sources.turns)
    calls = [model_call(call, "", within) for call in sources.calls if call.of_exaid]
    return [around(EXAID, "agent", calls, sources.first_ms)] if calls else []


def _span_of(turns: Sequence[TranscriptTurn]) -> tuple[int, int] | None:
    return (turns[0].started_ms, max(turn.ended_ms for turn in turns)) if turns else None


def _in_order(groups: Sequence[_Items]) -> _Items:
    return [item for group in sorted(groups, key=lambda g: g[0].start_ms) for item in group]


def _turn(turn: TranscriptTurn, calls: Sequence[Call]) -> Span:
    within = (turn.started_ms, turn.ended_ms)
    speaker = max((n for n, call in enumerate(calls) if call.replied), default=None)
    items = [
        model_call(call, turn.text if number == speaker else "", within)
        for number, call in enumerate(calls)
    ]
    if speaker is None and turn.text:
        items.append(info(turn.ended_ms, turn.agent, turn.text))
    phase = calls[0].phase if calls else ""
    return Span(turn.agent, "agent", *within, items, phase)
