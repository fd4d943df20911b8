"""What is said before the first question."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.whole_runs import SAMPLE, Run

NOTE = "NOTE: these questions were written for this project"


def banner(err: str) -> list[str]:
    lines = err.splitlines()
    return lines[: next(n for n, line in enumerate(lines) if " started: " in line)]


@pytest.mark.parametrize(
    ("flags", "roles"),
    [
        (["--method", "zero_shot"], "(decision)"),
        (["--method", "cot_sc"], "(decision)"),
        (["--method", "majority_vote"], "(recruiter, expert)"),
        (["--difficulty", "basic"], "(recruiter, expert, decision)"),
        ([], "(router, recruiter, expert, decision)"),
        (["--exaid", "turn_end"], "(router, recruiter, expert, decision, summarizer)"),
    ],
)
def test_only_roles_at_work_are_named(flags: list[str], roles: str, run: Run) -> None:
    _, _, err = run("--num-samples", "1", *flags)
    models = " ".join(line.strip() for line in banner(err) if not line.startswith("NOTE"))
    assert f"{roles} teams" in models or f"{roles} method" in models


def test_the_banner_fits_80_columns(run: Run) -> None:
    _, _, err = run(
        "--num-samples", "1", "--exaid", "full_exaid", "--seed", "7", "--num-rounds", "2"
    )
    lines = banner(err)
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(" " * 11) for line in lines), "something had to be wrapped"


@pytest.mark.parametrize("is_one_place", [True, False])
def test_notes_are_read_once_in_one_place_and_in_each_of_two(
    is_one_place: bool, provider: FakeProvider
) -> None:
    ended = subprocess.run(
        [
            *(sys.executable, str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE)),
            *("--num-samples", "1", "--difficulty", "basic"),
        ],
        env=bare_environment(
            MDAGENTS_EXAID="off",
            OPENAI_API_KEY="test-key",
            OPENAI_BASE_URL=provider.openai_base_url,
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if is_one_place else subprocess.PIPE,
        text=True,
        check=True,
    )
    assert ended.stdout.count(NOTE) == 1
    assert (ended.stderr or "").count(NOTE) == (0 if is_one_place else 1)
