"""A run that is not finished, whose feed tests write."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdagents.live import LIVE_FILE
from tests.fake_provider import FakeProvider
from tests.mdagents.view.served import write_end
from tests.support.whole_runs import Run


@pytest.fixture
def unfinished(provider: FakeProvider, run: Run) -> Path:
    """The folder of a run that has not written how it ended; its feed has no lines of it."""
    assert run("--num-samples", "6", "--difficulty", "basic", "--token-limit", "5000")[0] == 1
    (folder,) = (path for path in Path("output").iterdir() if (path / "run.json").is_file())
    (folder / LIVE_FILE).unlink()
    write_end(folder, None)
    return folder
