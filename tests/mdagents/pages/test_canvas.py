"""Axes of figures: they have a width, whatever the values are."""

from __future__ import annotations

import pytest

from mdagents.pages.canvas import fitted, fitted_amounts
from mdagents.pages.charts import calibration_figure
from mdagents.scoring.report import make_report
from tests.mdagents.scoring.made_up_runs import row, run_of


# The sum of the confidences, divided by their number, is 0.8999999999999991 where 0.9 is right.
@pytest.mark.parametrize(("n", "right", "confidence"), [(30, 27, 0.9), (100, 85, 0.85)])
def test_a_run_that_is_as_sure_as_it_is_right_is_drawn(
    n: int, right: int, confidence: float
) -> None:
    rows = [
        row(letter, id_=f"q{place}", confidence=confidence, opinions=3 * letter)
        for place, letter in enumerate("A" * right + "B" * (n - right))
    ]
    calibration = make_report(run_of("run", rows)).calibration["all"]
    assert len([each for each in calibration.bins if each.n]) == 1
    stated = f"stated {100 * confidence:.1f}%, right {100 * confidence:.1f}%: {n} answers"
    assert stated in calibration_figure(calibration).drawings()


@pytest.mark.parametrize(
    "values",
    [[0.0], [90, 89.99999999999991], [0.9, 0.9 + 1e-7], [1e6, 1e6 + 1e-5], [0, 1e-7], [1e-9, 2e-9]],
    ids=str,
)
def test_an_axis_is_wider_than_its_values(values: list[float]) -> None:
    scale = fitted(values, 0, 100)
    assert scale.low < scale.high
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert len({*scale.ticks}) == len(scale.ticks) > 1
    assert 0 <= scale(values[0]) <= 100


def test_amounts_of_zero_have_an_axis_from_zero_to_one() -> None:
    scale = fitted_amounts([0, 0], 0, 100)
    assert (scale.low, scale.high) == (0, 1)


def test_an_axis_of_small_amounts_is_as_narrow_as_they_are() -> None:
    scale = fitted_amounts([1e-7], 0, 100)
    assert 0 < scale.low < 1e-7 < scale.high < 1.2e-7
