"""What a person sees while a run goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mdagents.display import Bar, LogLines, Snapshot, accuracy_so_far
from mdagents.records.manifest import RunTotals, Spent
from mdagents.scoring.formatting import interval
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.retry import Wait
from mdagents_llm.proportions import accuracy_interval
from tests.mdagents.display.told import record


def snapshot(now: float, cooling: float = 0.0) -> Snapshot:
    totals = RunTotals(questions=4, status_counts={"answered": 3, "skipped": 1}, correct=2)
    spent = Spent(input_tokens=1_000, output_tokens=234, cost_usd=1.5, failed_attempts=7)
    return Snapshot(totals, spent, 3, 8, 2, cooling, now)


def a_wait(seconds: float) -> Wait:
    error = ProviderError("429 from api.test: slow down", kind=ErrorKind.RATE_LIMIT)
    return Wait(seconds, 1, error)


def test_accuracy_has_its_uncertainty_and_leaves_skipped_questions_out() -> None:
    many = RunTotals(questions=13, status_counts={"answered": 12, "skipped": 1}, correct=8)
    assert accuracy_so_far(many) == "accuracy 66.7% (39.1–86.2)"
    assert accuracy_so_far(snapshot(0).totals) == "2 of 3 right", "too few for a share in percent"
    assert accuracy_so_far(RunTotals()) == "accuracy -"
    failed = RunTotals(questions=20, status_counts={"limit": 18, "api_error": 2})
    assert accuracy_so_far(failed) == "none of 20 answered", "which is no accuracy of 0%"


def test_the_interval_of_several_epochs_is_that_of_the_report() -> None:
    right = {"0/2": 9, "1/2": 4, "2/2": 7}
    totals = RunTotals(
        questions=40, status_counts={"answered": 40}, correct=18, epochs=2, right=right
    )
    rows = [0] * 9 + [2] * 7 + [1] * 4
    low, high = accuracy_interval(rows, [2] * 20)
    assert accuracy_so_far(totals) == f"accuracy 45.0% ({interval(low, high)})"
    assert accuracy_so_far(replace_right(totals, {})) == "accuracy 45.0%", (
        "not known before the end"
    )
    assert accuracy_so_far(replace_right(totals, {"2/2": 10**9})) == "accuracy 45.0%"


def test_a_percentage_needs_ten_questions_however_often_they_are_asked() -> None:
    few = RunTotals(
        questions=18, status_counts={"answered": 18}, correct=12, epochs=3, right={"2/3": 6}
    )
    assert accuracy_so_far(few) == "12 of 18 right"
    assert accuracy_so_far(replace_right(few, {})) == "12 of 18 right", "6 questions, it seems"
    ten = RunTotals(questions=20, status_counts={"answered": 20}, correct=12, epochs=2)
    assert accuracy_so_far(ten) == "accuracy 60.0%"


def test_a_percentage_stays_when_the_next_epoch_begins() -> None:
    totals, shown = RunTotals(), []
    for epoch in (1, 2, 3):
        for number in range(12):
            totals.add(record(f"{number}", "C").model_copy(update={"epoch": epoch}))
            shown.append(accuracy_so_far(totals))
    assert [text.startswith("accuracy") for text in shown] == [False] * 9 + [True] * 27


def replace_right(totals: RunTotals, right: dict[str, int]) -> RunTotals:
    return totals.model_copy(update={"right": right})


def test_a_cost_forecast_counts_the_summaries_that_are_still_to_be_made() -> None:
    totals = RunTotals(questions=10, cost_usd=1.0, exaid_cost_usd=0.4)
    totals.exaid.questions = 4
    # Ten of twenty are decided for 0.1 each, four are summarized for 0.1 each, and 0.2 have been
    # paid for questions in progress.
    spent = Spent(cost_usd=1.6, exaid_cost_usd=0.5, exaid_calls=9)
    state = replace(snapshot(0), totals=totals, spent=spent)
    assert state.cost_forecast(20) == pytest.approx(20 * 0.1 + 20 * 0.1)
    assert replace(state, totals=RunTotals()).cost_forecast(20) is None
    nothing_summarized = RunTotals(questions=10, cost_usd=1.0)
    assert replace(state, totals=nothing_summarized).cost_forecast(20) is None
    unknown = Spent(cost_usd=None)
    assert replace(state, spent=unknown).cost_forecast(20) is None


def test_the_bar_shows_figures_and_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar(10) as bar:
        bar.waiting(a_wait(12.0))
        bar.waiting(a_wait(3.0))
        bar.refresh(snapshot(now=100.0))
        shown = capsys.readouterr().err
        assert "3/8 calls, 1,234 tokens, $1.50, 7 failed attempts" in shown
        assert "2 waiting: 429 from api.test, 12 s left" in shown
        bar.refresh(snapshot(now=104.0))
        assert "1 waiting: 429 from api.test, 8 s left" in capsys.readouterr().err
        bar.refresh(snapshot(now=120.0))
        assert "waiting" not in capsys.readouterr().err
        bar.refresh(snapshot(now=121.0, cooling=5.0))
        assert "endpoint overloaded: all wait, 5 s left" in capsys.readouterr().err


def test_calls_that_wait_for_a_batch_are_told_as_such() -> None:
    assert snapshot(0).calls == "3/8 calls"
    waiting = replace(snapshot(0), under_way=0, allowed=0)
    assert waiting.calls == "no calls"
    assert replace(waiting, in_batches=1).calls == "1 call in batches"
    assert replace(waiting, in_batches=1_300).calls == "1,300 calls in batches"


def test_lines_say_when_waiting_begins_and_not_each_second_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = LogLines(10)
    lines.waiting(a_wait(12.0))
    for second in range(15):
        lines.refresh(snapshot(now=float(second)))
    lines.waiting(a_wait(2.0))
    lines.refresh(snapshot(now=20.0))
    assert capsys.readouterr().err.splitlines() == [
        "1 waiting: 429 from api.test, 12 s left",
        "over: 429 from api.test, after 12 s",
        "1 waiting: 429 from api.test, 2 s left",
    ]
