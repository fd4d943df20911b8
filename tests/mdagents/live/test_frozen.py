"""Recorded traces and their run logs: what is found, what is played, and what is refused."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from exaid_core.logged_summaries import read_summaries
from exaid_core.trace.files import RecordError, write_gz
from exaid_core.trace.traces import read_trace, write_trace
from mdagents.live.case import LiveCase
from mdagents.live.frozen import find_traces, is_of_traces
from mdagents.live.replay import replayed_trace
from mdagents_llm.clock import timestamp_of
from mdagents_llm.errors import BenchError, ConfigError
from tests.conftest import REPOSITORY, SHARED
from tests.support.trace_events import ends, says, starts

(EXAMPLES,) = (REPOSITORY / "mdagents/examples").glob("*/run.json")
FIELDS = {
    "status_action": "Fever treated.", "key_findings": "39 °C.", "differential_rationale": "Flu.",
    "uncertainty_confidence": "Open.", "recommendation_next_step": "Test.",
    "agent_contributions": "nurse: measured.",
}  # fmt: skip
META = {"record_type": "run_meta", "case_id": "case-1.trace", "variant_id": "V0"}
SUMMARY = {
    "record_type": "summary_event", "timestamp": timestamp_of(1_000), "start_seq": 1, "end_seq": 3,
    "schema_ok": True, "latency_ms": 700, "summary_content": FIELDS,
}  # fmt: skip


def trace_at(path: Path) -> Path:
    events = [
        starts(1, "nurse", 0, 1_000), says(1, "nurse", 1, "Fever of ", 1_100),
        says(1, "nurse", 2, "39 °C.", 1_400), ends(1, "nurse", 3, 1_500),
    ]  # fmt: skip
    write_trace(
        path, events, case_id="case-1", mas_run_id="mas_1", mac_commit="0" * 40, model="m",
        created_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    return path


def log_at(path: Path, *records: object) -> Path:
    write_gz(path, [json.dumps(record).encode() + b"\n" for record in records])
    return path


def test_a_summary_comes_when_its_words_are_said_and_it_is_written(tmp_path: Path) -> None:
    trace = read_trace(trace_at(tmp_path / "case-1.trace.jsonl.gz"))
    failed = {**SUMMARY, "schema_ok": False, "summary_content": None}
    log = log_at(tmp_path / "log.jsonl.gz", META, failed, SUMMARY)
    ((at, summary),) = read_summaries(trace, log)
    assert (at, summary.agents, summary.source_seqs) == (2_100, ("nurse",), ((1, 2),))
    case = LiveCase(("case-1", 1))
    for line in replayed_trace(trace, [(at, summary)]):
        case.take(line)
    assert [turn.text for turn in case.turns] == ["Fever of 39 °C."]
    assert case.summaries[0].of_turns == (0,)
    assert (case.ended_at, case.question) == (2_100, None)


def test_logs_are_found_beside_a_trace_or_among_what_is_named(tmp_path: Path) -> None:
    trace = trace_at(tmp_path / "traces/case-1.trace.jsonl.gz")
    ((alone,), _) = find_traces([trace])
    assert (alone.log, alone.name, alone.address) == (None, "case-1", "/traces/1")
    log = log_at(tmp_path / "elsewhere/x.jsonl.gz", META, SUMMARY)
    other = log_at(tmp_path / "elsewhere/y.jsonl.gz", {**META, "variant_id": "V4"})
    found, _ = find_traces([tmp_path])
    assert [(one.name, one.log) for one in found] == [("case-1 · V0", log), ("case-1 · V4", other)]
    beside = tmp_path / "exaid/case-1.jsonl.gz"
    beside.parent.mkdir()
    shutil.copy(log, beside)
    ((here,), _) = find_traces([trace])
    assert here.log is not None
    assert here.log.samefile(beside)


def test_examples_are_whole_and_small() -> None:
    folder = EXAMPLES.parent
    files = [path for path in folder.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 400_000
    found, unreadable = find_traces([folder / "traces"])
    assert (len(found), unreadable) == (10, [])
    for one in found:
        assert one.log is not None
        assert len(read_summaries(read_trace(one.path), one.log)) == 3


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not here")
def test_published_traces_are_played_with_their_logs() -> None:
    found, unreadable = find_traces([SHARED / "traces", SHARED / "published_exaid"])
    assert not unreadable
    logged = [one for one in found if one.log]
    assert len(logged) == 16
    for one in logged[::5]:
        trace = read_trace(one.path)
        assert one.log is not None
        summaries = read_summaries(trace, one.log)
        last = trace.events[-1].t_ms
        assert summaries
        assert all(at < last + 60_000 for at, _ in summaries)


def damaged(tmp_path: Path) -> dict[str, bytes]:
    whole = trace_at(tmp_path / "whole.jsonl.gz").read_bytes()
    return {
        "cut": whole[: len(whole) // 2],
        "text": b"not a gzip file",
        "list": gzip.compress(b"[1, 2]\n"),
        "other": gzip.compress(b'{"record_type": "metrics"}\n'),
        "empty": gzip.compress(b""),
        "old": gzip.compress(b'{"record_type": "trace_meta", "schema_version": "1.0.0"}\n'),
        "deep": gzip.compress(b"[" * 100_000 + b"\n"),
    }


def test_a_damaged_file_is_refused_in_one_line_or_left_out_of_a_folder(tmp_path: Path) -> None:
    for name, content in damaged(tmp_path).items():
        path = tmp_path / f"{name}.trace.jsonl.gz"
        path.write_bytes(content)
        with pytest.raises(BenchError) as raised:
            find_traces([path])
        assert "\n" not in str(raised.value)
    (tmp_path / "whole.jsonl.gz").rename(tmp_path / "a.trace.jsonl.gz")
    found, unreadable = find_traces([tmp_path])
    assert "case-1" in [one.case_id for one in found]
    assert len(unreadable) >= 5


def test_a_damaged_log(tmp_path: Path) -> None:
    trace = read_trace(trace_at(tmp_path / "case-1.trace.jsonl.gz"))
    for wrong in (
        {**SUMMARY, "timestamp": "2025-99-99T00:00:00Z"},
        {**SUMMARY, "start_seq": -1},
        {**SUMMARY, "summary_content": {"other": 1}},
        {**SUMMARY, "summary_content": "text"},
    ):
        with pytest.raises(RecordError):
            read_summaries(trace, log_at(tmp_path / "log.jsonl.gz", META, wrong))


def test_what_is_no_trace(tmp_path: Path) -> None:
    assert not is_of_traces(EXAMPLES.parent)  # a run, which has a page of its own
    assert is_of_traces(EXAMPLES.parent / "traces")
    with pytest.raises(ConfigError, match="there is no file"):
        find_traces([tmp_path / "missing.trace.jsonl.gz"])
    with pytest.raises(ConfigError, match="no trace"):
        find_traces([tmp_path])
