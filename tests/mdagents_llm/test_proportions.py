"""The interval of a proportion against statsmodels, and against published examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats import proportion  # type: ignore[import-untyped]

from mdagents_llm.proportions import wilson


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_wilson_is_that_of_statsmodels(successes: int, n: int) -> None:
    successes = min(successes, n)
    expected = proportion.proportion_confint(successes, n, method="wilson")
    assert wilson(successes, n) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Published examples: Newcombe (1998), Statist. Med. 17, 857-872, table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_against_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_holds_the_proportion(successes: int, n: int) -> None:
    successes = min(successes, n)
    interval = wilson(successes, n)
    assert interval is not None
    low, high = interval
    assert 0 <= low <= successes / n + 1e-12
    assert successes / n - 1e-12 <= high <= 1


def test_wilson_of_nothing() -> None:
    assert wilson(0, 0) is None
