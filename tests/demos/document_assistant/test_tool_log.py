"""The audit: one line a call whatever is in it, a file a month, and never silently missing."""

from __future__ import annotations

import ast
import re
import resource
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import filelock
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demos.document_assistant.tool_log import ToolLogger
from mdagents_llm.errors import StorageError
from tests.conftest import REPOSITORY

LINE = re.compile(r"(\S+) INFO tool:(\w+) session=(\S+) input=(.*) output=(.*)")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def logger(file: Path, *times: str, redacts: bool = False) -> ToolLogger:
    clock = iter(times or ("2026-11-23T10:12:25",) * 1000)
    return ToolLogger(file, redacts=redacts, now=lambda: at(next(clock)))


def test_a_line_is_as_the_design_has_it(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "tools.log"
    logger(file).log("calculator", "10 / 2", "Result: 5", session="abc123")
    assert file.read_text() == (
        "2026-11-23T10:12:25Z INFO tool:calculator session=abc123 "
        "input='10 / 2' output='Result: 5'\n"
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(given_=st.text(), got=st.text())
def test_no_text_makes_a_line_of_its_own(tmp_path: Path, given_: str, got: str) -> None:
    file = tmp_path / "tools.log"
    file.unlink(missing_ok=True)
    logger(file).log("calculator", given_, got)
    (line,) = file.read_text(encoding="utf-8").splitlines()
    match = LINE.fullmatch(line)
    assert match
    assert line.isprintable()
    assert f"input={given_!r} output={got!r}" in line
    assert ast.literal_eval(repr(given_)) == given_


def test_redacted(tmp_path: Path) -> None:
    file = tmp_path / "tools.log"
    log = logger(file, redacts=True)
    for expression in ("4200 * 2", "4200 * 2", "17"):
        log.log("calculator", expression, "Result: 1")
    text = file.read_text()
    assert "4200" not in text
    first, second, third = (LINE.fullmatch(line) for line in text.splitlines())
    assert first
    assert second
    assert third
    assert re.fullmatch(r"<8 characters, [0-9a-f]{12}>", first[4])
    assert first[4] == second[4] != third[4]
    other = tmp_path / "other.log"
    logger(other, redacts=True).log("calculator", "4200 * 2", "")
    assert first[4] not in other.read_text(), "nobody can look a hash up"


def test_a_new_month_begins_a_new_file(tmp_path: Path) -> None:
    file = tmp_path / "tools.log"
    times = ("2026-10-30T00:00:00", "2026-10-31T23:59:59", "2026-11-01T00:00:00")
    one, other = logger(file, *times), logger(file, "2026-11-02T00:00:00")
    for number in range(3):
        one.log("calculator", str(number), "")
    other.log("calculator", "3", "")
    assert [line[:7] for line in file.read_text().splitlines()] == ["2026-11"] * 2
    earlier = tmp_path / "tools.2026-10.log"
    assert [line[:10] for line in earlier.read_text().splitlines()] == ["2026-10-30", "2026-10-31"]


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    with pytest.raises(StorageError, match=r"logs.tools\.log cannot be written: "):
        logger(tmp_path / "logs" / "tools.log").log("calculator", "1", "1")


def test_a_month_that_is_kept_is_never_replaced(tmp_path: Path) -> None:
    file = tmp_path / "tools.log"
    times = ("2026-10-30T00:00:00", "2026-11-01T00:00:00", "2026-10-31T23:59:59")
    log = logger(file, *times, "2026-11-01T00:00:01", "2026-11-01T00:00:02")
    for number in range(5):
        log.log("calculator", f"call {number}", "")
    files = sorted(tmp_path.glob("tools*.log"))
    assert [one.name for one in files] == [
        *("tools.2026-10.2.log", "tools.2026-10.log", "tools.2026-11.log", "tools.log"),
    ]
    written = "".join(one.read_text() for one in files)
    assert sorted(re.findall("call [0-9]", written)) == [f"call {number}" for number in range(5)]
    assert all(len({line[:7] for line in one.read_text().splitlines()}) == 1 for one in files)


def test_the_time_is_that_of_writing(tmp_path: Path) -> None:
    """A line that waited for another process while a month began is one of the new month."""
    file = tmp_path / "tools.log"
    lock = filelock.FileLock(tmp_path / ".tools.log.lock")
    taken: list[bool] = []

    def now() -> datetime:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            taken.append(True)
        return at("2026-11-23T10:12:25")

    ToolLogger(file, now=now).log("calculator", "1", "1")
    assert taken == [True]


def test_a_line_that_a_killed_process_left_unfinished(tmp_path: Path) -> None:
    file = tmp_path / "tools.log"
    file.write_text("2026-11-23T10:1")
    logger(file).log("calculator", "1", "2")
    logger(file, "2026-12-01T00:00:00").log("calculator", "3", "4")
    kept = (tmp_path / "tools.2026-11.log").read_text().splitlines()
    assert kept[0] == "2026-11-23T10:1"
    assert LINE.fullmatch(kept[1])
    assert len(file.read_text().splitlines()) == 1


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "tools.log"
    logger(file).log("calculator", "1", "2")
    before = file.read_text()
    earlier = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"tools\.log cannot be written: "):
            logger(file).log("calculator", "1", "2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, earlier)
    assert file.read_text() == before
    logger(file).log("calculator", "1", "2")
    assert file.read_text() == before * 2


@pytest.mark.process
def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from datetime import UTC, datetime\n"
        "from demos.document_assistant.tool_log import ToolLogger\n"
        "log = ToolLogger(Path(sys.argv[1]), now=lambda: datetime.now(UTC))\n"
        "for number in range(100): log.log('calculator', 'x' * 500, str(number))"
    )
    file = tmp_path / "tools.log"
    command = [sys.executable, "-c", program, str(file)]
    running = [subprocess.Popen(command, cwd=REPOSITORY) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    lines = file.read_text().splitlines()
    assert len(lines) == 300
    assert all(LINE.fullmatch(line) for line in lines)


def test_only_its_owner_can_read_the_audit(tmp_path: Path) -> None:
    """One that others could read, of an earlier version, is closed to them; so is its month."""
    file = tmp_path / "logs" / "tools.log"
    log = logger(file, "2026-11-23T10:12:25", "2026-11-24T10:12:25", "2026-12-01T10:12:25")
    log.log("calculator", "1", "1")
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.chmod(0o644)
    log.log("calculator", "1", "1")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)
    log.log("calculator", "1", "1")
    modes = {one.name: one.stat().st_mode & 0o777 for one in file.parent.glob("tools*.log")}
    assert modes == {"tools.log": 0o600, "tools.2026-11.log": 0o600}
