"""Files of records, and traces: reproducible bytes, errors that name place and problem."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.files import (
    DETERMINISM,
    RecordError,
    dump_line,
    packed,
    parse_line,
    read_records,
    record_of,
    records_of,
    validated,
    write_gz,
)
from exaid_core.trace.records import Decoding, StreamDelta, TraceRecord, content_hash
from exaid_core.trace.traces import read_trace, write_trace
from mdagents_llm.errors import BenchError, StorageError
from mdagents_llm.text import well_formed
from tests.conftest import REAL_TRACES
from tests.support.trace_events import ends, says, starts

META = {
    "case_id": "case-7",
    "mas_run_id": "mas_1",
    "mac_commit": "abc",
    "model": "gpt-4o-mini",
    "created_at": "2025-12-24T22:26:50Z",
}
trace_record: TypeAdapter[TraceRecord] = TypeAdapter(TraceRecord)


def written(events: Iterable[TraceEvent], path: Path, **more: Any) -> Path:
    write_trace(path, events, **(META | more))
    return path


def two_turns() -> list[TraceEvent]:
    """Two agents with overlapping turns; the second one fails after a word."""
    return [
        starts(1, "doctor-1", 0, 990),
        says(1, "doctor-1", 1, "Fev", 1000),
        starts(2, "doctor-2", 2, 1001),
        says(2, "doctor-2", 3, "Troponin ", 1002),
        says(1, "doctor-1", 4, "er 39 °C\n", 1003),
        ends(2, "doctor-2", 5, 1004),
        ends(1, "doctor-1", 6, 1005),
    ]


def contents(path: Path) -> list[dict[str, Any]]:
    return [content for _, content in read_records(path)]


def rewritten(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """A trace whose records `change` has changed."""
    records = contents(written(two_turns(), path))
    change(records)
    write_gz(path, map(dump_line, records))
    return path


def problem(read: Callable[[Path], object], path: Path) -> str:
    """What a `RecordError` says after the file's name; it is one printable line."""
    with pytest.raises(RecordError) as caught:
        read(path)
    message = str(caught.value)
    assert isinstance(caught.value, BenchError)
    assert message.isprintable()
    assert message.startswith(f"{path} line {caught.value.line}: ")
    return message.removeprefix(f"{path} ")


def everything(path: Path) -> list[tuple[int, dict[str, Any]]]:
    return list(read_records(path))


# Lines


def test_a_line_is_compact_sorted_utf_8() -> None:
    assert (
        dump_line({"b": [1, None], "a": "µ\n\u2028"})
        == '{"a":"µ\\n\u2028","b":[1,null]}\n'.encode()
    )


def test_fields_that_nobody_set_are_left_out_and_null_is_kept() -> None:
    assert dump_line(Decoding(temperature=0, seed=None)) == b'{"seed":null,"temperature":0.0}\n'


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_line({"x": float("nan")})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(st.characters(codec="utf-8")), json_values, max_size=4)


@pytest.mark.sweep
@given(st.lists(objects, max_size=5), st.sampled_from(["x.jsonl", "x.jsonl.gz"]))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], name: str
) -> None:
    path = tmp_path_factory.mktemp("written") / name
    lines = [dump_line(record) for record in records]
    assert all(line.count(b"\n") == 1 for line in lines)
    if name.endswith(".gz"):
        write_gz(path, lines)
    else:
        path.write_bytes(b"".join(lines))
    assert everything(path) == list(enumerate(json.loads(json.dumps(records)), start=1))


# Writing


def test_equal_lines_give_equal_bytes_whatever_the_name_and_the_hour(tmp_path: Path) -> None:
    first, second = tmp_path / "a.gz", tmp_path / "deep" / "er" / "b.gz"
    write_gz(first, [b"{}\n"] * 3)
    os.utime(first, (1, 1))
    write_gz(second, iter([b"{}\n"] * 3))
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == b"{}\n" * 3
    flags, mtime = first.read_bytes()[3], first.read_bytes()[4:8]
    assert flags == 0  # neither a name nor a comment
    assert int.from_bytes(mtime, "little") == DETERMINISM.gzip_mtime == 0


