"""A delta just after the end of its turn belongs to the turn; anything worse is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.files import RecordError
from exaid_core.trace.rules import LATE_MS
from exaid_core.trace.traces import read_trace, write_trace
from tests.conftest import SHARED
from tests.support.late_trace import end_before_last_delta
from tests.support.trace_events import ends, says, starts

PUBLISHED = SHARED / "published_exaid" / "traces" / "case-36837600.trace.jsonl.gz"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "case-7.trace.jsonl.gz"
    events: list[TraceEvent] = [
        starts(1, "a", 0, 900),
        says(1, "a", 1, "Doctor", 1000),
        says(1, "a", 2, "1", 1200),
        ends(1, "a", 3, 1210),
        starts(2, "b", 4, 1215),
        says(2, "b", 5, "Thanks", 1400),
        ends(2, "b", 6, 1500),
    ]
    meta: dict[str, Any] = {"mas_run_id": "mas_1", "mac_commit": "0", "model": "m"}
    write_trace(path, events, case_id="case-7", created_at="2026-01-01T00:00:00Z", **meta)
    return path


@pytest.mark.parametrize("hash_covers", [False, True], ids=["hash-without", "hash-with"])
@pytest.mark.parametrize("late_ms", [0, 1, LATE_MS])
def test_a_late_delta_belongs_to_its_turn(path: Path, late_ms: int, hash_covers: bool) -> None:
    before = read_trace(path)
    trace = read_trace(end_before_last_delta(path, late_ms, hash_covers=hash_covers))
    assert [turn.text for turn in trace.turns] == ["Doctor1", "Thanks"]
    assert (before.late, trace.late) == ((), (3,))
    # For a replay the turn ends after its last word, and time does not run backwards.
    kinds = [event.kind for event in trace.events]
    assert kinds[:4] == [EventKind.START, EventKind.DELTA, EventKind.DELTA, EventKind.END]
    times = [event.t_ms for event in trace.events]
    assert times == sorted(times)
    assert sorted(event.seq for event in trace.events) == list(range(7))


def test_a_delta_that_is_later_is_refused(path: Path) -> None:
    end_before_last_delta(path, LATE_MS + 1)
    with pytest.raises(RecordError, match="line 5: turn 1 has ended already 51 ms before"):
        read_trace(path)


def test_the_hash_is_still_checked(path: Path) -> None:
    end_before_last_delta(path, 1)
    text = path.with_name("changed.jsonl")
    lines = gzip.decompress(path.read_bytes()).decode().replace('"Doctor"', '"Nurse"')
    text.write_text(lines)
    with pytest.raises(RecordError, match="line 4: content_hash is not that of the deltas of turn"):
        read_trace(text)


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published trace is not here")
def test_the_published_trace() -> None:
    trace = read_trace(PUBLISHED)
    assert trace.late == (2831,)
    assert next(turn.text for turn in trace.turns if turn.turn_id == 11) == "Doctor1"
    assert len(trace.turns) == 24
