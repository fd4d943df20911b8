"""Runs that many look at: who leaves at any moment leaves no task, no file and no wrong state."""

from __future__ import annotations

import asyncio
import gc
import random
import select
import shutil
import sqlite3
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from mdagents.agents.case import make_case_id
from mdagents.agents.events import Started, TurnBegan
from mdagents.datasets.questions import Question
from mdagents.view.follower import RunWatch, Watches
from mdagents.view.record_index import RecordIndex
from mdagents.view.results import read_recorded
from tests.mdagents.view.served import ITEM, feed
from tests.support.sweeps import seeds

pytestmark = pytest.mark.process

QUESTION = Question("12", "Why?", {"A": "One", "B": "Two"}, "A", {"A": "B", "B": "A"})
CASE = make_case_id(*ITEM)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at files in /proc")
@pytest.mark.parametrize("seed", seeds(12))
async def test_who_is_cancelled_leaves_nothing_behind(seed: int, unfinished: Path) -> None:
    chance = random.Random(seed)

    def held() -> tuple[set[asyncio.Task[object]], list[str]]:
        gc.collect()  # runs in this process have made the collector rare
        files = (path for path in Path("/proc/self/fd").iterdir() if path.exists())
        return asyncio.all_tasks(), sorted(str(path.resolve()) for path in files)

    async def look(page: str, opened: asyncio.Event) -> None:
        watch = await watches.of(unfinished.name)
        assert isinstance(watch, RunWatch)
        async with aclosing(watch.pages.updates(page, chance.choice((0, 1)))) as updates:
            async for _ in updates:
                opened.set()

    with feed(unfinished) as tell:
        tell(Started(QUESTION))
        before = held()
        watches = Watches(Path("output"))
        opened = [asyncio.Event() for _ in range(6)]
        readers = [asyncio.create_task(look(chance.choice(("", CASE)), one)) for one in opened]
        for reader in chance.sample(readers, 4):
            await asyncio.sleep(chance.random() / 30)
            tell(TurnBegan("nurse", "Nurse", "opinion"))
            reader.cancel()
        stay = [place for place, reader in enumerate(readers) if not reader.cancelling()]
        async with asyncio.timeout(20):
            for place in stay:
                await opened[place].wait()
            ending = asyncio.create_task(watches.end())
            await asyncio.sleep(chance.random() / 100)
            ending.cancel()
            await asyncio.wait([ending])
            await watches.end()
            await asyncio.gather(*(readers[place] for place in stay))
            await asyncio.sleep(0)
            if left := asyncio.all_tasks() - before[0]:
                await asyncio.wait(left)
        latest = time.monotonic() + 20
        while held() != before:  # a thread of the system's notices closes its files
            assert time.monotonic() < latest
            select.select([], [], [], 0.01)
        watch = await watches.of(unfinished.name)
        assert isinstance(watch, RunWatch)
        assert len(watch.live.cases[ITEM].turns) == 4


async def test_an_error_of_reading_is_told_to_who_is_there(unfinished: Path) -> None:
    watches = Watches(Path("output"))
    (unfinished / "samples.jsonl").unlink()
    (unfinished / "samples.jsonl").mkdir()
    leaving = asyncio.create_task(watches.of(unfinished.name))
    for _ in range(3):
        await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    watch = await watches.of(unfinished.name)
    assert isinstance(watch, RunWatch)
    assert "samples.jsonl" in watch.trouble


async def test_files_that_vanish_while_they_are_looked_at(
    unfinished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = await Watches(Path("output")).of(unfinished.name)
    assert isinstance(watch, RunWatch)
    decided = watch.index.last()
    assert decided is not None
    (unfinished / "calls.jsonl").unlink()
    with monkeypatch.context() as a_moment_ago:
        a_moment_ago.setattr(Path, "exists", lambda path: True)
        assert read_recorded(watch.run, watch.index, decided) is not None
        shutil.rmtree(unfinished)
        assert watch.index.unread < 0
        await watch.refresh()
    assert watch.index.last() is None


async def test_an_index_that_is_freed_closes_its_database(
    unfinished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []

    def connect(name: str, **how: Any) -> sqlite3.Connection:
        opened.append(sqlite3.Connection(name, **how))
        return opened[-1]

    watch = await Watches(Path("output")).of(unfinished.name)
    assert isinstance(watch, RunWatch)
    monkeypatch.setattr("mdagents.view.record_index.sqlite3.connect", connect)
    index = RecordIndex(watch.run.folder, watch.run.manifest)
    assert opened[0].execute("SELECT 1").fetchone() == (1,)
    del index
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
