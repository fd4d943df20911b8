"""Rebuilds the feed of a finished question from its record, its trace and the ledger.

One page can then show a question both live and afterwards, and can replay it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.traces import Trace, Turn
from mdagents.agents.events import (
    Ended,
    Member,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.live.lines import Charged, FeedLine, Happening, Pictured, Words
from mdagents.records.sample import SampleRecord
from mdagents.scoring.case_calls import is_of_exaid
from mdagents.scoring.matching import calls_by_turn
from mdagents.scoring.transcripts import TranscriptTurn
from mdagents.settings import Difficulty, RoutedBy
from mdagents_llm.config import LLMRole
from mdagents_llm.ledger import CallRow

_OF_A_ROUND = re.compile(r"round-(\d+)-update|revise-(\d+)")
_NUMBERED = re.compile(r"(?:iat|frdt|mdt\d+|expert)-\d+-")
_RUNG_OF = {
    Difficulty.BASIC: re.compile("opinion"),
    Difficulty.INTERMEDIATE: re.compile("round-"),
    Difficulty.ADVANCED: re.compile("coordinate"),
}
"""Level -> pattern of the phases in which its team answers."""
_DECIDE = ("arbitrate", "moderate", "coordinate", "decide", "answer")


@dataclass(frozen=True, slots=True)
class _Told:
    """A turn with its step of the protocol."""

    turn: Turn
    phase: str
    """Phase of the turn's calls; empty if the ledger does not have them."""


def replayed(
    record: SampleRecord, made: Sequence[AgentSummary], trace: Trace, calls: Sequence[CallRow]
) -> list[FeedLine]:
    """Return the rebuilt feed of a question in order, with the times of its trace.

    Args:
        record: Record of the question.
        made: EXAID's summaries in the record, in order.
        trace: Trace of the case.
        calls: Ledger rows of the case, in order; they supply the phases.
    """
    told = _with_phases(trace.turns, calls)
    made_at = list(_made_at(made, told, calls))
    roles = {p.agent: p.role for p in record.panel} | {o.agent: o.role for o in record.opinions}
    happened: list[tuple[int, Happening]] = [(_start(told), Started(_question(record)))]
    if record.pictures:
        happened.append((_start(told), Pictured(tuple(record.pictures))))
    if record.routed_by is not None and not record.rungs:
        level = Difficulty(record.difficulty) if record.difficulty else None
        by = RoutedBy(record.routed_by)
        happened.append((_end_of(told, "route"), Routed(level, by, record.routing_reason)))
    happened += _recruited(told, record, roles)
    for one in told:
        happened += _turn(one, record, roles, sorted(made_at))
    happened += _climbed(told, record)
    for message in record.interactions:
        phase = f"round-{message.round}-turn-{message.turn}"
        happened.append((_end_of(told, phase), message))
    for number, (summary, at) in enumerate(zip(made, made_at, strict=True), 1):
        happened.append((at, Summarised(number, summary)))
    ends = {(one.turn.agent_id, one.phase): one.turn.end_ms for one in told}
    start = _start(told)
    happened += [_charged(call, ends, start) for call in calls if call.replied]
    end = max((one.turn.end_ms for one in told), default=0)
    happened.append((end, Ended(record.predicted, record.error)))
    happened.sort(key=lambda entry: entry[0])
    item = record.question_id, record.epoch
    return [FeedLine(n, at, item, what) for n, (at, what) in enumerate(happened, start=1)]


def replayed_trace(trace: Trace, summaries: Sequence[tuple[int, AgentSummary]]) -> list[FeedLine]:
    """Return the feed of a trace without a record: turns and summaries, no question or answer.

    Args:
        trace: Trace of the case.
        summaries: (time in ms since 1970 UTC, summary) of each summary, ascending.
    """
    made_at = [at for at, _ in summaries]
    happened: list[tuple[int, Happening]] = []
    for turn in trace.turns:
        if turn.deltas:
            happened.append((turn.start_ms, TurnBegan(turn.agent_id, role_of(turn.agent_id), "")))
            happened += _words(turn, made_at)
            happened.append((turn.end_ms, TurnEnded(turn.agent_id, "")))
    for number, (at, summary) in enumerate(summaries, 1):
        happened.append((at, Summarised(number, summary)))
    end = max((at for at, _ in happened), default=0)
    happened.append((end, Ended(None, None)))
    happened.sort(key=lambda entry: entry[0])
    item = trace.meta.case_id, 1
    return [FeedLine(n, at, item, what) for n, (at, what) in enumerate(happened, start=1)]


def _with_phases(turns: Sequence[Turn], calls: Sequence[CallRow]) -> list[_Told]:
    shown = [TranscriptTurn(t.agent_id, t.start_ms, t.end_ms, t.text, ()) for t in turns]
    placed, _ = calls_by_turn(shown, calls)
    return [
        _Told(turn, of_turn[0].phase if of_turn else "")
        for turn, of_turn in zip(turns, placed, strict=True)
    ]


def _charged(call: CallRow, ends: Mapping[tuple[str, str], int], start: int) -> tuple[int, Charged]:
    """Return when a call was charged: at the end of its turn, else of the call itself.

    Args:
        call: The call.
        ends: (agent, phase) -> end of the latest such turn, in ms since 1970 UTC.
        start: Start of the question, in ms since 1970 UTC.
    """
    at = ends.get((call.agent, call.phase))
    if at is None:
        at = max(call.ended_ms, start)
    tokens, reasoning = call.usage.total_tokens, call.reasoning or ""
    return at, Charged(call.agent, call.phase, tokens, is_of_exaid(call), reasoning)


