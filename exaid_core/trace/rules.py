"""The rules that hold across the records of a trace: one case, order, time, turns, hashes.

Programs that stream the text of several agents into one file write the end of a turn now and then
just before its last delta. Such a delta, up to `LATE_MS` late, belongs to its turn and is noted;
the turn's hash may count it or not. Memory does not grow with the text: of a turn, only one hash is
kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exaid_core.trace.events import EventKind, TraceEvent
from mdagents_llm.files.text import well_formed

LATE_MS = 50
"""How long after the end of its turn a delta may come and still belong to it, in ms."""
_MOST_NAMED = 5


def late_note(seqs: Sequence[int]) -> str:
    """Return what a reader is told of late deltas.

    Args:
        seqs: Their sequence numbers, at least one.
    """
    deltas = "1 delta" if len(seqs) == 1 else f"{len(seqs)} deltas"
    named = ", ".join(map(str, seqs[:_MOST_NAMED])) + ", …" * (len(seqs) > _MOST_NAMED)
    return f"{deltas} up to {LATE_MS} ms late (seq {named}), counted to the turn that had ended"


class Contradiction(NamedTuple):
    """A rule that a record breaks."""

    field: str
    """The field that breaks it."""
    what: str
    """What is wrong with its value."""
    sentence: str = ""
    """The same for a place where the field is not named beside it; empty: the same words."""
    line: int = 0
    """Line of the record, for a contradiction that is found at the end; 0: the one in hand."""

    def __str__(self) -> str:
        return self.sentence or self.what


@dataclass(slots=True)
class _Turn:
    agent_id: str
    digest: Any = field(default_factory=hashlib.sha256)
    """Of its text so far."""
    ended_at: int | None = None
    """When it ended, in ms since 1970 UTC."""
    told: str | None = None
    """Its hash as the file has it, while that is not the hash of its text."""
    told_in: int = 0
    """The line of that hash."""


class TraceRules:
    """Checks the records of a trace in their order.

    Args:
        case_id: The case that all of them are of.
        t0_emitted_ms: The instant from which relative times count; None: they are not checked.
    """

    def __init__(self, case_id: str, t0_emitted_ms: int | None) -> None:
        self._case_id = case_id
        self._t0 = t0_emitted_ms
        self._turns: dict[int, _Turn] = {}
        self._deltas = 0
        self._has_hole = False
        self.last_seq: int | None = None
        """The highest so far; None if it is not known."""
        self.late: list[int] = []
        """Sequence numbers of the deltas that came just after the end of their turn."""

    def unreadable(self) -> None:
        """Note that a record cannot be read, so that others are not blamed for it."""
        self._has_hole = True
        self.last_seq = None

    def check(
        self, event: TraceEvent, case_id: str, t_rel_ms: int, content_hash: str | None, line: int
    ) -> list[Contradiction]:
        """Take the next record and return the rules that it breaks.

        Args:
            event: What the record tells.
            case_id: Further fields of the record, as the next two.
            t_rel_ms: See `case_id`.
            content_hash: See `case_id`. Whether it is wrong turns out in `wrong_hashes`.
            line: Number of the record's line.
        """
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
            turn.digest.update(well_formed(event.text).encode())
        else:
            turn.ended_at = event.t_ms
            turn.told, turn.told_in = content_hash, line
        if turn.told == f"sha256:{turn.digest.hexdigest()}":
            turn.told = None
        return found

    def wrong_hashes(self) -> Iterator[Contradiction]:
        """Yield the hashes of turns that are neither of their text nor of it without late deltas.

        Called after the last record: a late delta may still come.
        """
        for number, turn in self._turns.items():
            if turn.told is not None and not self._has_hole:
                what = f"is not that of the deltas of turn {number}"
                yield Contradiction(
                    "content_hash", f"it {what}", f"content_hash {what}", turn.told_in
                )

    def unended(self) -> list[int]:
        """Return the turns that have not ended."""
        return [number for number, turn in self._turns.items() if turn.ended_at is None]

    def totals(self, total_turns: int | None, total_deltas: int | None) -> Iterator[Contradiction]:
        """Yield the totals of `trace_meta` that differ from what the trace holds.

        Args:
            total_turns: As told; None if it is not.
            total_deltas: As told; None if it is not.
        """
        for name, told, there in (
            ("total_turns", total_turns, len(self._turns)),
            ("total_deltas", total_deltas, self._deltas),
        ):
            if told not in (None, there) and not self._has_hole:
                what = f"trace_meta says {told}, the file holds {there}"
                yield Contradiction(name, what, f"{name} is {told}, but the file holds {there}")
