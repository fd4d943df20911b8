"""The interval of a proportion against statsmodels, and against published examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats import proportion  # type: ignore[import-untyped]

from mdagents_llm.proportions import design_effect, wilson


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


@pytest.mark.parametrize("n", [7, 10, 13, 40, 1273])
def test_wilson_of_trials_that_are_all_alike_ends_exactly_at_0_or_1(n: int) -> None:
    none, all_ = wilson(0, n), wilson(n, n)
    assert none is not None
    assert all_ is not None
    assert (none[0], all_[1]) == (0, 1)


def test_the_design_effect_by_hand() -> None:
    # Half a question is added with both answers wrong, and half a one with both right. Of 41, 39.5
    # are then right, one is half right and half a one is wrong: the mean is 40/41, that of the
    # squares 39.75/41. The variance is 29.75/1681, that of single answers 40/1681.
    one_differs = design_effect([1] + [2] * 39, [2] * 40, lowest=0)
    assert one_differs == pytest.approx(2 * 29.75 / 40)
    # The same of differences, with half a question lost and half a one won: of 41, the sum is 1/2,
    # that of the squares 1/4 + 1, and that of the absolute values 1/2 + 1.
    one_gains = design_effect([1] + [0] * 39, [2] * 40, lowest=-1)
    assert one_gains == pytest.approx(2 * (1.25 * 41 - 0.25) / (1.5 * 41 - 0.25))


def test_epochs_that_agree_count_once_and_those_that_do_not_count_each() -> None:
    assert design_effect([3, 0] * 20, [3] * 40, lowest=0) == pytest.approx(3)
    assert design_effect([3, -3, 0] * 20, [3] * 60, lowest=-1) == pytest.approx(3)
    # Half of the questions right in one epoch of two, a quarter in both: as independent ones are.
    assert design_effect([0, 1, 1, 2] * 500, [2] * 2000, lowest=0) == pytest.approx(1, abs=0.001)
    assert design_effect([1] * 40, [2] * 40, lowest=0) == 1, "never more than all answers"
    assert design_effect([1] * 40, [2] * 40, lowest=0, least=0) < 0.1
    assert design_effect([1, 0, 1], [1, 1, 1], lowest=0) == 1
    # Kish's effective number of questions with unequal numbers of answers: 4 * 4 / (3 * 3 + 1).
    assert design_effect([3, 0], [3, 1], lowest=-1) == pytest.approx(2.5)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=60))
def test_the_design_effect_is_between_1_and_that_of_epochs_that_agree(
    questions: list[tuple[int, int]],
) -> None:
    sizes = [n for _, n in questions]
    right = [min(right, n) for right, n in questions]
    most = sum(n * n for n in sizes) / sum(sizes)
    effect = design_effect(right, sizes, lowest=0)
    assert 1 <= effect <= most
    wrong = [n - of for of, n in zip(right, sizes, strict=True)]
    assert design_effect(wrong, sizes, lowest=0) == pytest.approx(effect), "symmetric"
