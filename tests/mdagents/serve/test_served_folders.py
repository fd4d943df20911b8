"""A server's folder in the programs that read runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mdagents.cli.score import main as score
from mdagents.view.cli import main as view
from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import serving

WHY = "was written by mdagents serve: clients' questions have no gold answers"
RUN = [{"label": "A", "options": {"A": "Iron", "B": "Zinc"}, "response": "Answer: A"}]


def test_it_has_no_score_and_hides_no_run(
    provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as served:
        assert served.ask().status_code == 200
        folder = served.folder
    for given in (folder, folder / "samples.jsonl"):
        for flag in ("--input", "--audit"):
            assert score([flag, str(given)]) == 2
            error = capsys.readouterr().err
            assert WHY in error
            assert error.count("\n") == 1
    assert score([]) == 2
    assert "there is no run in output" in capsys.readouterr().err
    run = Path("output", "run.json")
    run.write_text(json.dumps(RUN))
    os.utime(run, (1e9, 1e9))  # long before the server
    assert score([]) == 0
    assert capsys.readouterr().out.startswith("run:")
    assert view([str(folder), "--no-open"]) == 2
    assert WHY in capsys.readouterr().err
