"""The feed of a run on the disk: what is written is read, once, in order, whatever happens."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exaid_core.schema.agent_summary import AgentSummary, SummaryDraft
from exaid_core.trace.events import EventKind, TraceEvent
from mdagents.agents.events import (
    DebateMessage,
    Ended,
    Event,
    Member,
    Recruited,
    Routed,
    Started,
    Summarised,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.display.display import Snapshot
from mdagents.live import FeedLine, FeedReader, LiveFeed, Words
from mdagents.live.lines import Charged
from mdagents.records.manifest import RunTotals, Spent
from mdagents.records.summaries import ItemKey
from mdagents.settings import Difficulty, RoutedBy
from tests.mdagents.records.test_calls import ROW

HOSTILE = "</script><script>alert(1)</script>\u202e\u2028\x00\ud800"
QUESTION = Question("12", "Which?", {"A": "One", "B": HOSTILE}, "A", {"A": "B", "B": "A"})
SUMMARY = AgentSummary.from_draft(SummaryDraft(key_findings="Fever.")).model_copy(
    update={"alerts": ("cardiac arrest",), "source_seqs": ((1, 4),)}
)
EVENTS: list[Event] = [
    Started(QUESTION),
    Routed(Difficulty.BASIC, RoutedBy.ROUTER, "easy"),
    Routed(None, RoutedBy.METHOD, ""),
    Recruited((Member("e-1", "Nurse", None, "IAT"), Member("e-2", "Dentist", "Nurse"))),
    TurnBegan("e-1", "Nurse", "opinion"),
    TurnEnded("e-1", "opinion", answer="A", confidence=0.8),
    TurnEnded("e-2", "opinion", failed=True),
    DebateMessage(1, 2, "e-1", "e-2", HOSTILE),
    Summarised(1, SUMMARY),
    Ended("A", None),
    Ended(None, "500 from x"),
]
SNAPSHOT = Snapshot(RunTotals(questions=3, correct=1), Spent(), 1, 16, 0, 0.0, 7.5, 2)


def word(text: str, seq: int = 1) -> TraceEvent:
    return TraceEvent(seq, 2, 1, "e-1", EventKind.DELTA, text)


def opened(path: Path, say: Callable[[str], None] = print, **more: Any) -> LiveFeed:
    return LiveFeed(path, count(1_763_840_000_000).__next__, say, **more)


def test_all_that_can_happen_is_read_as_it_was_told(tmp_path: Path) -> None:
    with opened(tmp_path / "live.jsonl") as feed:
        for event in EVENTS:
            feed.happened(("12", 1), event)
        feed.refresh(SNAPSHOT)
    lines = FeedReader(tmp_path / "live.jsonl").read()
    told = [line.what for line in lines]
    assert told[1:7] == EVENTS[1:7]
    assert told[8:-1] == EVENTS[8:]
    assert told[-1] == SNAPSHOT
    assert [line.n for line in lines] == list(range(1, len(EVENTS) + 2))
    assert {line.item for line in lines[:-1]} == {("12", 1)}
    assert lines[-1].item is None


def test_words_of_a_turn_are_joined_and_stand_before_its_end(tmp_path: Path) -> None:
    with opened(tmp_path / "live.jsonl") as feed:
        feed.happened(("12", 1), TurnBegan("e-1", "Nurse", "opinion"))
        for seq, text in enumerate(("It ", "is ", "thiamine.")):
            feed.happened(("12", 1), word(text, 3 * seq))
            feed.happened(("13", 1), word(text.upper(), seq))
        feed.happened(("12", 1), TurnEnded("e-1", "opinion", answer="A"))
    lines = FeedReader(tmp_path / "live.jsonl").read()
    assert [line.what for line in lines if line.item == ("12", 1)] == [
        TurnBegan("e-1", "Nurse", "opinion"),
        Words("e-1", 1, "It is thiamine.", (0, 6)),
        TurnEnded("e-1", "opinion", answer="A"),
    ]
    assert [line.what for line in lines if line.item == ("13", 1)] == [
        Words("e-1", 1, "IT IS THIAMINE.", (0, 2))
    ]


ITEMS = st.sampled_from([("1", 1), ("2", 1), ("2", 2), ("ü,“x”", 1)])
STEPS = st.lists(
    st.one_of(
        st.tuples(ITEMS, st.sampled_from(EVENTS)),
        st.tuples(ITEMS, st.text(max_size=30).map(word)),
        st.just("write"),
        st.just("read"),
        st.just("read anew"),
        st.just("start anew"),
        st.just("kill"),
    ),
    max_size=60,
)


@pytest.mark.sweep
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_each_reader_gets_each_line_once_and_in_order(tmp_path: Path, steps: list[Any]) -> None:
    path = tmp_path / "live.jsonl"
    path.unlink(missing_ok=True)
    feed = opened(path).__enter__()
    reader, read = FeedReader(path), list[FeedLine]()
    written: list[tuple[ItemKey, Event]] = []
    for step in steps:
        match step:
            case "write":
                feed.write()
            case "read":
                read += reader.read()
            case "read anew":  # as a page that lost its connection
                reader = FeedReader(path, after=read[-1].n if read else 0)
            case "start anew":
                feed.__exit__()
                feed = opened(path).__enter__()
            case "kill":  # in the middle of a line
                feed.__exit__()
                with path.open("ab") as file:
                    file.write(b'{"n": 9')
                feed = opened(path).__enter__()
            case item, event:
                feed.happened(item, event)
                written.append((item, event))
    feed.__exit__()
    read += reader.read()
    assert [line.n for line in read] == list(range(1, len(read) + 1))
    for item in {item for item, _ in written}:
        of_item = [line.what for line in read if line.item == item]
        said = "".join(what.text for what in of_item if isinstance(what, Words))
        told = "".join(e.text for i, e in written if i == item and isinstance(e, TraceEvent))
        assert said == told
        others = [type(what) for what in of_item if not isinstance(what, Words)]
        assert others == [
            type(e) for i, e in written if i == item and not isinstance(e, TraceEvent)
        ]


@pytest.mark.parametrize("ending", ["", '",1],"kind":"words', ' "item":["1",1] é\u2028'])
def test_what_is_left_out_when_the_file_is_too_large_is_decided(
    ending: str, tmp_path: Path
) -> None:
    path = tmp_path / "live.jsonl"
    reader, read = FeedReader(path), list[FeedLine]()
    with opened(path, largest=20_000) as feed:
        feed.happened(("open", 1), Started(QUESTION))
        for number in range(200):
            item = (f"{number}{ending}", 1)
            feed.happened(item, Started(QUESTION))
            feed.happened(item, word("It is thiamine. " * 20))
            feed.happened(item, Ended("A", None))
            feed.write()
            read += reader.read()
            assert path.stat().st_size <= 21_000
    assert [line.n for line in read] == list(range(1, 602)), "a reader that follows misses nothing"
    late = FeedReader(path).read()
    found = {line.item for line in late}
    assert ("open", 1) in found
    assert (f"199{ending}", 1) in found
    assert (f"0{ending}", 1) not in found
    assert [line.n for line in late] == sorted(line.n for line in late)


def test_what_comes_after_a_question_was_left_out_is_left_out_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    with opened(path, largest=20_000) as feed:
        for number in range(200):
            feed.happened((str(number), 1), Started(QUESTION))
            feed.happened((str(number), 1), Ended("A", None))
            feed.write()
        for number in range(200):
            feed.happened((str(number), 1), Summarised(1, SUMMARY))
            feed.write()
            assert path.stat().st_size <= 21_000


@pytest.mark.parametrize("questions", [10, 60, 200])
def test_a_file_with_many_questions_in_progress_keeps_its_bound(
    questions: int, tmp_path: Path
) -> None:
    path, largest = tmp_path / "live.jsonl", 20_000
    in_progress = highest = 0
    with opened(path, largest=largest) as feed:
        for number in range(questions):
            feed.happened((f"open-{number}", 1), Started(QUESTION))
        feed.write()
        in_progress = path.stat().st_size
        for number in range(400):
            feed.happened((str(number), 1), Started(QUESTION))
            feed.happened((str(number), 1), Ended("A", None))
            feed.write()
            highest = max(highest, path.stat().st_size)
    assert highest <= max(largest, 2 * in_progress) * 1.1
    found = {line.item for line in FeedReader(path).read()}
    assert {(f"open-{number}", 1) for number in range(questions)} <= found
    assert ("399", 1) in found


def test_a_settled_question_is_charged_no_more(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    with opened(path) as feed:
        for item in (("1", 1), ("2", 1)):
            feed.happened(item, Started(QUESTION))
            feed.happened(item, Ended("A", None))
        feed.settled(("1", 1))
        for case in ("case-1", "case-2", "case-3"):
            feed.booked(replace(ROW, case_id=case))
    charged = [line for line in FeedReader(path).read() if isinstance(line.what, Charged)]
    assert [(line.item, line.what) for line in charged] == [
        (("2", 1), Charged(ROW.agent, ROW.phase, ROW.usage.total_tokens))
    ]


@pytest.mark.parametrize("event", [None, SNAPSHOT])
def test_numbers_go_on_after_a_start_that_removes_all_others(
    event: Snapshot | None, tmp_path: Path
) -> None:
    path = tmp_path / "live.jsonl"
    with opened(path) as feed:
        for number in range(50):
            feed.happened((str(number), 1), Started(QUESTION))
    reader = FeedReader(path)
    last = reader.read()[-1].n
    with opened(path, largest=1_000) as feed:
        if event is not None:
            feed.refresh(event)
    with opened(path) as feed:
        feed.happened(("new", 1), Started(QUESTION))
    *_, line = reader.read()
    assert line.item == ("new", 1)
    assert line.n > last


def test_a_reader_notices_another_file_with_the_same_inode(tmp_path: Path) -> None:
    path, other = tmp_path / "live.jsonl", tmp_path / "other.jsonl"
    with opened(other) as feed:
        for number in range(50):
            feed.happened((str(number), 1), Started(QUESTION))
    lines = other.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    reader = FeedReader(path)
    assert [line.n for line in reader.read()] == list(range(1, 21))
    path.write_bytes(b"".join(lines[20:]))
    assert [line.n for line in reader.read()] == list(range(21, 51))
    assert reader.read() == []


def test_questions_in_progress_that_fill_the_file_are_not_copied_at_each_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = 0
    replace = Path.replace

    def counted(self: Path, target: Path) -> Path:
        nonlocal copied
        copied += 1
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", counted)
    with opened(tmp_path / "live.jsonl", largest=2_000) as feed:
        for number in range(200):
            feed.happened((str(number), 1), Started(QUESTION))
            feed.write()
        assert {line.item for line in FeedReader(tmp_path / "live.jsonl").read()} == {
            (str(number), 1) for number in range(200)
        }
    assert 1 <= copied < 10


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b'{"n":1,"item":[[],[]],"kind":"words"}\n\xff\n']
)
def test_a_file_that_another_program_wrote_to_is_no_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    with opened(path, largest=2_000) as feed:
        for number in range(20):
            feed.happened((str(number), 1), Started(QUESTION))
            feed.happened((str(number), 1), Ended("A", None))
            path.write_bytes(content)
            feed.write()
            assert path.stat().st_size < 3_000
    assert FeedReader(path).read()[-1].what == Ended("A", None)


def test_a_disk_that_is_full_ends_the_feed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    said: list[str] = []
    with opened(tmp_path / "live.jsonl", say=said.append) as feed:
        monkeypatch.setattr(os, "write", full)
        feed.happened(("1", 1), Started(QUESTION))
        feed.write()
        monkeypatch.undo()
        feed.happened(("1", 1), Ended("A", None))
        feed.write()
    assert FeedReader(tmp_path / "live.jsonl").read() == []
    (line,) = said
    assert line.endswith("/live.jsonl failed: No space left on device")


def test_a_line_that_cannot_be_encoded_ends_the_feed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deep(_: object) -> bytes:
        raise RecursionError

    with opened(tmp_path / "live.jsonl") as feed:
        monkeypatch.setattr("mdagents.live.lines.compact_json", deep)
        feed.happened(("1", 1), Started(QUESTION))
        feed.write()
        monkeypatch.undo()
        feed.happened(("1", 1), Ended("A", None))
    assert FeedReader(tmp_path / "live.jsonl").read() == []


@pytest.mark.parametrize("kept", [5, 0])
def test_a_file_that_is_cut_in_place_is_read_from_its_beginning(kept: int, tmp_path: Path) -> None:
    """`tail -n 5 file > file` (lnav 104), and copytruncate of logrotate (goaccess 1815)."""
    path = tmp_path / "live.jsonl"
    read = list[FeedLine]()
    with opened(path) as feed:
        reader = FeedReader(path)
        for numbers in (range(50), range(50, 60)):
            for number in numbers:
                feed.happened((str(number), 1), Started(QUESTION))
            feed.write()
            read += reader.read()
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(lines[len(lines) - kept :]))
    assert [line.n for line in read] == list(range(1, 61))


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    said: list[str] = []
    with opened(tmp_path / "missing" / "live.jsonl", say=said.append) as feed:
        feed.happened(("1", 1), Started(QUESTION))
    assert len(said) == 1
    assert FeedReader(tmp_path / "missing" / "live.jsonl").read() == []


def test_lines_of_a_later_version_and_damaged_ones_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    with opened(path) as feed:
        feed.happened(("1", 1), Started(QUESTION))
    content = path.read_bytes()
    later = b'{"n": 2, "at": 1, "item": null, "kind": "smell", "what": {}}\n'
    damaged = b'\xff{"n"\n[]\nnull\n{"n": 3, "at": 1, "item": 5, "kind": "ended", "what": {}}\n'
    path.write_bytes(later + damaged + content)
    assert [line.what for line in FeedReader(path).read()] == [Started(QUESTION)]


@pytest.mark.sweep
async def test_it_is_written_while_the_run_works(tmp_path: Path) -> None:
    reader = FeedReader(tmp_path / "live.jsonl")
    with opened(tmp_path / "live.jsonl") as feed:
        writing = asyncio.ensure_future(feed.keep_writing())
        feed.happened(("1", 1), word("thiamine"))
        await asyncio.sleep(1)
        lines = reader.read()
        writing.cancel()
        assert lines[0].what == Words("e-1", 1, "thiamine", (1, 1))
    feed.remove()
    assert not (tmp_path / "live.jsonl").exists()
    assert reader.read() == []
