"""Damaged files: a clear line for each problem, never a traceback."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evals.cli.replay import main as replay
from evals.cli.validate_logs import main as validate
from evals.manifest import make_manifest, write_manifest
from evals.trace_files import trace_files
from evals.validation import validate_file
from tests.conftest import REAL_TRACES
from tests.evals.conftest import read_lines, write_trace

Lines = list[dict[str, Any]]


def write_lines(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    return [f"{p.line} {p.field}: {p.what}" for p in validate_file(path)]


# Traces


def swap(lines: Lines) -> None:
    lines[4], lines[5] = lines[5], lines[4]


def set_field(index: int, field: str, value: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        lines[index][field] = value

    return change


def drop(index: int) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        del lines[index]

    return change


def repeat(index: int) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        lines.insert(index, lines[index])

    return change


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (swap, "6 seq: 3 comes after 4"),
        (repeat(4), "6 seq: 3 comes twice"),
        (drop(4), "5 seq: 4 follows 2: a gap of 1"),
        (set_field(0, "schema_version", "9.0.0"), "1 schema_version: exaid.trace '9.0.0' is not"),
        (set_field(3, "seq", "2"), '4 seq: "2" is not of type "integer"'),
        (set_field(3, "colour", "red"), "4 : Additional properties are not allowed ('colour'"),
        (set_field(3, "case_id", "case-9"), "4 case_id: case-9 in a trace of case-1"),
        (set_field(3, "t_rel_ms", 1), "4 t_rel_ms: 1 is not the record's time less"),
        (set_field(3, "delta_text", "changed"), "content_hash: it is not that of the deltas of"),
        (set_field(3, "turn_id", 7), "4 turn_id: turn 7 has not started"),
        (set_field(3, "agent_id", "b"), "4 agent_id: b speaks in turn 1 of doctor0"),
        (set_field(3, "record_type", "what"), "4 : record_type is none of this format"),
        (set_field(0, "total_deltas", 5), "total_deltas: trace_meta says 5, the file holds"),
        (drop(0), "1 record_type: a trace begins with a trace_meta record"),
        (repeat(0), "2 record_type: a second trace_meta record"),
        (drop(-1), "turn_id: turn 3 does not end"),
    ],
)
def test_damaged_traces(tmp_path: Path, damage: Callable[[Lines], None], expected: str) -> None:
    whole = write_trace(tmp_path)
    assert problems(whole) == []
    lines = read_lines(whole)
    damage(lines)
    found = problems(write_lines(tmp_path / "damaged.jsonl", lines))
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "1 : the file holds no record"),
        (b"{}\n", "1 record_type: None begins none of exaid.manifest, exaid.trace"),
        (b"[1]\n", "1 : not a JSON object"),
        (b'{"record_type": \n', "1 : not JSON"),
        (b'{"record_type": ["x"]}\n', "1 record_type: ['x'] begins none of"),
        (b"\xff\xfe\n", "1 : not UTF-8 at byte 1"),
        (b'{"a": "' + b"x" * 10_000_000 + b'"}\n', "1 : longer than 8388608 bytes"),
        (b'{"a": NaN}\n', "1 : not JSON: NaN is not a number"),
    ],
    ids=["empty", "no-type", "array", "cut", "list-type", "encoding", "10-mb", "nan"],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    assert [problem for problem in problems(path) if expected in problem]


def test_a_trace_without_its_meta_record_is_still_checked(tmp_path: Path) -> None:
    lines = read_lines(write_trace(tmp_path))[1:]
    path = write_lines(tmp_path / "damaged.jsonl", lines)
    first = "1 record_type: a trace begins with a trace_meta record"
    assert problems(path) == [first]
    repeat(4)(lines)
    assert problems(write_lines(path, lines))[:2] == [first, "6 seq: 4 comes twice"]


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("field", ["case_id", "record_type", "schema_version", "seq"])
@pytest.mark.parametrize("value", ["\ud800", "9" * 5000, [], {}, 10**30, None])
def test_no_value_of_a_field_is_a_traceback(
    tmp_path: Path, index: int, field: str, value: object
) -> None:
    lines = read_lines(write_trace(tmp_path))
    lines[index][field] = value
    found = list(validate_file(write_lines(tmp_path / "x.jsonl", lines)))
    assert found
    assert all(str(problem).isprintable() for problem in found)


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    whole = write_trace(tmp_path).read_bytes()
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    (problem,) = problems(cut)
    assert "the compressed file is cut short" in problem


@pytest.mark.sweep
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    meta, start, delta, *_ = read_lines(write_trace(tmp_path))
    meta = {k: v for k, v in meta.items() if not k.startswith("total_")}
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for line in (meta, start):
            file.write(json.dumps(line) + "\n")
        for seq in range(1, 20_000):
            file.write(json.dumps(delta | {"seq": seq, "delta_text": "x" * 100}) + "\n")
    tracemalloc.start()
    found = list(validate_file(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [problem.what for problem in found] == ["turn 1 does not end"]
    assert peak < 1_000_000 < path.stat().st_size


@pytest.mark.sweep
@pytest.mark.skipif(not REAL_TRACES, reason="the shared traces are not here")
def test_published_traces_are_valid() -> None:
    assert validate(list(map(str, REAL_TRACES))) == 0


# Run logs


@pytest.fixture
def run_log(traces: Path, model_options: Callable[..., list[str]]) -> Path:
    assert replay([str(traces), "--variants", "V4", *model_options()]) == 0
    return traces / "data" / "runs" / "V4" / "case-1.jsonl.gz"


def first_of(lines: Lines, kind: str) -> int:
    return next(i for i, line in enumerate(lines) if line["record_type"] == kind)


@pytest.mark.sweep
def test_damaged_run_logs(run_log: Path, tmp_path: Path) -> None:
    whole = read_lines(run_log)
    assert problems(run_log) == []
    flush, decision, event = (
        first_of(whole, kind) for kind in ("tokengate_flush", "buffer_decision", "summary_event")
    )

    def found_after(damage: Callable[[Lines], None]) -> list[str]:
        lines: Lines = json.loads(json.dumps(whole))
        damage(lines)
        return problems(write_lines(tmp_path / "damaged.jsonl", lines))

    for damage, expected in [
        (set_field(flush, "flush_index", 5), "flush_index: 5 comes first, not 0"),
        (set_field(decision, "decision_id", "case-1-V4-bd-777"), "should be case-1-V4-bd-000"),
        (set_field(decision, "covered", [99]), "covered: there is no tokengate_flush 99"),
        (
            set_field(event, "latest_summary_event_id", "case-1-V4-se-777"),
            "latest_summary_event_id: there is no summary case-1-V4-se-777 before",
        ),
        (
            set_field(event, "summary_history_event_ids", ["case-1-V4-se-777"]),
            "summary_history_event_ids: there is no summary",
        ),
        (set_field(event, "end_seq", 0), "end_seq: 0 is before start_seq"),
        (set_field(event, "variant_id", "V1"), "variant_id: V1 in a run log of V4"),
        (set_field(event, "llm_usage", {"prompt_ctu": 1}), "llm_usage: "),
        (repeat(event), "event_id: case-1-V4-se-000 comes twice"),
        (repeat(0), "record_type: a second run_meta record"),
        (drop(0), "record_type: a run log begins with a run_meta record"),
        (lambda lines: lines.append(lines[flush]), "record_type: tokengate_flush after summary"),
        (set_field(0, "schema_version", "7.0"), "schema_version: exaid.run '7.0' is not known"),
    ]:
        assert any(expected in problem for problem in found_after(damage)), expected
    assert found_after(lambda lines: lines[decision].pop("end_seq")) == []


# Manifests


def test_damaged_manifests(traces: Path, tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    write_manifest(path, make_manifest(trace_files([traces])))
    assert problems(path) == []
    whole = read_lines(path)

    def found_after(damage: Callable[[Lines], None]) -> list[str]:
        lines: Lines = json.loads(json.dumps(whole))
        damage(lines)
        return problems(write_lines(path, lines))

    other = "sha256:" + "0" * 64
    for damage, expected in [
        (set_field(2, "sha256", other), "trace_dataset_hash: it is not that of the entries"),
        (set_field(-1, "total_turns", 1), "total_turns: the summary says 1, the entries 6"),
        (drop(1), "record_type: there is no provenance record"),
        (drop(-1), "record_type: there is no summary record"),
        (repeat(2), "case_id: case-1 comes twice"),
        (set_field(1, "colour", "red"), "Additional properties are not allowed"),
    ]:
        assert any(expected in problem for problem in found_after(damage)), expected


# The program


def test_the_program_prints_a_line_for_each_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_trace(tmp_path)
    assert validate([str(good)]) == 0
    assert capsys.readouterr().out == "1 file checked, 0 problems\n"
    lines = read_lines(good)
    drop(4)(lines)
    bad = write_lines(tmp_path / "bad.jsonl", lines)
    assert validate([str(good), str(bad), "--schema", "exaid.trace"]) == 1
    *told, last = capsys.readouterr().out.splitlines()
    assert told[0] == f"{bad} line 5: seq: 4 follows 2: a gap of 1"
    assert last == f"2 files checked, {len(told)} problems"


def test_the_program_takes_any_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "own.json"
    schema.write_text('{"required": ["colour"]}')
    path = write_lines(tmp_path / "own.jsonl", [{"colour": 1}, {"size": 2}])
    assert validate([str(path), "--schema", str(schema)]) == 1
    assert capsys.readouterr().out.startswith(f'{path} line 2: "colour" is a required property')
    schema.write_text('{"type": 7}')
    assert validate([str(path), "--schema", str(schema)]) == 2
    assert validate([str(path), "--schema", "nothing"]) == 2
    assert all(line.startswith("error: ") for line in capsys.readouterr().err.splitlines())


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate([str(tmp_path / "none.jsonl")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().out
