"""Lines that wait for the disk at the same time share one fsync."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdagents.records.line_log import LineLog
from mdagents_llm.files.whole_file import whole_file


class SlowDisk:
    """Replaces `os.fsync`; each call takes a moment, and fails while `is_full`."""

    def __init__(self) -> None:
        self.calls = 0
        self.threads = set[int]()
        self.is_full = False
        self.is_busy = threading.Event()

    def fsync(self, file: int) -> None:
        """Sync after a moment, or fail."""
        os.fstat(file)  # raises for a closed file
        self.calls += 1
        self.is_busy.set()
        self.threads.add(threading.get_ident())
        time.sleep(0.02)
        if self.is_full:
            raise OSError(28, "No space left on device")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    disk = SlowDisk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LineLog]:
    log = LineLog(tmp_path / "x.jsonl", syncs=False)
    yield log
    log.close()


async def _kept(log: LineLog, number: int) -> None:
    log.append(b"%d" % number)
    await log.synced()


async def test_lines_that_wait_together_share_an_fsync(log: LineLog, disk: SlowDisk) -> None:
    await asyncio.gather(*(_kept(log, number) for number in range(200)))
    assert disk.calls <= 2
    assert threading.get_ident() not in disk.threads


async def test_a_line_appended_during_an_fsync_waits_for_the_next(
    log: LineLog, disk: SlowDisk
) -> None:
    first = asyncio.create_task(_kept(log, 1))
    await asyncio.to_thread(disk.is_busy.wait)
    second = asyncio.create_task(_kept(log, 2))
    await first
    assert not second.done()
    await second
    assert disk.calls == 2
    await log.synced()
    assert disk.calls == 2


async def test_an_error_reaches_everybody_who_waits(log: LineLog, disk: SlowDisk) -> None:
    disk.is_full = True
    outcomes = await asyncio.gather(
        *(_kept(log, number) for number in range(5)), return_exceptions=True
    )
    assert all(isinstance(outcome, OSError) for outcome in outcomes)
    disk.is_full = False
    await log.synced()


async def test_a_cancelled_caller_does_not_stop_the_others(log: LineLog, disk: SlowDisk) -> None:
    tasks = [asyncio.create_task(_kept(log, number)) for number in range(5)]
    await asyncio.to_thread(disk.is_busy.wait)
    tasks[0].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[:2]] == [asyncio.CancelledError, type(None)]
    assert disk.calls == 1


async def test_a_file_is_closed_after_the_fsync_in_progress(tmp_path: Path, disk: SlowDisk) -> None:
    log = LineLog(tmp_path / "y.jsonl", syncs=False)
    waiting = asyncio.create_task(_kept(log, 1))
    await asyncio.to_thread(disk.is_busy.wait)
    log.close()
    await waiting
    log.sync()  # of a closed file: does nothing
    assert disk.calls == 1


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
async def test_a_file_system_without_fsync_keeps_a_run(
    log: LineLog, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # As on CIFS (https://github.com/bup/bup/pull/37) and others: syncthing/syncthing#5704.
    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    await _kept(log, 1)
    with whole_file(tmp_path / "run.json", sync=True) as file:
        file.write(b"{}")
    assert (tmp_path / "run.json").read_bytes() == b"{}"
