"""Traces of a run without EXAID are in one journal, those of others in a file each."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from evals.trace_files import trace_files
from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.files import RecordError, packed
from exaid_core.trace.journal import journaled_trace
from exaid_core.trace.names import JOURNAL
from exaid_core.trace.traces import trace_lines
from mdagents.records.case_files import CaseFolder, read_case
from mdagents_llm.errors import ConfigError, StorageError


def trace(case_id: str, text: str) -> bytes:
    events = [
        TraceEvent(0, 1_000, 1, "expert", EventKind.START, ""),
        TraceEvent(1, 1_001, 1, "expert", EventKind.DELTA, text),
        TraceEvent(2, 1_002, 1, "expert", EventKind.END, ""),
    ]
    return packed(
        trace_lines(
            events,
            case_id=case_id,
            mas_run_id="mas_1",
            mac_commit="unknown",
            model="m",
            created_at="2026-11-27T00:00:00Z",
        )
    )


def said(folder: Path, case_id: str) -> str:
    found = read_case(folder, case_id)
    assert found is not None
    return "".join(turn.text for turn in found.turns)


def test_a_journal_takes_the_place_of_a_file_for_each_trace(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path, journals=True)
    files.keep_trace("case-1", trace("case-1", "one"))
    files.keep_trace("case-2", trace("case-2", "two"))
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]
    assert (said(tmp_path, "case-1"), said(tmp_path, "case-2")) == ("one", "two")
    assert read_case(tmp_path, "case-3") is None
    files.close()


def test_without_a_journal_each_trace_has_its_file(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path)
    files.keep_trace("case-1", trace("case-1", "one"))
    assert not (tmp_path / JOURNAL).exists()
    assert said(tmp_path, "case-1") == "one"
    assert files.content("case-1") == trace("case-1", "one")
    with pytest.raises(RecordError, match="cannot be read"):
        files.trace("case-2")
    with pytest.raises(FileNotFoundError):
        files.content("case-2")


def test_the_latest_trace_of_a_case_counts_also_before_a_file(tmp_path: Path) -> None:
    """An earlier version began the run, and the question is answered again."""
    for text, journals in (("first", False), ("second", True), ("last", True)):
        files = CaseFolder(tmp_path, journals=journals)
        assert files.are_quick is journals
        files.keep_trace("case-1", trace("case-1", text))
        files.close()
        assert said(tmp_path, "case-1") == text


def test_a_line_that_a_kill_tore_is_dropped(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path, journals=True)
    files.keep_trace("case-1", trace("case-1", "one"))
    files.keep_trace("case-2", trace("case-2", "two"))
    files.close()
    whole = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(whole[:-30])
    assert read_case(tmp_path, "case-2") is None
    files = CaseFolder(tmp_path, journals=True)
    files.keep_trace("case-2", trace("case-2", "answered again"))
    files.close()
    assert said(tmp_path, "case-2") == "answered again"
    assert said(tmp_path, "case-1") == "one"


def test_a_tail_torn_anywhere_takes_no_line_with_it(tmp_path: Path) -> None:
    """Public reports: the next record is glued to the torn line, and both are lost."""
    files = CaseFolder(tmp_path, journals=True)
    files.keep_trace("case-1", b"one")
    files.keep_trace("case-2", bytes(90))
    files.close()
    whole = (tmp_path / JOURNAL).read_bytes()
    first_end = whole.index(b"\n")  # a line break that is missing takes nothing with it
    for cut in range(len(whole)):
        (tmp_path / JOURNAL).write_bytes(whole[:cut])
        files = CaseFolder(tmp_path, journals=True)
        files.keep_trace("case-3", b"three")
        files.close()
        assert journaled_trace(tmp_path, "case-3") == b"three", cut
        assert journaled_trace(tmp_path, "case-1") == (b"one" if cut >= first_end else None), cut
        assert journaled_trace(tmp_path, "case-2") == (bytes(90) if cut + 1 == len(whole) else None)


def test_a_long_trace_is_one_line(tmp_path: Path) -> None:
    """A public report: lines beyond 512 KiB were written in two pieces, with another between."""
    files = CaseFolder(tmp_path, journals=True)
    long = bytes(range(256)) * 6_000
    files.keep_trace("case-1", long)
    files.keep_trace("case-2", b"two")
    files.close()
    assert journaled_trace(tmp_path, "case-1") == long
    assert journaled_trace(tmp_path, "case-2") == b"two"


def test_a_full_disk_is_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CaseFolder(tmp_path, journals=True)

    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(
            StorageError, match=r"cannot write .*trace_journal\.jsonl: No space left"
        ):
            files.keep_trace("case-1", trace("case-1", "one"))
    files.keep_trace("case-1", trace("case-1", "one"))
    assert said(tmp_path, "case-1") == "one"
    files.close()


def test_a_trace_that_comes_after_the_end_is_written_nowhere(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path, journals=True)
    files.close()
    files.close()
    with (
        (tmp_path / "other").open("wb"),  # may get the descriptor of the journal
        pytest.raises(StorageError, match="the file is closed"),
    ):
        files.keep_trace("case-1", trace("case-1", "late"))
    assert (tmp_path / "other").read_bytes() == b""
    assert read_case(tmp_path, "case-1") is None


def test_the_evaluation_of_exaid_reads_a_journal_too(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path, journals=True)
    files.keep_trace("case-1", trace("case-1", "one"))
    assert [path.name for path in trace_files([tmp_path])] == ["case-1.trace.jsonl.gz"]
    files.keep_trace("case-2", trace("case-2", "two"))
    assert len(trace_files([tmp_path])) == 2
    files.close()


def test_nothing_is_unpacked_in_a_read_only_folder(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path, journals=True)
    files.keep_trace("case-1", trace("case-1", "one"))
    files.close()
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(ConfigError, match="is read-only"):
            trace_files([tmp_path])
        assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]
    finally:
        tmp_path.chmod(0o755)


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    files = CaseFolder(tmp_path)
    files.keep_trace("case-1", trace("case-1", "one")[:-20])
    with pytest.raises(RecordError, match="cut short; delete this file to go without its turns"):
        read_case(tmp_path, "case-1")
