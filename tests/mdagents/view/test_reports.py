"""Reports made by the server: how many at a time, how long kept, and who does not wait for them."""

from __future__ import annotations

import asyncio
import os
import random
import select
import socket
import sys
import time
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import expect

from mdagents.live import LIVE_FILE
from mdagents.view.reports import Folders, Reports, make_report
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider
from tests.mdagents.view.served import children, serving
from tests.support.browser import CHROMIUM, open_page, problems
from tests.support.sweeps import seeds
from tests.support.whole_runs import Run


class Maker:
    """Makes reports as slowly as it is told to."""

    def __init__(self) -> None:
        self.made: list[Folders] = []
        self.at_work: list[Folders] = []
        self.most = 0
        self.goes = asyncio.Event()

    async def __call__(self, folders: Folders, common: bool) -> bytes:
        assert folders not in self.at_work, "one at a time"
        self.at_work.append(folders)
        self.most = max(self.most, len(self.at_work))
        try:
            await self.goes.wait()
        finally:
            self.at_work.remove(folders)
        self.made.append(folders)
        return str(folders).encode()


@pytest.fixture
def folders(tmp_path: Path) -> list[Folders]:
    """Folders of three runs, and two of them together."""
    runs = [tmp_path / name for name in "abc"]
    for run in runs:
        run.mkdir()
        (run / "run.json").write_text("{}")
    return [*((run,) for run in runs), (runs[0], runs[1])]


async def test_a_report_is_made_once_until_the_run_goes_on(folders: list[Folders]) -> None:
    maker = Maker()
    reports = Reports(maker)
    maker.goes.set()
    first, second, third, _ = folders
    for _ in range(2):
        assert len(set(await asyncio.gather(*map(reports.of, [first, second, first])))) == 2
    assert sorted(maker.made) == [first, second]
    (first[0] / LIVE_FILE).write_text("a line")  # nothing that a report tells of
    await reports.of(first)
    assert len(maker.made) == 2
    (first[0] / "samples.jsonl").write_text("a record")
    await asyncio.gather(*map(reports.of, [first, second, third]))
    assert sorted(maker.made[2:]) == [first, third]


async def test_no_more_is_kept_than_has_room(folders: list[Folders]) -> None:
    made = 0

    async def make(of: Folders, common: bool) -> bytes:
        nonlocal made
        made += 1
        return bytes(15_000_000)

    reports = Reports(make)
    for of in (folders[0], folders[0], folders[1], folders[0]):
        await reports.of(of)
    assert made == 3


@pytest.mark.parametrize("seed", seeds(20))
async def test_who_leaves_at_any_moment_takes_no_report_from_others(
    seed: int, folders: list[Folders]
) -> None:
    chance, maker = random.Random(seed), Maker()
    reports = Reports(maker)
    asked = [(of, asyncio.create_task(reports.of(of))) for of in folders * 4]
    chance.shuffle(asked)
    for _, one in asked[:10]:
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(chance.choice((0, 0, 0.001)))
        one.cancel()
    maker.goes.set()
    for of, one in asked[10:]:
        assert await asyncio.wait_for(one, 20) == str(of).encode()
    assert maker.most <= 2
    assert len(maker.made) == len(set(maker.made))
    assert maker.at_work == []


@pytest.fixture
def finished(provider: FakeProvider, run: Run) -> Path:
    """The folder of a finished run."""
    assert run("--num-samples", "1", "--difficulty", "basic")[0] == 0
    (manifest,) = Path("output").glob("*/run.json")
    return manifest.parent.absolute()


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
async def test_a_report_that_nobody_waits_for_leaves_no_process(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, before = random.Random(6), set(children(os.getpid()))
    for _ in range(12):
        making = asyncio.create_task(make_report((finished,)))
        await asyncio.sleep(chance.random() / 20)
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        assert set(children(os.getpid())) <= before
    assert b"<!doctype html>" in (await make_report((finished,)))[:100]
    with pytest.raises(ConfigError, match="names the same run twice"):
        await make_report((finished, finished))
    monkeypatch.setattr("mdagents.view.reports._LONGEST", 0.05)
    with pytest.raises(ConfigError, match=r"not made within 0.05 s; make it in a terminal"):
        await make_report((finished,))
    assert set(children(os.getpid())) <= before


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_a_tab_that_is_closed_ends_the_making(finished: Path) -> None:
    before = set(children(os.getpid()))

    def wait_for(there_is: bool) -> None:
        latest = time.monotonic() + 20
        while bool(set(children(os.getpid())) - before) != there_is:
            assert time.monotonic() < latest
            select.select([], [], [], 0.01)

    with serving() as address:
        host = address.removeprefix("http://")
        path = f"/runs/{finished.name}/report"
        with socket.create_connection(("127.0.0.1", int(host.partition(":")[2]))) as tab:
            tab.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            wait_for(there_is=True)
        wait_for(there_is=False)
        assert httpx2.get(f"{address}{path}", timeout=60).status_code == 200
        assert httpx2.get(f"{address}/compare?run={finished.name}").status_code == 400


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
async def test_what_was_clicked_says_that_a_report_is_being_made(finished: Path) -> None:
    with serving() as address:
        async with open_page() as page:
            await page.goto(f"{address}/runs/{finished.name}")
            assert await page.evaluate(CLICKED) == "The report is being made …"
            await expect(page.locator("h1")).to_contain_text("· 1 question")
            await page.go_back()
            await expect(page.locator("#connection")).to_be_empty()
            assert await problems(page) == []


CLICKED = """() => {
  document.querySelector("#report a").click();
  return document.getElementById("connection").textContent;
}"""
