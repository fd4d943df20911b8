"""Checks the rules across the records of a trace: one case, order, time, turns, checksums.

Programs that stream the text of several agents into one file sometimes write the end of a turn just
before its last delta. Such a delta, up to `LATE_MS` late, belongs to its turn and is noted; the
turn's checksum may include it or not. Memory does not grow with the text, because only one checksum
per turn is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exaid_core.trace.events import EventKind, TraceEvent
from mdagents_llm.text import first_names, utf8

LATE_MS = 50
"""Maximum time in ms after the end of a turn at which a delta still belongs to it."""
_MOST_NAMED = 5


def late_note(seqs: Sequence[int]) -> str:
    """Return a note to the reader about late deltas.

    Args:
        seqs: Sequence numbers of the late deltas, at least one.
    """
    deltas = "1 delta" if len(seqs) == 1 else f"{len(seqs)} deltas"
    named = first_names(seqs, _MOST_NAMED)
    return f"{deltas} up to {LATE_MS} ms late (seq {named}), counted to the turn that had ended"


class Contradiction(NamedTuple):
    """A violation of a rule by a record."""

    field: str
    """Name of the field that violates the rule."""
    what: str
    """Problem with the value of the field."""
    sentence: str = ""
    """Version of `what` that names the field; empty if `what` is clear without it."""
    line: int = 0
    """Line number of the record if found only at the end; 0 for the current record."""

    def __str__(self) -> str:
        return self.sentence or self.what


@dataclass(slots=True)
class _Turn:
    agent_id: str
    digest: Any = field(default_factory=hashlib.sha256)
    """Running checksum of the turn's text so far."""
    ended_at: int | None = None
    """End of the turn, in ms since 1970 UTC; None while it is in progress."""
    told: str | None = None
    """Checksum of the turn in the file as long as its text does not match; None otherwise."""
    told_in: int = 0
    """Line number of the checksum in the file."""


class TraceRules:
    """Checks the records of a trace in order.

    Args:
        case_id: Case id that all records must have.
        t0_emitted_ms: Origin of relative times, in ms since 1970 UTC; None skips their check.
    """

    def __init__(self, case_id: str, t0_emitted_ms: int | None) -> None:
        self._case_id = case_id
        self._t0 = t0_emitted_ms
        self._turns: dict[int, _Turn] = {}
        self._deltas = 0
        self._has_hole = False
        self.last_seq: int | None = None
        """Highest sequence number so far; None if unknown."""
        self.late: list[int] = []
        """Sequence numbers of the deltas that arrived just after the end of their turn."""

    def unreadable(self) -> None:
        """Record that a record is unreadable, so that others are not blamed for the gap."""
        self._has_hole = True
        self.last_seq = None

    def check(
        self, event: TraceEvent, case_id: str, t_rel_ms: int, content_hash: str | None, line: int
    ) -> list[Contradiction]:
        """Check the next record and return its rule violations.

        Args:
            event: Event of the record.
            case_id: Case id of the record.
            t_rel_ms: Relative time of the record in ms.
            content_hash: Checksum in the record; None without one. `wrong_hashes` verifies it.
            line: Line number of the record.
        """
        if self.is_next_delta(event, case_id, t_rel_ms):
            return []
        found = []
        if case_id != self._case_id:
            what = f"{case_id} in a trace of {self._case_id}"
            sentence = f"a record of {case_id} among {self._case_id}"
            found.append(Contradiction("case_id", what, sentence))
        seq, last = event.seq, self.last_seq
        if last is None or seq > last:
            self.last_seq = seq
        else:
            what = f"{seq} comes twice" if seq == last else f"{seq} comes after {last}"
            found.append(Contradiction("seq", what, f"seq {seq} after seq {last}"))
        if self._t0 is not None and t_rel_ms != event.t_ms - self._t0:
            what = f"{t_rel_ms} is not the record's time less t0_emitted_ms"
            sentence = f"t_rel_ms {t_rel_ms} is not its time less t0_emitted_ms"
            found.append(Contradiction("t_rel_ms", what, sentence))
        return found + self._check_turn(event, content_hash, line)

    def is_next_delta(self, event: TraceEvent, case_id: str, t_rel_ms: int) -> bool:
        """Count a delta that breaks no rule, as nearly all do; `check` any other record.

        Args:
            event: Event of the record.
            case_id: Case id of the record.
            t_rel_ms: Relative time of the record in ms.

        Returns:
            Whether the record was such a delta.
        """
        turn = self._turns.get(event.turn_id)
        if (
            event.kind is not EventKind.DELTA
            or turn is None
            or turn.ended_at is not None
            or event.agent_id != turn.agent_id
            or case_id != self._case_id
            or (self.last_seq is not None and event.seq <= self.last_seq)
            or (self._t0 is not None and t_rel_ms != event.t_ms - self._t0)
        ):
            return False
        self.last_seq = event.seq
        self._deltas += 1
        turn.digest.update(utf8(event.text))
        return True

    def _check_turn(
        self, event: TraceEvent, content_hash: str | None, line: int
    ) -> list[Contradiction]:
        found = []
        number, agent_id = event.turn_id, event.agent_id
        turn = self._turns.get(number)
        if event.kind is EventKind.START:
            self._turns[number] = _Turn(agent_id)
            return [Contradiction("turn_id", f"turn {number} starts twice")] if turn else []
        if turn is None:
            turn = self._turns[number] = _Turn(agent_id)
            found.append(Contradiction("turn_id", f"turn {number} has not started"))
        is_late = event.kind is EventKind.DELTA and turn.ended_at is not None
        if is_late and event.t_ms - (turn.ended_at or 0) <= LATE_MS:
            self.late.append(event.seq)
        elif turn.ended_at is not None:
            after = f" {event.t_ms - turn.ended_at} ms before" if is_late else ""
            found.append(Contradiction("turn_id", f"turn {number} has ended already{after}"))
        if agent_id != turn.agent_id:
            what = f"{agent_id} speaks in turn {number} of {turn.agent_id}"
            found.append(Contradiction("agent_id", what))
        if event.kind is EventKind.DELTA:
            self._deltas += 1
            turn.digest.update(utf8(event.text))
        else:
            turn.ended_at = event.t_ms
            turn.told, turn.told_in = content_hash, line
        if turn.told is not None and turn.told == f"sha256:{turn.digest.hexdigest()}":
            turn.told = None
        return found

    def wrong_hashes(self) -> Iterator[Contradiction]:
        """Yield the checksums that match a turn's text neither with nor without late deltas.

        Call this after the last record, because a late delta may still arrive.
        """
        for number, turn in self._turns.items():
            if turn.told is not None and not self._has_hole:
                what = f"is not that of the deltas of turn {number}"
                yield Contradiction(
                    "content_hash", f"it {what}", f"content_hash {what}", turn.told_in
                )

    def unended(self) -> list[int]:
        """Return the numbers of the turns that have not ended."""
        return [number for number, turn in self._turns.items() if turn.ended_at is None]

    def totals(self, total_turns: int | None, total_deltas: int | None) -> Iterator[Contradiction]:
        """Yield the totals of `trace_meta` that differ from the counts in the trace.

        Args:
            total_turns: Number of turns in `trace_meta`; None if it is not given.
            total_deltas: Number of deltas in `trace_meta`; None if it is not given.
        """
        for name, told, there in (
            ("total_turns", total_turns, len(self._turns)),
            ("total_deltas", total_deltas, self._deltas),
        ):
            if told not in (None, there) and not self._has_hole:
                what = f"trace_meta says {told}, the file holds {there}"
                yield Contradiction(name, what, f"{name} is {told}, but the file holds {there}")
