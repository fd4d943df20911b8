"""What earlier questions say about the cost of further ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from mdagents.runs.forecast_history import Estimate, History, t_quantile


@pytest.mark.parametrize("degrees", [8, 9, 12, 30, 200, 5000])
def test_quantiles_agree_with_scipy(degrees: int) -> None:
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=0.001)


@pytest.mark.sweep
def test_a_pilot_of_ten_questions_foretells_the_cost_in_95_of_100() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(2000):
        pilot, coming = rng.normal(100, 20, 10), rng.normal(100, 20, 50)
        questions = [Estimate(calls=calls) for calls in pilot]
        ends = History({}, None, {}, runs=1, questions=questions).of_questions(50)
        assert ends is not None
        inside += ends[0].calls <= coming.sum() <= ends[1].calls
    assert 0.935 <= inside / 2000 <= 0.965