@pytest.mark.parametrize("count", [0, 1, 100, 20_000])
def test_the_bytes_are_those_of_a_gzip_file(count: int) -> None:
    lines = [dump_line({"text": f"word {number % 97} " * (number % 13)}) for number in range(count)]
    file = io.BytesIO()
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as expected:
        expected.writelines(lines)
    assert packed(lines) == file.getvalue()


def test_a_file_that_is_not_finished_is_never_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    write_gz(path, [b"old\n"])

    def lines() -> Iterator[bytes]:
        yield b"new\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_gz(path, lines())
    assert gzip.decompress(path.read_bytes()) == b"old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "x.gz", tmp_path / "folder"):
        with pytest.raises(StorageError) as caught:
            write_gz(path, [b"{}\n"])
        assert str(caught.value).startswith(f"cannot write {path}: ")
        assert str(caught.value).isprintable()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


# Reading


def test_blank_lines_count_but_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n\n  \r\n{"b":2}')
    assert everything(path) == [(1, {"a": 1}), (4, {"b": 2})]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n{"b":2}\r\n')
    assert everything(path) == [(1, {"a": 1}), (2, {"b": 2})]


def test_half_a_character_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(rb'{"a\uD83D":["\uDE00",{"b":"\ud83d\ude00 \\ud83d"}],"n":10000000000000000}')
    content = {"a\ufffd": ["\ufffd", {"b": "\U0001f600 \\ud83d"}], "n": 10**16}
    assert everything(path) == [(1, content)]


