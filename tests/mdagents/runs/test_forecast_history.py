"""What earlier questions say about the cost of further ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats  # type: ignore[import-untyped]

from mdagents.runs.forecast_history import Estimate, History, t_quantile

Costs = npt.NDArray[np.float64]


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


def _normal(rng: np.random.Generator, count: int) -> Costs:
    return rng.normal(100, 20, count)


def _adaptive(rng: np.random.Generator, count: int) -> Costs:
    """Costs of questions of which most are easy and some ten or forty times as expensive."""
    return rng.choice([1, 10, 40], count, p=[0.72, 0.2, 0.08]) * rng.lognormal(0, 0.3, count)


def _rare(rng: np.random.Generator, count: int) -> Costs:
    """Costs of what only one question in 50 causes, such as a team's second round."""
    return (rng.random(count) < 0.02) * rng.lognormal(0, 0.3, count)


def _lognormal(rng: np.random.Generator, count: int) -> Costs:
    return rng.lognormal(0, 1, count)


@pytest.mark.sweep
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize(
    ("costs", "pilot", "coming"),
    [
        (_normal, 10, 1),
        (_normal, 20, 200),
        (_adaptive, 10, 100),
        (_adaptive, 20, 200),
        (_adaptive, 10, 10),
        (_lognormal, 10, 100),
        (_lognormal, 50, 1000),
        (_rare, 200, 1000),
    ],
)
def test_the_cost_is_inside_in_90_of_100_however_skewed_it_is(
    costs: Callable[[np.random.Generator, int], Costs], pilot: int, coming: int, epochs: int
) -> None:
    """Answers to one question are alike: their means are what earlier questions say."""
    rng = np.random.default_rng(5)
    inside, factors = 0, []
    for _ in range(3000):
        known, true = (
            (costs(rng, count)[:, None] * rng.lognormal(0, 0.1, (count, epochs)))
            for count in (pilot, coming)
        )
        questions = [Estimate(cost=cost) for cost in known.mean(axis=1)]
        history = History({}, None, {}, runs=1, questions=questions, epochs=epochs)
        ends = history.of_questions(coming * epochs)
        assert ends is not None
        low, high = ends[0].cost, ends[1].cost
        assert low is not None
        assert high is not None
        assert 0 <= low <= high
        inside += low <= true.sum() <= high
        factors.append(high / true.sum())
    assert inside >= 0.9 * 3000
    assert np.median(factors) < 10


def test_the_same_cost_each_time_is_foretold_exactly() -> None:
    history = History({}, None, {}, runs=1, questions=[Estimate(calls=5)] * 10, epochs=3)
    ends = history.of_questions(300)
    assert ends is not None
    assert [(end.calls, end.cost, end.exaid_tokens) for end in ends] == [(1500, 0, 0)] * 2
