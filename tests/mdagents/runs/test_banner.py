"""What is said before the first question."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.whole_runs import SAMPLE, Run

pytestmark = pytest.mark.process

NOTE = "NOTE: These questions were written for this project"


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


def cost_line(err: str) -> str:
    """The line of the banner that states the price, on one line; empty without one."""
    found = re.search(r"^cost {7}(.*(?:\n {11}.*)*)", err, re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def test_the_price_is_said_before_it_is_paid_teams_and_exaid_apart(run: Run) -> None:
    flags = ("--num-samples", "2", "--difficulty", "basic", "--display", "log")
    _, _, err = run(*flags, "--exaid", "full_exaid")
    line = cost_line(err)
    amount = r"[\d.]+–[\d.]+ USD"
    assert re.fullmatch(
        rf"{amount}: teams [\d.]+ USD, EXAID {amount} \(--exaid off leaves EXAID out\)", line
    ), line
    assert err.index("cost       ") < err.index(" started: ")
    _, out, _ = run(*flags, "--exaid", "full_exaid", "--dry-run", "--output-dir", "another")
    assert f"cost: {line}" in " ".join(out.split()), "one forecast, whoever states it"
    _, _, err = run(*flags, "--exaid", "full_exaid")
    assert not cost_line(err), "it has been paid"
    _, _, err = run(*flags, "--output-dir", "alone")
    assert re.fullmatch(r"[\d.]+ USD", cost_line(err))


def test_a_forecast_that_fails_costs_no_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr("mdagents.runs.forecast.forecast", broken)
    status, _, err = run("--num-samples", "1", "--difficulty", "basic", "--display", "log")
    assert status == 0
    assert cost_line(err) == "no forecast (ZeroDivisionError: by chance)"


def test_exaid_is_off_for_methods_unless_asked_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MDAGENTS_EXAID")
    for flags, policy in (
        (("--method", "debate"), "off"),
        (("--method", "self_refine"), "off"),
        (("--method", "debate", "--exaid", "turn_end"), "turn_end"),
        (("--difficulty", "basic"), "full_exaid"),
    ):
        _, _, err = run("--num-samples", "1", "--display", "log", "--fresh", *flags)
        assert f", EXAID {policy}\n" in err, flags
