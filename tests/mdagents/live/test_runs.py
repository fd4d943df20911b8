"""What a folder of runs tells of them."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from mdagents.agents.events import TurnBegan
from mdagents.display.display import Snapshot
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.live.runs import ListedRun, Runs, RunState, newest_snapshot
from mdagents.records.manifest import RunTotals, Spent
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run

pytestmark = pytest.mark.process


def state(questions: int) -> Snapshot:
    return Snapshot(RunTotals(questions=questions), Spent(), 1, 16, 0, 0.0, float(questions), 0)


@pytest.mark.parametrize("lines", [0, 10, 20_000])
def test_the_newest_state_is_found_however_much_follows_it(tmp_path: Path, lines: int) -> None:
    path = tmp_path / LIVE_FILE
    with LiveFeed(path, count().__next__, print) as feed:
        feed.refresh(state(1))
        feed.refresh(state(2))
        for _ in range(lines):
            feed.happened(("1", 1), TurnBegan("nurse", "Nurse", "opinion"))
    found = newest_snapshot(path)
    assert found is not None
    assert found.totals.questions == 2


def test_a_feed_without_a_state_has_none(tmp_path: Path) -> None:
    (tmp_path / LIVE_FILE).write_text('{"snapshot"')
    assert newest_snapshot(tmp_path / LIVE_FILE) is None


def test_a_run_that_was_stopped_has_the_totals_that_it_wrote(
    provider: FakeProvider, run: Run
) -> None:
    assert run("--num-samples", "6", "--difficulty", "basic", "--token-limit", "5000")[0] == 1
    (listed,) = Runs(Path("output"), now=lambda: 4e9).list()
    assert isinstance(listed, ListedRun)
    assert listed.state is RunState.INTERRUPTED
    assert listed.snapshot is None
    assert listed.totals == listed.manifest.totals
    assert 0 < listed.totals.questions <= listed.questions == 6


def test_a_manifest_is_read_again_only_when_it_is_another(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--num-samples", "2", "--difficulty", "basic")[0] == 0
    (file,) = Path("output").glob("*/run.json")
    torn = file.parent.with_name("torn") / "run.json"
    torn.parent.mkdir()
    torn.write_text("{")
    runs, read = Runs(Path("output")), list[str]()

    opens = os.open

    def noted(path: Any, *arguments: int) -> int:
        if Path(path).name == "run.json":
            read.append(Path(path).parent.name)
        return opens(path, *arguments)

    monkeypatch.setattr(os, "open", noted)
    for _ in range(3):
        good, bad = runs.list()
        assert (good.name, bad.name) == (file.parent.name, "torn")
        assert runs.get(good.name) == replace(good, looked_at=ANY)
        assert runs.get("torn") == bad
    assert sorted(read) == sorted([good.name, "torn"])
    anew = file.with_suffix(".new")
    anew.write_text(file.read_text().replace('"finished": true', '"finished": false'))
    anew.replace(file)
    torn.unlink()
    (listed,) = runs.list()
    assert isinstance(listed, ListedRun)
    assert listed.state is RunState.INTERRUPTED
    assert runs.get("torn") is None
    assert read[2:] == [good.name]
