"""The ledger of a run is read back as it was written."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mdagents.records.calls import calls_at, read_calls
from mdagents.records.jsonl import whole_lines
from mdagents.records.line_log import LineLog
from mdagents_llm.chat import TokenUsage
from mdagents_llm.errors import ConfigError
from mdagents_llm.ledger import CallRow, Ledger

ROW = CallRow(
    started_at="2026-11-22T10:00:00.250Z",
    case_id="case-1",
    phase="opinion",
    agent="expert-1",
    role="expert",
    provider="openai",
    model_requested="gpt-4o-mini",
    model="gpt-4o-mini-2024-07-18",
    attempt=2,
    waited=0.5,
    latency=1.25,
    outcome="ok",
    usage=TokenUsage(100, 20, 40, 5),
    cost_usd=0.001,
)
ROWS = [
    ROW,
    replace(ROW, outcome="timeout", model="", usage=TokenUsage(), cost_usd=0.0),
    replace(ROW, cost_usd=None, cached=True),
    replace(ROW, prompt=("Which drug?", "Answer."), reply="Löß\u2028"),
]


def line(row: CallRow) -> bytes:
    return json.dumps(row.as_dict()).encode() + b"\n"


def test_rows_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b"".join(map(line, ROWS)) + line(ROW)[:-20])
    found = dict(read_calls(path))
    assert list(found.values()) == ROWS, "and without the torn one"
    assert list(calls_at(path, reversed(found))) == ROWS[::-1]
    assert (ROW.started_ms, ROW.ended_ms) == (1795341600250, 1795341601500)


def test_a_last_row_without_its_line_break_is_whole_unless_it_is_cut(tmp_path: Path) -> None:
    """Resumes of other programs drop it, or glue the next one to it (NousResearch/hermes-agent
    issue 112575, Modalities/modalities issue 395)."""
    path = tmp_path / "calls.jsonl"
    two = line(ROWS[0]) + line(ROWS[3]).rstrip()
    for end in range(len(line(ROWS[0])) - 1, len(two) + 1):
        path.write_bytes(two[:end])
        whole = ROWS[:1] + ROWS[3:] * (end == len(two))
        assert [row for _, row in read_calls(path)] == whole, end
        with closing(LineLog(path, syncs=False)) as log:
            log.append(line(ROWS[1]).rstrip())
        assert [row for _, row in read_calls(path)] == [*whole, ROWS[1]], end


def test_a_number_that_is_still_being_written_is_no_row(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"12")
    assert list(whole_lines(path)) == []


def test_a_run_without_calls_has_no_rows(tmp_path: Path) -> None:
    assert list(read_calls(tmp_path / "calls.jsonl")) == []


@pytest.mark.parametrize(
    "damaged",
    [
        b"not JSON",
        b"[]",
        b"12",
        b'{"agent": 1}',
        line(replace(ROW, started_at="2026-11-22T10:00:00")).strip(),
        line(ROW).strip().replace(b'"latency": 1.25', b'"latency": "long"'),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(line(ROW) + damaged + b"\n" + line(ROW))
    rows = read_calls(path)
    assert next(rows)[1] == ROW
    with pytest.raises(ConfigError, match=r"calls.jsonl line 2 is not a row of a ledger"):
        next(rows)


def test_a_ledger_tells_its_subscribers_until_they_leave() -> None:
    always: list[CallRow] = []
    meanwhile: list[CallRow] = []
    ledger = Ledger(always.append)
    ledger.add(ROWS[0])
    with ledger.subscribed(meanwhile.append):
        ledger.add(ROWS[1])
    ledger.add(ROWS[2])
    assert always == ROWS[:3]
    assert meanwhile == ROWS[1:2]
