"""The benchmark of scoring: its run is like a real one, and it prints its table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import evaluate
from mdagents.scoring.rows import read_output
from mdagents.settings import Difficulty, Status

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="a child's CPU time is read the Linux way"),
]


def test_it_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["--questions", "40", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "load average" in printed.splitlines()[0]
    assert "40 questions" in printed
    assert "json.load of the same file" in printed
    assert "evaluate_text_output.py: wall" in printed


def test_the_run_holds_all_that_runs_hold(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    evaluate.write_run(run, 121)
    rows = read_output(run).rows
    assert len(rows) == 121
    assert {row.status for row in rows} == set(Status)
    assert {row.difficulty for row in rows} == set(Difficulty)
    assert 0.5 < sum(row.correct for row in rows) / len(rows) < 1
    # Text and record agree: the parser is at work, and finds an answer.
    assert not any(row.disagrees for row in rows)
    assert any(row.first_opinions != row.last_opinions for row in rows)


def test_the_run_is_always_the_same(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        evaluate.write_run(tmp_path / name, 10)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