def _turn(
    one: _Told, record: SampleRecord, roles: Mapping[str, str], made_at: Sequence[int]
) -> list[tuple[int, Happening]]:
    turn, phase = one.turn, one.phase
    role = roles.get(turn.agent_id) or role_of(turn.agent_id)
    answer, confidence = _answer(one, record)
    failed = any(left.agent == turn.agent_id and left.phase == phase for left in record.left_out)
    return [
        (turn.start_ms, TurnBegan(turn.agent_id, role, phase)),
        *_words(turn, made_at),
        (turn.end_ms, TurnEnded(turn.agent_id, phase, failed, answer, confidence)),
    ]


def _words(turn: Turn, made_at: Sequence[int]) -> Iterator[tuple[int, Happening]]:
    """Yield the text of a turn, cut only where a summary was made.

    A summary is of the turns that had said some of its words by then.

    Args:
        turn: The turn.
        made_at: Times of all summaries, ascending.
    """
    for _, said in groupby(turn.deltas, lambda delta: bisect_left(made_at, delta.t_ms)):
        deltas = list(said)
        text, seqs = "".join(delta.text for delta in deltas), (deltas[0].seq, deltas[-1].seq)
        yield deltas[-1].t_ms, Words(turn.agent_id, turn.turn_id, text, seqs)


def _answer(one: _Told, record: SampleRecord) -> tuple[str | None, float | None]:
    agent, phase = one.turn.agent_id, one.phase
    if phase.endswith("-synthesise"):
        held = (team.answer for team in record.teams if agent in team.members)
        return next(held, None), None
    update = _OF_A_ROUND.fullmatch(phase)
    if phase in ("opinion", "sample", "answer") or update:
        number = int(update[1] or update[2]) if update else 0
        for opinion in record.opinions:
            if (opinion.agent, opinion.round) == (agent, number):
                return opinion.answer, opinion.confidence
    return (record.predicted if phase in _DECIDE else None), None


def _climbed(told: Sequence[_Told], record: SampleRecord) -> Iterator[tuple[int, Happening]]:
    """Yield the routing to each rung of a ladder, and the outcome of each rung."""
    at, why = _start(told), ""
    for rung in record.rungs:
        yield at, Routed(rung.level, RoutedBy.DISAGREEMENT, why)
        ends = [one.turn.end_ms for one in told if _RUNG_OF[rung.level].match(one.phase)]
        at, why = max(ends, default=at), rung.why
        yield at, rung
    if record.rungs and record.difficulty and record.difficulty != record.rungs[-1].level:
        yield at, Routed(Difficulty(record.difficulty), RoutedBy.DISAGREEMENT, why)


def _recruited(
    told: Sequence[_Told], record: SampleRecord, roles: Mapping[str, str]
) -> Iterator[tuple[int, Happening]]:
    """Yield the recruited members: a panel, teams, or first a panel and then teams."""
    recruited = [one.turn.end_ms for one in told if one.phase == "recruit"]
    if not recruited and any(one.phase == "opinion" for one in told):
        recruited = [_start(told)]  # peers, who are not recruited by a call
    if record.rungs and record.teams:
        yield recruited[0], Recruited(_panel(record, roles))
    if recruited:
        members = _teams(record) if record.teams else _panel(record, roles)
        yield recruited[-1], Recruited(members)


def _teams(record: SampleRecord) -> tuple[Member, ...]:
    of_teams = ((agent, team.name) for team in record.teams for agent in team.members)
    return tuple(Member(agent, role_of(agent), team=team) for agent, team in of_teams)


def _panel(record: SampleRecord, roles: Mapping[str, str]) -> tuple[Member, ...]:
    if record.panel:
        return tuple(Member(p.agent, p.role, p.reports_to) for p in record.panel)
    return tuple(Member(agent, role) for agent, role in roles.items())


def role_of(agent: str) -> str:
    """Return the role in an id like `iat-1-heart-surgeon`, for an agent without a recorded role."""
    return _NUMBERED.sub("", agent, count=1).replace("-", " ").title()


def _question(record: SampleRecord) -> Question:
    return Question(
        record.question_id,
        record.question,
        record.options,
        record.label,
        record.permutation,
        record.order_kept,
        fields=record.fields,
    )


def _start(told: Sequence[_Told]) -> int:
    return min((one.turn.start_ms for one in told), default=0)


def _end_of(told: Sequence[_Told], phase: str) -> int:
    """Return when a step ended; the start of the question if the step did not occur."""
    ends = [one.turn.end_ms for one in told if one.phase == phase]
    return max(ends, default=_start(told))


def _made_at(
    made: Sequence[AgentSummary], told: Sequence[_Told], calls: Sequence[CallRow]
) -> Iterator[int]:
    """Yield the time of each summary: the first reply after its latest words.

    A reply that was sent back for shortening stands for its repair. Without a reply in the ledger,
    such as for a cached one, the time is that of the words.
    """
    replies = deque(sorted(call.ended_ms for call in calls if _summarises(call)))
    deltas = sorted(chain.from_iterable(one.turn.deltas for one in told))
    seqs = [delta.seq for delta in deltas]
    latest = [_start(told), *accumulate((delta.t_ms for delta in deltas), max)]
    for summary in made:
        last = max((end for _, end in summary.source_seqs), default=0)
        said = latest[bisect_right(seqs, last)]
        while replies and replies[0] < said:
            replies.popleft()
        yield replies.popleft() if replies else said


def _summarises(call: CallRow) -> bool:
    return call.role == LLMRole.SUMMARIZER and call.replied and not call.cached
