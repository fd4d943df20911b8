"""A program of `scripts` reads its command line before it does its work."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

PROGRAMS = sorted(
    path.stem for path in REPOSITORY.glob("scripts/*.py") if "__main__" in path.read_text("utf-8")
)


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("flag", "status"), [("--help", 0), ("--no-such-flag", 2)])
def test_a_program_does_nothing_that_is_not_asked_for(program: str, flag: str, status: int) -> None:
    if program == "run_notebooks":
        pytest.importorskip("nbclient")
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.{program}", flag],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "usage: " in (done.stdout if status == 0 else done.stderr)
