"""Traces in the journal of a run, which may be in progress in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from exaid_core.trace.files import RecordError, packed
from exaid_core.trace.journal import journal_line, journaled_trace, unpack_journal
from exaid_core.trace.names import JOURNAL, TRACE_SUFFIX


def content(text: str) -> bytes:
    return packed([text.encode() * 100])


def append(folder: Path, case_id: str, text: str) -> None:
    with (folder / JOURNAL).open("ab") as file:
        file.write(journal_line(case_id, content(text)) + b"\n")


def test_a_journal_is_read_while_it_grows(tmp_path: Path) -> None:
    assert journaled_trace(tmp_path, "case-1") is None  # no journal yet
    append(tmp_path, "case-1", "one")
    assert journaled_trace(tmp_path, "case-1") == content("one")
    assert journaled_trace(tmp_path, "case-2") is None
    append(tmp_path, "case-2", "two")
    append(tmp_path, "case-1", "answered again")
    assert journaled_trace(tmp_path, "case-2") == content("two")
    assert journaled_trace(tmp_path, "case-1") == content("answered again")


def test_a_torn_last_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    append(tmp_path, "case-1", "one")
    line = journal_line("case-2", content("two")) + b"\n"
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(line[:40])
    assert journaled_trace(tmp_path, "case-2") is None
    assert journaled_trace(tmp_path, "case-1") == content("one")
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(line[40:])
    assert journaled_trace(tmp_path, "case-2") == content("two")


def test_another_journal_at_the_same_path_is_read_anew(tmp_path: Path) -> None:
    for case_id in ("case-1", "case-2"):
        append(tmp_path, case_id, "before")
    assert journaled_trace(tmp_path, "case-2") == content("before")
    (tmp_path / JOURNAL).unlink()
    assert journaled_trace(tmp_path, "case-2") is None
    for case_id in ("case-3", "case-1", "case-4"):
        append(tmp_path, case_id, "after")
    (tmp_path / JOURNAL).rename(tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / JOURNAL)
    assert journaled_trace(tmp_path, "case-1") == content("after")
    assert journaled_trace(tmp_path, "case-2") is None


@pytest.mark.parametrize("length", [1, 40, 190])
def test_a_journal_that_was_replaced_at_once_is_read_anew(tmp_path: Path, length: int) -> None:
    """A run is started over, and has other lines at the places of those before."""
    first = f"case-{'a' * length}"
    for case_id in (first, "case-2", "case-3"):
        append(tmp_path, case_id, "before")
    assert journaled_trace(tmp_path, "case-2") == content("before")
    (tmp_path / JOURNAL).write_bytes(journal_line(first, content("before")) + b"\n")
    for case_id in ("case-3", "case-2"):
        append(tmp_path, case_id, f"{case_id} after")
    assert journaled_trace(tmp_path, "case-2") == content("case-2 after")
    assert journaled_trace(tmp_path, "case-3") == content("case-3 after")


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"case_id":"case-2","trace":"AAA"}',
        b'{"case_id":"case-2","trace":"A!=="}',
        b'{"case_id":"../../evil","trace":"AAAA"}',
        b'{"case_id":"case-2","trace":""}',
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    append(tmp_path, "case-1", "one")
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(line + b"\n")
    append(tmp_path, "case-3", "three")
    assert journaled_trace(tmp_path, "case-1") == content("one")
    assert journaled_trace(tmp_path, "case-3") == content("three")
    for _ in range(2):
        with pytest.raises(
            RecordError,
            match=r"trace_journal\.jsonl line 2: is not a trace of a case; delete this line\Z",
        ):
            journaled_trace(tmp_path, "case-2")
    with pytest.raises(RecordError, match="line 2"):
        unpack_journal(tmp_path)


def test_a_journal_is_unpacked_into_files_once(tmp_path: Path) -> None:
    unpack_journal(tmp_path)
    assert list(tmp_path.iterdir()) == []
    append(tmp_path, "case-1", "one")
    append(tmp_path, "case-2", "two")
    unpack_journal(tmp_path)
    files = {path.name: path for path in (tmp_path / "traces").iterdir()}
    assert {name: path.read_bytes() for name, path in files.items()} == {
        f"case-1{TRACE_SUFFIX}": content("one"),
        f"case-2{TRACE_SUFFIX}": content("two"),
    }
    before = {name: path.stat().st_ino for name, path in files.items()}
    append(tmp_path, "case-2", "answered again")
    unpack_journal(tmp_path)
    assert files[f"case-1{TRACE_SUFFIX}"].stat().st_ino == before[f"case-1{TRACE_SUFFIX}"]
    assert files[f"case-2{TRACE_SUFFIX}"].read_bytes() == content("answered again")


def test_a_journal_that_is_no_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).mkdir()
    with pytest.raises(RecordError, match="cannot be read"):
        journaled_trace(tmp_path, "case-1")


def test_an_editor_may_have_saved_a_journal(tmp_path: Path) -> None:
    for case_id in ("case-1", "case-2"):
        append(tmp_path, case_id, case_id)
    lines = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    assert journaled_trace(tmp_path, "case-1") == content("case-1")
    assert journaled_trace(tmp_path, "case-2") == content("case-2")
    assert journaled_trace(tmp_path, "case-3") is None
