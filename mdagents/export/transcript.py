"""Transcript of a question as one span.

It contains a span for each turn of an agent, which contains the calls of the turn. A summary of
EXAID follows the turn with the latest text that it covers; the calls of EXAID form the last span.
Phases are not spans: the viewer dissolves spans with agents, and would show the summaries apart
from the turns. Each turn names its phase instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from inspect_ai.event import Event, InfoEvent
from inspect_ai.model import Content

from mdagents.agents.case import sees_pictures
from mdagents.export.pictures import SamplePictures
from mdagents.export.spans import Span, around, model_call, time_of
from mdagents.scoring.case_calls import is_of_exaid
from mdagents.scoring.fields import count_of, entries_of, object_of
from mdagents.scoring.matching import calls_by_turn
from mdagents.scoring.transcripts import TranscriptTurn
from mdagents.settings import ImageAgents
from mdagents_llm.ledger import CallRow

EXAID = "exaid"
_Items = list[Span | Event]


@dataclass(frozen=True, slots=True)
class Sources:
    """Data about how a question was answered."""

    record: Mapping[str, Any]
    turns: Sequence[TranscriptTurn]
    """Turns of the trace; empty without one."""
    calls: Sequence[CallRow]
    """Calls of the attempt that produced the record."""
    other_attempts: Sequence[Sequence[CallRow]]
    """Calls of attempts whose record was replaced, or was never written."""
    default_ms: int
    """Time of the question without turns and calls, in ms since 1970 UTC."""
    pictures: SamplePictures = field(default_factory=SamplePictures)
    image_agents: ImageAgents = ImageAgents.ALL
    """Agents that saw the pictures."""

    @property
    def first(self) -> datetime:
        """Start of the question."""
        times = [item.started_ms for item in self.turns or self.calls]
        return time_of(min(times, default=self.default_ms))

    def seen_by(self, call: CallRow) -> Sequence[Content]:
        """Return the pictures in the prompt of a call."""
        return self.pictures.content if sees_pictures(call.role, self.image_agents) else ()

    @property
    def within(self) -> tuple[int, int] | None:
        """Start and end of the trace, in ms since 1970 UTC; None without one."""
        if not self.turns:
            return None
        return self.turns[0].started_ms, max(turn.ended_ms for turn in self.turns)


def case_span(name: str, sources: Sources) -> Span:
    """Return the span of a question, named after its level or solver."""
    first, within = sources.first, sources.within
    of_team = [call for call in sources.calls if not is_of_exaid(call)]
    placed, nowhere = calls_by_turn(sources.turns, of_team)
    groups: list[_Items] = [
        [model_call(call, "", within, sources.seen_by(call))] for call in nowhere
    ]
    for turn, calls in zip(sources.turns, placed, strict=True):
        at = time_of(turn.ended_ms)
        notes = [
            InfoEvent(timestamp=at, source=EXAID, data=summary.model_dump(mode="json"))
            for summary in turn.summaries
        ]
        groups.append(
            [_turn(turn, calls, sources), *notes]
        )  # a turn and its summaries stay together
    if not sources.turns:
        groups += [[item] for item in _of_record(sources.record, first)]
    for number, attempt in enumerate(sources.other_attempts, start=1):
        events = [
            model_call(call, "", None, () if is_of_exaid(call) else sources.seen_by(call))
            for call in attempt
        ]
        groups.append([around(f"other attempt {number}", "attempt", events, first)])
    groups.sort(key=lambda group: group[0].timestamp)
    of_exaid = [model_call(call, "", within) for call in sources.calls if is_of_exaid(call)]
    if of_exaid:
        groups.append([around(EXAID, "agent", of_exaid, first)])
    return around(name, "agent", [item for group in groups for item in group], first)


def _turn(turn: TranscriptTurn, calls: Sequence[CallRow], sources: Sources) -> Span:
    within = (turn.started_ms, turn.ended_ms)
    start, end = map(time_of, within)
    speaker = max((n for n, call in enumerate(calls) if call.is_usable), default=None)
    items: _Items = [
        model_call(call, turn.text if number == speaker else "", within, sources.seen_by(call))
        for number, call in enumerate(calls)
    ]
    if speaker is None and turn.text:
        items.append(InfoEvent(timestamp=end, source=turn.agent, data=turn.text))
    return Span(turn.agent, "agent", start, end, items, calls[0].phase if calls else "")


def _of_record(record: Mapping[str, Any], at: datetime) -> _Items:
    """Return a record's own contents: a span for each round and team, and the summaries."""
    rounds: dict[int, list[Span]] = {}
    for speaker, stated_in in (("sender", "interactions"), ("agent", "opinions")):
        for stated in entries_of(record, stated_in):
            number = count_of(stated.get("round")) or 0
            rounds.setdefault(number, []).append(_said(stated.get(speaker), stated, at))
    items: _Items = [
        Span(f"round {n}", "round", at, at, said) for n, said in sorted(rounds.items())
    ]
    for report in entries_of(record, "teams"):
        members = report.get("members")
        lead = members[0] if isinstance(members, list) and members else "lead"
        conclusion = {k: v for k, v in report.items() if k not in ("investigations", "members")}
        found = [_said(f.get("agent"), f, at) for f in entries_of(report, "investigations")]
        said = [*found, _said(lead, conclusion, at)]
        items.append(Span(str(report.get("name", "team")), "team", at, at, said))
    summaries = entries_of(object_of(record, EXAID), "summaries")
    return [
        *items,
        *(InfoEvent(timestamp=at, source=EXAID, data=dict(summary)) for summary in summaries),
    ]


def _said(agent: object, what: Mapping[str, Any], at: datetime) -> Span:
    return Span(
        str(agent), "agent", at, at, [InfoEvent(timestamp=at, source=str(agent), data=dict(what))]
    )
