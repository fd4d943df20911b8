"""`--difficulty adaptive,basic,advanced`: the questions go to these levels in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdagents.runs.config import RunConfig
from mdagents.runs.identity import identity
from mdagents.settings import Difficulty, Preset
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

IN_TURN = ("--difficulty", "adaptive,basic,advanced", "--max-samples", "1")


@pytest.mark.process
def test_each_question_goes_to_the_level_of_its_turn(provider: FakeProvider, run: Run) -> None:
    provider.when("triage officer", lambda _: {"difficulty": "intermediate"})
    status, out, err = run("--num-samples", "5", *IN_TURN)
    assert status == 0
    assert [(r["difficulty"], r["routed_by"]) for r in records()] == [
        ("intermediate", "router"),
        ("basic", "forced"),
        ("advanced", "forced"),
        ("intermediate", "router"),
        ("basic", "forced"),
    ]
    assert "teams      adaptive, basic, advanced in turn, preset ultimate" in err
    assert "routing: intermediate 2, basic 2, advanced 1" in out
    (array,) = Path("output").glob("*.json")
    assert array.name.startswith("gpt-4o-mini_sample_adaptive-basic-advanced_5samples_")


@pytest.mark.process
def test_a_level_belongs_to_a_question_in_each_epoch(run: Run) -> None:
    assert run("--num-samples", "3", "--epochs", "2", "--difficulty", "basic,advanced")[0] == 0
    assert [r["difficulty"] for r in records()] == ["basic", "advanced", "basic"] * 2


@pytest.mark.process
def test_a_question_keeps_its_level_when_the_run_is_continued(
    provider: FakeProvider, run: Run
) -> None:
    provider.when("triage officer", lambda _: {"difficulty": "basic"})
    assert run("--num-samples", "4", *IN_TURN, "--token-limit", "6000")[0] == 1
    first = records()
    assert 0 < len(first) < 4
    assert run("--resume")[0] == 0
    assert [r["routed_by"] for r in records()] == ["router", "forced", "forced", "router"]


def test_the_forecast_holds_the_levels_that_occur(run: Run) -> None:
    status, out, _ = run("--num-samples", "4", "--difficulty", "basic,advanced", "--dry-run")
    assert status == 0
    assert "intermediate" not in out
    assert all(f"| {level}" in out for level in ("basic", "advanced"))
    assert "| intermediate" in run("--num-samples", "4", *IN_TURN, "--dry-run")[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("basic,hard", "--difficulty is 'hard' but must be one of adaptive, basic"),
        ("basic,advnced", "did you mean 'advanced'?"),
        (",", "--difficulty is '' but must be one of"),
        ("", "--difficulty is '' but must be one of"),
    ],
)
def test_each_of_several_levels_is_checked(given: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig(difficulty=given)
    assert message in str(caught.value)


def test_one_level_is_no_list_and_its_case_does_not_matter() -> None:
    assert RunConfig(difficulty="Basic").difficulty is Difficulty.BASIC
    assert RunConfig(difficulty="basic,").levels == (Difficulty.BASIC,)
    assert RunConfig(difficulty="Basic, ADAPTIVE").levels == (Difficulty.BASIC, "adaptive")
    assert RunConfig(difficulty=["basic", "advanced"]).levels == ("basic", "advanced")


def test_another_order_is_another_run() -> None:
    runs = [RunConfig(difficulty=level) for level in ("basic,advanced", "advanced,basic", "basic")]
    assert len({identity(config, {}, "") for config in runs}) == 3


def test_the_smallest_preset_summarises_once_a_turn_unless_told() -> None:
    assert RunConfig(preset="small").exaid == "turn_end"
    assert RunConfig(preset="small", exaid="full_exaid").exaid == "full_exaid"
    assert RunConfig(preset="small", method="cot").exaid == "off"
    assert RunConfig(preset="small").changes_from_default() == {"preset": Preset.SMALL.value}
    assert RunConfig(preset="small", exaid="off").changes_from_default() == {
        "preset": "small",
        "exaid": "off",
    }


@pytest.mark.process
def test_the_smallest_teams_still_are_teams(provider: FakeProvider, run: Run) -> None:
    levels = "basic,intermediate,advanced"
    assert run("--num-samples", "3", "--preset", "small", "--difficulty", levels)[0] == 0
    basic, intermediate, advanced = records()
    assert len(basic["opinions"]) == 2
    assert len(intermediate["panel"]) == 2
    assert [len(team["members"]) for team in advanced["teams"]] == [2, 2]


def calls_in(forecast: str, before: str) -> list[float]:
    """The numbers of calls, from the least to the most, in the line that has `before`."""
    line = next(line for line in forecast.split("\n") if before in line)
    cell = line.split("|")[2] if "|" in line else line.partition(":")[2].partition("calls")[0]
    return [float(number) for number in cell.replace(",", "").split("–")]


@pytest.mark.process
def test_the_forecast_counts_each_level_as_often_as_it_has_its_turn(
    provider: FakeProvider, run: Run
) -> None:
    provider.when("triage officer", lambda _: {"difficulty": "advanced"})
    assert run("--num-samples", "2")[0] == 0  # what a router did is no guide to levels in turn
    out = run("--num-samples", "4", "--difficulty", "basic,basic,basic,advanced", "--dry-run")[1]
    per_question = [calls_in(out, f"| {level}") for level in ("basic", "advanced")]
    least, most = (
        3 * basic[i] + advanced[i] for i in (0, -1) for basic, advanced in [per_question]
    )
    whole = calls_in(out, "the whole run")
    assert [whole[0], whole[-1]] == [pytest.approx(least, abs=2), pytest.approx(most, abs=2)]