def test_a_file_with_a_line_break_in_its_name_is_named_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"a b \[31m.jsonl line 1: cannot be read") as caught:
        everything(tmp_path / "a\nb\x1b[31m.jsonl")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"a":', "line 2: not JSON: Expecting value, column 6"),
        (b"[1]", "line 2: not a JSON object"),
        (b"1", "line 2: not a JSON object"),
        (b'{"a":"\xff"}', "line 2: not UTF-8 at byte 7"),
        (b'{"a":NaN}', "line 2: not JSON: NaN is not a number"),
        (b"[" * 200_000, "line 2: not JSON: maximum recursion depth exceeded"),
        (b"1" * 5000, "line 2: not JSON: Exceeds the limit"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, what: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n" + line + b"\n{}\n")
    assert problem(everything, path).startswith(what)


def test_a_json_file_is_one_object(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{\n "a": 1\n}\n')
    assert everything(path) == [(1, {"a": 1})]
    path.write_text('{\n "a": \n}\n')
    assert problem(everything, path) == "line 3: not JSON: Expecting value, column 1"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    assert problem(everything, path) == "line 2: not JSON: Extra data, column 1"
    path.write_text("[1]")
    assert problem(everything, path) == "line 1: not a JSON object"


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_a_line_that_is_too_long_is_not_read_to_its_end(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with gzip.open(path, "wb", 1) if name.endswith(".gz") else path.open("wb") as file:
        file.write(b'{"a":"ok"}\n')
        for _ in range(20):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    try:
        read = partial(read_records, max_line_bytes=1000)
        assert problem(lambda path: list(read(path)), path) == "line 2: longer than 1000 bytes"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_limit_is_that_of_the_line_without_its_break(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":12}\n')
    records = read_records(path, max_line_bytes=7)
    assert next(records) == (1, {"a": 1})
    with pytest.raises(RecordError, match="longer than 7 bytes"):
        next(records)


def test_ten_megabytes_in_a_line_are_too_many(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    write_gz(path, [dump_line({"a": "x" * 10_000_000})])
    assert problem(everything, path) == "line 1: longer than 8388608 bytes"


def test_a_file_that_was_cut_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    whole = [dump_line({"n": n, "text": "x" * (n % 50)}) for n in range(5000)]
    write_gz(path, whole)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    read: list[tuple[int, dict[str, Any]]] = []
    with pytest.raises(RecordError, match="the compressed file is cut short") as caught:
        read.extend(read_records(path))
    assert 1 < caught.value.line < 5000
    assert [dump_line(content) for _, content in read] == whole[: caught.value.line - 1]


@pytest.mark.parametrize("kept", [0, 5, -1])
def test_a_file_cut_anywhere_is_not_taken_for_a_whole_one(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "x.jsonl.gz"
    write_gz(path, [b"{}\n"])
    path.write_bytes(path.read_bytes()[:kept])
    assert problem(everything, path).endswith("the compressed file is cut short")


def test_damage_and_other_formats_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    write_gz(path, [b'{"a":1}\n'])
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert "the compressed file is damaged: CRC check failed" in problem(everything, path)
    data[10] |= 0b110  # a kind of block that does not exist
    path.write_bytes(data)
    assert "the compressed file is damaged: Error -3" in problem(everything, path)
    path.write_bytes(b'{"a":1}\n')
    assert "the compressed file is damaged: Not a gzipped file" in problem(everything, path)


def test_a_file_that_is_not_there_or_not_a_file_is_named(tmp_path: Path) -> None:
    assert problem(everything, tmp_path / "no.jsonl").startswith("line 1: cannot be read: No such")
    assert problem(everything, tmp_path).startswith("line 1: cannot be read: a folder, not a file")


def test_a_record_that_is_not_valid_is_said_in_one_line(tmp_path: Path) -> None:
    def read(path: Path) -> object:
        content = {"record_type": "evil\n\x1b[31m" + "x" * 1000}
        return validated(trace_record, path, 3, content)

    message = problem(read, tmp_path / "x")
    assert message.startswith("line 3: Input tag 'evil  [31mxxx")
    assert len(message) < 400


DELTA = {
    "record_type": '"stream_delta"',
    "case_id": '"case-7"',
    "seq": "1",
    "turn_id": "1",
    "agent_id": '"doctor"',
    "t_rel_ms": "0",
    "delta_text": '"Fever"',
    "t_emitted_ms": "1000",
}
BOUNDARY = {
    **{name: DELTA[name] for name in ("case_id", "seq", "turn_id", "agent_id", "t_rel_ms")},
    "record_type": '"turn_boundary"',
    "boundary": '"end"',
    "t_ms": "1000",
    "content_hash": f'"sha256:{"a" * 64}"',
}
ODD_VALUES = (
    *("1", "1.0", "-1", "-0", "1e3", "9" * 30, "9" * 5000, "NaN", "-Infinity", "true", "null"),
    *('"x"', '"1"', '"stream_delta"', '"trace_meta"', '"start"', '"\\ud83d"', '"\\ud83d\\ude00"'),
    *('"\\u0000"', '"\x01"', "\ufeff1", "[]", "{}", '{"a":NaN}', "[" * 300 + "]" * 300),
)


class Place(BaseModel):
    x: int
    y: int = 0


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"x": 1}\n', b' {"x": 2, "y": 3}\r\n', b'{"x": 4}'],
        [b'{"x": 1}\n', b'{"x": "?"}\n', b'{"x": 3}\n'],
        [b'{"x": 1}, {"x": 2}\n', b'{"x": 3\n', b'"y": 4}\n'],
        [b'{"x": 1}\n', b'{"x": 2\n', b'"y": 3}\n', b'{"x": 4}, {"x": 5}\n'],
        [b'{"x": 1}\n', b'{"x": NaN}\n'],
        [b'{"x": 1}\n', b'\xef\xbb\xbf{"x": 2}\n'],
        [b'{"x": 1}\n', b'{"x": 2}\x0b\n'],
        [b"[]\n"],
        [],
    ],
)
def test_lines_are_validated_together_as_they_are_alone(lines: list[bytes]) -> None:
    one, many = TypeAdapter(Place), TypeAdapter(list[Place])
    path, numbered = Path("f.jsonl"), list(enumerate(lines, start=1))

    def outcome(records: Iterator[tuple[int, Place]]) -> tuple[list[tuple[int, Place]], str]:
        seen: list[tuple[int, Place]] = []
        try:
            seen.extend(records)
        except RecordError as error:
            return seen, str(error)
        return seen, ""

    alone = ((number, record_of(one, path, number, line)) for number, line in numbered)
    assert outcome(records_of(many, one, path, iter(numbered))) == outcome(alone)


def test_the_lines_before_one_that_cannot_be_read_are_validated_first() -> None:
    def lines() -> Iterator[tuple[int, bytes]]:
        yield 1, b'{"x": "?"}'
        raise RecordError(Path("f"), 2, "is cut short")

    with pytest.raises(RecordError, match="line 1"):
        list(records_of(TypeAdapter(list[Place]), TypeAdapter(Place), Path("f"), lines()))


@pytest.mark.parametrize("written_out", [DELTA, BOUNDARY], ids=["delta", "boundary"])
def test_a_line_is_read_at_once_as_it_is_in_two_steps(written_out: dict[str, str]) -> None:
    def said(read: Callable[[], object]) -> object:
        try:
            return read()
        except RecordError as error:
            return str(error)

    def in_two_steps(line: bytes) -> TraceRecord:
        return validated(trace_record, path, 3, parse_line(path, 3, line))

    path, accepted = Path("x.jsonl"), 0
    for name in (*written_out, "other"):
        for value in ODD_VALUES:
            with_value = {**written_out, name: value}.items()
            for fields in (with_value, [(name, value), *written_out.items()]):  # also a duplicate
                line = "{" + ",".join(f'"{field}":{text}' for field, text in fields) + "}"
                whole = line.encode()
                for raw in (whole, b"\xef\xbb\xbf" + whole, whole + b" \x0b\r\n", whole[:-1]):
                    at_once = said(partial(record_of, trace_record, path, 3, raw))
                    assert at_once == said(partial(in_two_steps, raw)), raw
                    accepted += not isinstance(at_once, str)
    assert accepted > 100


# Traces


def test_a_trace_has_the_form_of_the_published_ones(tmp_path: Path) -> None:
    decoding = Decoding(temperature=1.0, top_p=None, max_tokens=4096, seed=None)
    path = written(two_turns(), tmp_path / "x.gz", exaid_commit="def", decoding=decoding)
    meta, *events = contents(path)
    assert meta == META | {
        "record_type": "trace_meta",
        "schema_version": "2.0.0",
        "exaid_commit": "def",
        "decoding": {"temperature": 1.0, "top_p": None, "max_tokens": 4096, "seed": None},
        "t0_definition": "t_emitted_ms of first stream_delta record",
        "t0_emitted_ms": 1000,
        "total_turns": 2,
        "total_deltas": 3,
    }
    assert [event["seq"] for event in events] == [0, 1, 2, 3, 4, 5, 6]
    assert [event["t_rel_ms"] for event in events] == [-10, 0, 1, 2, 3, 4, 5]
    assert events[0] == {
        "record_type": "turn_boundary",
        "case_id": "case-7",
        "seq": 0,
        "turn_id": 1,
        "agent_id": "doctor-1",
        "boundary": "start",
        "t_ms": 990,
        "t_rel_ms": -10,
    }
    assert events[3] == {
        "record_type": "stream_delta",
        "case_id": "case-7",
        "seq": 3,
        "turn_id": 2,
        "agent_id": "doctor-2",
        "delta_text": "Troponin ",
        "t_emitted_ms": 1002,
        "t_rel_ms": 2,
    }
    assert events[5]["content_hash"] == content_hash(["Troponin "])
    assert events[6]["content_hash"] == content_hash(["Fever 39 °C\n"])


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    meta = contents(written(two_turns(), tmp_path / "x.gz"))[0]
    assert not {"exaid_commit", "decoding", "stub_mode"} & meta.keys()
    with pytest.raises(ValidationError, match="case_id"):
        written(two_turns(), tmp_path / "x.gz", case_id="7")


def test_a_trace_is_read_as_events_and_as_turns(tmp_path: Path) -> None:
    trace = read_trace(written(two_turns(), tmp_path / "x.gz"))
    assert trace.meta.case_id == "case-7"
    assert [(event.seq, event.kind, event.agent_id) for event in trace.events] == [
        (0, EventKind.START, "doctor-1"),
        (1, EventKind.DELTA, "doctor-1"),
        (2, EventKind.START, "doctor-2"),
        (3, EventKind.DELTA, "doctor-2"),
        (4, EventKind.DELTA, "doctor-1"),
        (5, EventKind.END, "doctor-2"),
        (6, EventKind.END, "doctor-1"),
    ]
    first, second = trace.turns
    assert (first.turn_id, first.agent_id, first.start_ms, first.end_ms) == (
        1,
        "doctor-1",
        990,
        1005,
    )
    said = [(delta.seq, delta.t_ms, delta.text) for delta in first.deltas]
    assert said == [(1, 1000, "Fev"), (4, 1003, "er 39 °C\n")]
    assert first.text == "Fever 39 °C\n"
    assert second.text == "Troponin "


def test_a_trace_without_deltas_counts_from_its_first_event(tmp_path: Path) -> None:
    events = [starts(1, "a", 0, 500), ends(1, "a", 1, 510)]
    trace = read_trace(written(events, tmp_path / "x.gz"))
    assert trace.meta.t0_emitted_ms == 500
    assert trace.meta.t0_definition == "t_ms of first turn_boundary record"
    assert trace.turns[0].deltas == ()
    empty = read_trace(written([], tmp_path / "y.gz"))
    assert (empty.events, empty.turns, empty.meta.total_turns) == ((), (), 0)


def test_a_turn_that_never_ended_ends_with_its_last_event(tmp_path: Path) -> None:
    events = [starts(1, "a", 0, 500), says(1, "a", 1, "cut of", 520)]
    turn = read_trace(written(events, tmp_path / "x.gz")).turns[0]
    assert (turn.end_ms, turn.text) == (520, "cut of")


def test_half_a_character_does_not_stop_a_trace(tmp_path: Path) -> None:
    events = [
        starts(1, "a", 0, 1),
        says(1, "a", 1, "x\ud83d", 2),
        says(1, "a", 2, "\ude00", 3),
        ends(1, "a", 3, 4),
    ]
    assert read_trace(written(events, tmp_path / "x.gz")).turns[0].text == "x\ufffd\ufffd"


@pytest.mark.sweep
@pytest.mark.parametrize("path", REAL_TRACES, ids=lambda path: path.name)
def test_a_real_trace_recorded_again_is_the_same(tmp_path: Path, path: Path) -> None:
    trace = read_trace(path)
    again = tmp_path / "again.gz"
    meta = trace.meta
    write_trace(
        again,
        trace.events,
        case_id=meta.case_id,
        mas_run_id=meta.mas_run_id,
        mac_commit=meta.mac_commit,
        model=meta.model,
        created_at=meta.created_at,
        exaid_commit=meta.exaid_commit,
        decoding=meta.decoding,
    )
    assert contents(again) == contents(path)
    for _, content in read_records(again):
        trace_record.validate_python(content)
    assert read_trace(again) == trace


texts = st.text(st.characters(exclude_categories=()), max_size=5)  # lone surrogates too
agents = st.sampled_from(["a", "b", "é"])


@pytest.mark.sweep
@given(
    st.lists(st.tuples(st.integers(1, 3), texts, st.integers(0, 10**12)), max_size=12), st.data()
)
def test_whatever_is_recorded_is_valid_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    deltas: list[tuple[int, str, int]],
    data: st.DataObject,
) -> None:
    turns = sorted({turn for turn, _, _ in deltas})
    agent = {turn: data.draw(agents) for turn in turns}
    events = [
        *(starts(turn, agent[turn], seq, 7) for seq, turn in enumerate(turns)),
        *(
            says(turn, agent[turn], seq, text, t_ms)
            for seq, (turn, text, t_ms) in enumerate(deltas, start=3)
        ),
        *(ends(turn, agent[turn], 100 + turn, 9) for turn in turns),
    ]
    folder = tmp_path_factory.mktemp("trace")
    written(events, folder / "x.gz")
    written(data.draw(st.permutations(events)), folder / "y.gz")
    assert (folder / "x.gz").read_bytes() == (folder / "y.gz").read_bytes()
    lines = gzip.decompress((folder / "x.gz").read_bytes()).splitlines(keepends=True)
    assert [dump_line(trace_record.validate_json(line)) for line in lines] == lines
    trace = read_trace(folder / "x.gz")
    written(trace.events, folder / "z.gz")
    assert (folder / "x.gz").read_bytes() == (folder / "z.gz").read_bytes()
    for read in trace.turns:
        said = [text for turn, text, _ in deltas if turn == read.turn_id]
        assert [delta.text for delta in read.deltas] == [well_formed(text) for text in said]


def test_another_version_is_named(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "x.gz", lambda records: records[0].update(schema_version="1.0.0"))
    assert problem(read_trace, path) == "line 1: exaid.trace '1.0.0' cannot be read, only 2.0.0"
    path = rewritten(tmp_path / "x.gz", lambda records: records[0].pop("schema_version"))
    assert problem(read_trace, path) == "line 1: exaid.trace None cannot be read, only 2.0.0"


CONTRADICTIONS: list[tuple[Callable[[list[dict[str, Any]]], object], str]] = [
    (lambda r: r.clear(), "line 1: a trace begins with a trace_meta record"),
    (lambda r: r.pop(0), "line 1: a trace begins with a trace_meta record"),
    (lambda r: r.insert(3, r[0]), "line 4: a second trace_meta record"),
    (lambda r: r[0].pop("model"), "line 1: model: Field required"),
    (lambda r: r[2].pop("seq"), "line 3: stream_delta.seq: Field required"),
    (lambda r: r[2].update(case_id="case-8"), "line 3: a record of case-8 among case-7"),
    (lambda r: r[2].update(seq=0), "line 3: seq 0 after seq 0"),
    (lambda r: r.insert(2, r.pop(3)), "line 4: seq 1 after seq 2"),
    (lambda r: r[2].update(t_rel_ms=5), "line 3: t_rel_ms 5 is not its time less t0_emitted_ms"),
    (lambda r: r.pop(1), "line 2: turn 1 has not started"),
    (lambda r: r[3].update(turn_id=1), "line 4: turn 1 starts twice"),
    (lambda r: r[7].update(turn_id=2), "line 8: turn 2 has ended already"),
    (lambda r: r[2].update(agent_id="x"), "line 3: x speaks in turn 1 of doctor-1"),
    (lambda r: r[2].update(delta_text="f"), "line 8: content_hash is not that of the deltas of"),
    (lambda r: r.pop(4), "line 6: content_hash is not that of the deltas of turn 2"),
    (lambda r: r[0].update(total_deltas=4), "line 1: total_deltas is 4, but the file holds 3"),
    (lambda r: r[0].update(total_turns=1), "line 1: total_turns is 1, but the file holds 2"),
]


@pytest.mark.parametrize(("change", "what"), CONTRADICTIONS)
def test_a_trace_that_contradicts_itself_is_refused(
    tmp_path: Path, change: Callable[[list[dict[str, Any]]], object], what: str
) -> None:
    assert problem(read_trace, rewritten(tmp_path / "x.gz", change)).startswith(what)


def test_totals_and_hashes_may_be_missing(tmp_path: Path) -> None:
    def strip(records: list[dict[str, Any]]) -> None:
        for record in records:
            for name in ("total_turns", "total_deltas", "content_hash", "content_hash_input"):
                record.pop(name, None)

    trace = read_trace(rewritten(tmp_path / "x.gz", strip))
    assert [turn.text for turn in trace.turns] == ["Fever 39 °C\n", "Troponin "]


def test_a_plain_trace_is_read_as_well(tmp_path: Path) -> None:
    packed = written(two_turns(), tmp_path / "x.jsonl.gz")
    plain = tmp_path / "x.jsonl"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    assert read_trace(plain) == read_trace(packed)


def test_a_delta_of_another_writer_that_splits_a_character_is_read() -> None:
    line = '{"agent_id":"a","case_id":"case-7","delta_text":"\\ud83d","record_type":"stream_delta",'
    line += '"seq":1,"t_emitted_ms":1,"t_rel_ms":0,"turn_id":1}'
    record = trace_record.validate_python(json.loads(line))
    assert isinstance(record, StreamDelta)
    assert record.delta_text == "\ufffd"
