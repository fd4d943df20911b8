"""Start and end deltas of the records of a published run log, aligned to the trace."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from evals.changes import Changes, Content
from exaid_core.trace.traces import Trace
from mdagents_llm.clock import timestamp_of


class SeqsOf:
    """The sequence numbers and times of a trace's deltas.

    Args:
        trace: Trace to index.
    """

    def __init__(self, trace: Trace) -> None:
        deltas = sorted((d.seq, d.t_ms) for turn in trace.turns for d in turn.deltas)
        self.seqs = [seq for seq, _ in deltas]
        self._times = dict(deltas)

    def between(self, start: int, end: int) -> list[int]:
        """Return the sequence numbers of the deltas from `start` to `end`, inclusive."""
        return self.seqs[bisect_left(self.seqs, start) : bisect_right(self.seqs, end)]

    def time(self, end_seq: int) -> str | None:
        """Return the ISO 8601 time of the last delta up to `end_seq`; None without one."""
        at = bisect_right(self.seqs, end_seq)
        return timestamp_of(self._times[self.seqs[at - 1]]) if at else None


def to_deltas(
    record: Content,
    trace: SeqsOf | None,
    flushes: Sequence[Content],
    changes: Changes,
) -> None:
    """Make the record start and end at deltas, with its start not after its end.

    V1 used turn boundaries instead of deltas. A chunk flushed by a timer was logged after later
    text of other agents, so a record over such chunks could appear to end before it started.
    """
    start, end = record.get("start_seq"), record.get("end_seq")
    if not (isinstance(start, int) and isinstance(end, int)):
        return
    if end < start:
        due = [] if trace is None else _due(trace, flushes, start, end)
        if not due:
            changes.note("start_seq, end_seq: the end is before the start, left as they are")
            return
        if record["record_type"] == "summary_event":
            changes.set(record, "source_seqs", due, "out of order, now those of its flushes")
        how = "the end was before the start, now from the first of its flushes to the last"
        changes.set(record, "start_seq", due[0], how)
        changes.set(record, "end_seq", due[-1], how)
        return
    if trace is None:
        if record["variant_id"] == "V1":
            changes.note("start_seq, end_seq: left as they are, the trace is not there")
        return
    inside = trace.between(start, end)
    if not inside:
        changes.note("start_seq, end_seq: left as they are, the trace has no delta between them")
        return
    for name, seq in (("start_seq", inside[0]), ("end_seq", inside[-1])):
        how = "no delta (the boundary of a turn), now the delta next to it"
        changes.set(record, name, seq, how)


def _due(trace: SeqsOf, flushes: Sequence[Content], start: int, end: int) -> list[int]:
    """Return the sorted deltas of the flushes from the one at `start` to the one at `end`.

    Args:
        trace: Deltas of the trace.
        flushes: `tokengate_flush` records, in log order.
        start: First delta of the first flush.
        end: Last delta of the last flush.
    """
    spans = [(flush.get("start_seq"), flush.get("end_seq")) for flush in flushes]
    first = next((i for i, span in enumerate(spans) if span[0] == start), len(spans))
    last = next((i for i, span in enumerate(spans) if span[1] == end), -1)
    return sorted(
        {
            seq
            for begins, ends in spans[first : last + 1]
            if isinstance(begins, int) and isinstance(ends, int)
            for seq in trace.between(begins, ends)
        }
    )
