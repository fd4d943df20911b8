"""Statistics against scipy and statsmodels, published examples, and examples done by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize, stats  # type: ignore[import-untyped]
from statsmodels.stats import (  # type: ignore[import-untyped]
    contingency_tables,
    inter_rater,
    multitest,
)

from mdagents.scoring.statistics import (
    calibration,
    fisher_exact,
    fleiss_kappa,
    holm,
    mcnemar_exact,
    minimum_detectable_difference,
    pairwise_agreement,
    pass_at,
    pass_hat,
)
from mdagents_llm.bootstrap import clustered_bootstrap
from mdagents_llm.proportions import Z95, accuracy_interval, difference_interval, tango


def close(expected: object) -> object:
    """Equal to 1e-9."""
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


# --- McNemar and Holm ---------------------------------------------------------------------------


@pytest.mark.sweep
@given(st.integers(0, 3000), st.integers(0, 3000))
@example(0, 0)
@example(7, 7)
@example(0, 6)
def test_mcnemar_is_that_of_statsmodels(worse: int, better: int) -> None:
    table = [[0, worse], [better, 0]]
    expected = min(1.0, contingency_tables.mcnemar(table, exact=True).pvalue)
    assert mcnemar_exact(worse, better) == close(expected)
    assert mcnemar_exact(worse, better) == mcnemar_exact(better, worse)


@pytest.mark.parametrize(
    ("worse", "better"),
    [(49_500, 50_500), (50_000, 50_000), (49_999, 50_001), (20_000, 80_000), (0, 1000), (3, 900)],
)
def test_mcnemar_is_exact_for_large_samples(worse: int, better: int) -> None:
    expected = stats.binomtest(worse, worse + better).pvalue
    assert mcnemar_exact(worse, better) == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    "table",
    [(3, 1, 1, 3), (0, 12, 9, 3), (25, 28, 36, 11), (0, 10, 0, 90), (4000, 5000, 90_000, 81_000)],
)
def test_fisher_is_that_of_scipy(table: tuple[int, int, int, int]) -> None:
    right, wrong, other_right, other_wrong = table
    expected = stats.fisher_exact([[right, wrong], [other_right, other_wrong]]).pvalue
    assert fisher_exact(*table) == pytest.approx(expected, rel=1e-6)
    assert fisher_exact(other_right, other_wrong, right, wrong) == pytest.approx(expected, rel=1e-6)


def test_mcnemar_by_hand() -> None:
    # Of 6 questions, 1 speaks for the first: 2 · (1 + 6) / 2^6.
    assert mcnemar_exact(1, 5) == 14 / 64


@pytest.mark.sweep
@pytest.mark.parametrize(
    "p_values",
    [
        [0.04],
        [0.01, 0.04, 0.03, 0.005],
        [0.02, 0.02, 0.02],
        [0.0, 1.0, 0.5, 1e-12, 0.9],
        list(np.random.default_rng(3).random(15) ** 3),
    ],
)
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    expected = multitest.multipletests(p_values, method="holm")[1]
    assert holm(p_values) == close(list(expected))


@given(st.lists(st.floats(0, 1)))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    by_p = [a for _, a in sorted(zip(p_values, adjusted, strict=True))]
    assert by_p == sorted(by_p)


def test_holm_of_nothing() -> None:
    assert holm([]) == []


# --- Minimum detectable difference --------------------------------------------------------------


def needed(difference: float, discordance: float) -> float:
    """Sample size by Connor (1987), page 209, as published."""
    z_alpha, z_beta = stats.norm.ppf([0.975, 0.8])
    rest = math.sqrt(max(0.0, discordance - difference**2))
    return float(((z_alpha * math.sqrt(discordance) + z_beta * rest) / difference) ** 2)


@given(st.integers(4, 100_000), st.floats(0, 1))
def test_the_detectable_difference_needs_just_this_sample(n: int, discordance: float) -> None:
    difference = minimum_detectable_difference(n, discordance)
    assert difference is not None
    assert 0 < difference <= 1
    possible = max(discordance, difference)  # no difference is larger than the discordance
    assert needed(difference, possible) == pytest.approx(n, rel=1e-9)


def test_the_detectable_difference_of_a_worked_example() -> None:
    # Discordant shares 0.45 and 0.05, so a difference of 0.4: 23 pairs (powerandsamplesize.com).
    of_22, of_23 = (minimum_detectable_difference(n, 0.5) for n in (22, 23))
    assert of_22 is not None
    assert of_23 is not None
    assert of_23 <= 0.4 < of_22


@pytest.mark.sweep
@pytest.mark.parametrize(("n", "discordance"), [(200, 0.3), (1000, 0.1), (100, 0.5)])
def test_such_a_difference_is_found_in_about_four_of_five_cases(n: int, discordance: float) -> None:
    difference = minimum_detectable_difference(n, discordance)
    assert difference is not None
    share_better = (discordance + difference) / 2 / discordance
    power = sum(
        stats.binom.pmf(differing, n, discordance)
        * sum(
            stats.binom.pmf(better, differing, share_better)
            for better in range(differing + 1)
            if mcnemar_exact(differing - better, better) < 0.05
        )
        for differing in range(int(n * discordance * 0.5), int(n * discordance * 1.5))
    )
    assert 0.74 < power < 0.84  # the exact test is a little more cautious than its approximation


def test_the_detectable_difference_falls_with_n_and_is_none_for_next_to_nothing() -> None:
    assert [minimum_detectable_difference(n, 0.3) for n in (0, 1, 3)] == [None, None, None]
    by_n = [minimum_detectable_difference(n, 0.3) or 0 for n in range(4, 500)]
    assert by_n == sorted(by_n, reverse=True)


# --- Epochs -------------------------------------------------------------------------------------


@pytest.mark.sweep
@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_pass_at_and_pass_hat_are_means_over_all_choices_of_k_answers(
    questions: list[list[bool]], k: int
) -> None:
    right, trials = [sum(answers) for answers in questions], list(map(len, questions))
    choices = [list(combinations(of, k)) for of in questions if len(of) >= k]
    for figure, holds in ((pass_at, any), (pass_hat, all)):
        if not choices:
            assert figure(right, trials, k) is None
            continue
        shares = [sum(map(holds, of)) / len(of) for of in choices]
        assert figure(right, trials, k) == close(sum(shares) / len(shares))


def test_pass_hat_by_hand() -> None:
    # Two of four right: 1 of the 6 pairs is right twice. Four of four: always.
    assert pass_hat([2, 4], [4, 4], 2) == pytest.approx((1 / 6 + 1) / 2)
    assert pass_hat([2, 4], [4, 4], 1) == 0.75
    assert pass_hat([2, 1], [4, 1], 2) == pytest.approx(1 / 6)  # the second has too few answers
    assert pass_hat([1], [1], 2) is None
    assert pass_hat([], [], 1) is None


@given(st.lists(st.integers(0, 6), min_size=1), st.integers(1, 5))
def test_pass_hat_falls_with_k(right: list[int], k: int) -> None:
    trials = [6] * len(right)
    now, next_ = pass_hat(right, trials, k), pass_hat(right, trials, k + 1)
    assert now is not None
    assert next_ is not None
    assert 0 <= next_ <= now <= 1


# --- Agreement ----------------------------------------------------------------------------------

ratings = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from("ABCD"), min_size=raters, max_size=raters), min_size=1, max_size=30
    )
)


@pytest.mark.sweep
@given(ratings)
def test_fleiss_kappa_is_that_of_statsmodels(rated: list[list[str]]) -> None:
    table = np.array([[Counter(letters)[letter] for letter in "ABCD"] for letters in rated])
    if len({letter for letters in rated for letter in letters}) == 1:
        assert fleiss_kappa(rated) is None
    else:
        assert fleiss_kappa(rated) == close(inter_rater.fleiss_kappa(table))


@pytest.mark.sweep
@given(ratings)
def test_agreement_is_the_share_of_agreeing_pairs(rated: list[list[str]]) -> None:
    pairs = [(a, b) for letters in rated for i, a in enumerate(letters) for b in letters[:i]]
    share = sum(a == b for a, b in pairs) / len(pairs)
    assert pairwise_agreement(rated) == pytest.approx(share)


def test_agreement_where_raters_are_missing() -> None:
    # By hand: agreement 1 and 1/3, mean 2/3; A 4 of 5, B 1 of 5 by chance 17/25.
    rated = ["AA", "AAB", "B", ""]
    assert pairwise_agreement(rated) == pytest.approx(2 / 3)
    assert fleiss_kappa(rated) == pytest.approx((2 / 3 - 17 / 25) / (1 - 17 / 25))
    assert pairwise_agreement(["A", ""]) is None
    assert fleiss_kappa(["A", ""]) is None
    assert fleiss_kappa([]) is None


# --- Calibration --------------------------------------------------------------------------------


def test_calibration_by_hand() -> None:
    figures = calibration([0.95, 0.85, 0.9, 0.2], [True, False, True, False])
    assert figures.n == 4
    # (0.8, 0.9]: said 0.875, was 1/2; (0.9, 1]: said 0.95, was 1; (0.1, 0.2]: said 0.2, was 0.
    assert figures.expected_error == pytest.approx((2 * 0.375 + 0.05 + 0.2) / 4)
    assert figures.brier == pytest.approx((0.05**2 + 0.85**2 + 0.1**2 + 0.2**2) / 4)
    ninth = figures.bins[8]
    assert (ninth.low, ninth.high, ninth.n, ninth.accuracy) == (0.8, 0.9, 2, 0.5)
    assert ninth.confidence == pytest.approx(0.875)
    assert (figures.bins[5].n, figures.bins[5].confidence) == (0, None)


@pytest.mark.parametrize("tenths", range(11))
def test_a_bin_holds_its_upper_end(tenths: int) -> None:
    (filled,) = [bin_ for bin_ in calibration([tenths / 10], [True]).bins if bin_.n]
    assert filled.high == max(1, tenths) / 10


def test_calibration_of_nothing_and_of_the_extremes() -> None:
    nothing = calibration([], [])
    assert (nothing.n, nothing.expected_error, nothing.brier) == (0, None, None)
    assert len(nothing.bins) == 10
    assert calibration([1, 1], [True, True]).expected_error == 0
    assert calibration([1, 0], [False, True]).brier == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1))
def test_calibration_stays_in_its_bounds(answers: list[tuple[float, bool]]) -> None:
    figures = calibration([c for c, _ in answers], [right for _, right in answers])
    assert figures.expected_error is not None
    assert figures.brier is not None
    assert 0 <= figures.expected_error**2 <= figures.brier + 1e-12 <= 1 + 1e-12
    assert sum(bin_.n for bin_ in figures.bins) == len(answers)


# --- Bootstrap ----------------------------------------------------------------------------------


def test_bootstrap_of_two_questions_by_hand() -> None:
    # The resamples are 0, 1/2, 1 with 1/4, 1/2, 1/4: the ends of the interval are 0 and 1.
    assert clustered_bootstrap([0, 1], [1, 1]) == (0, 1)
    assert clustered_bootstrap([3], [4]) == (0.75, 0.75)
    assert clustered_bootstrap([], []) is None


def test_bootstrap_agrees_with_scipy() -> None:
    scores = np.random.default_rng(1).choice([0, 0.25, 0.5, 1], size=300)
    interval = clustered_bootstrap(list(scores), [1] * 300)
    theirs = stats.bootstrap(
        (scores,), np.mean, n_resamples=10_000, method="percentile", rng=2
    ).confidence_interval
    assert interval == pytest.approx((theirs.low, theirs.high), abs=0.005)


def test_epochs_that_repeat_each_other_add_no_certainty() -> None:
    once = clustered_bootstrap([0, 1, 1, 0, 1], [1] * 5)
    four_times = clustered_bootstrap([0, 4, 4, 0, 4], [4] * 5)
    assert once == four_times


def test_questions_weigh_by_their_answers() -> None:
    middle = clustered_bootstrap([10, 0] * 200, [10, 1] * 200)
    assert middle is not None
    assert middle[0] < 10 / 11 < middle[1]


@pytest.mark.sweep
@given(st.lists(st.tuples(st.integers(0, 3), st.just(3)), min_size=1, max_size=50))
def test_bootstrap_is_seeded_and_heeds_no_order(questions: list[tuple[int, int]]) -> None:
    sums, sizes = [s for s, _ in questions], [n for _, n in questions]
    interval = clustered_bootstrap(sums, sizes, resamples=200)
    backwards = clustered_bootstrap(sums[::-1], sizes[::-1], resamples=200)
    assert interval == backwards
    assert interval is not None
    assert 0 <= interval[0] <= interval[1] <= 1


def test_pairing_removes_what_both_share() -> None:
    second_more = [0] * 190 + [1] * 5 + [0] * 5  # five of 200 more right: 2.5 points
    for times in (1, 2):
        gains, answers = [times * gain for gain in second_more], [times] * 200
        low, high = difference_interval(gains, answers)
        assert 0 < low < 0.025 < high < 0.06
        backwards = difference_interval([-gain for gain in gains], answers)
        assert backwards == pytest.approx((-high, -low), abs=0.006)


def test_no_difference_is_not_certainty() -> None:
    """Without a difference at 40 questions, up to 8.8 points either way are plausible."""
    ends = Z95**2 / (40 + Z95**2)  # where the score test's statistic is 1.96, by hand
    for times in (1, 3):
        interval = difference_interval([0] * 40, [times] * 40)
        assert interval == pytest.approx((-ends, ends), abs=1e-9)
    always = difference_interval([1] * 40, [1] * 40)
    assert always == pytest.approx(((40 - Z95**2) / (40 + Z95**2), 1), abs=1e-9)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 60))
def test_tango_agrees_with_a_numeric_search(better: int, worse: int, same: int) -> None:
    """The ends are where the difference is 1.96 standard errors off, at the likeliest shares."""
    n = better + worse + same
    interval = tango(better, worse, n)
    assert interval is not None
    for end in interval:
        if abs(end) > 1 - 1e-6:
            continue

        def cost(share: float, end: float = end) -> float:  # of pairs that are worse
            shares = (share + end, share, 1 - 2 * share - end)
            counts = (better, worse, same)
            return -sum(k * math.log(max(p, 1e-300)) for k, p in zip(counts, shares, strict=True))

        limits = (max(0.0, -end), (1 - end) / 2)
        share = optimize.minimize_scalar(
            cost, bounds=limits, method="bounded", options={"xatol": 1e-12}
        ).x
        standard_error = math.sqrt((2 * share + end - end**2) / n)
        assert abs((better - worse) / n - end) == pytest.approx(Z95 * standard_error, rel=1e-3)


@pytest.mark.parametrize("shares", [(0.02, 0.02), (0.05, 0.01), (0.1, 0.1), (0.3, 0.1)])
def test_tango_covers_the_difference_in_95_of_100(shares: tuple[float, float]) -> None:
    """Over all outcomes of 40 questions."""
    up, down = shares
    covered = 0.0
    for better in range(41):
        for worse in range(41 - better):
            same = 40 - better - worse
            ways = math.comb(40, better) * math.comb(40 - better, worse)
            low, high = tango(better, worse, 40) or (0, 0)
            if low <= up - down <= high:
                covered += ways * up**better * down**worse * (1 - up - down) ** same
    assert 0.94 <= covered <= 0.995


def test_one_answer_that_differs_does_not_narrow_an_interval() -> None:
    """An error of resampling: 40 questions of 40 differ in one of their 120 answers."""
    alike, differ = ([[3] * 40, [2] + [3] * 39], [[0] * 40, [1] + [0] * 39])
    sizes = [3] * 40
    (low, _), (low_of_one, _) = (accuracy_interval(right, sizes) for right in alike)
    assert low == pytest.approx(0.9124, abs=1e-4)
    assert low_of_one == pytest.approx(0.9104, abs=0.01)
    none, one = (difference_interval(gains, sizes) for gains in differ)
    assert none == pytest.approx((-0.0876, 0.0876), abs=1e-4)
    assert one[1] - one[0] > 0.75 * (none[1] - none[0])


@pytest.mark.sweep
@pytest.mark.parametrize("correlation", [0, 0.3, 0.6, 0.9, 1])
@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.9, 0.95])
def test_accuracies_in_two_epochs_are_covered_in_95_of_100(
    accuracy: float, correlation: float
) -> None:
    """Over all outcomes of 40 questions in two epochs whose answers are correlated."""
    differ = 2 * accuracy * (1 - accuracy) * (1 - correlation)
    chances = (1 - accuracy - differ / 2, differ, accuracy - differ / 2)
    covered = 0.0
    for wrong in range(41):
        for half in range(41 - wrong):
            counts = (wrong, half, 40 - wrong - half)
            right = [value for value in range(3) for _ in range(counts[value])]
            low, high = accuracy_interval(right, [2] * 40)
            assert low is not None
            assert high is not None
            if low <= accuracy <= high:
                ways = math.comb(40, wrong) * math.comb(40 - wrong, half)
                covered += ways * math.prod(p**n for p, n in zip(chances, counts, strict=True))
    assert 0.93 <= covered <= 0.99


@pytest.mark.sweep
@pytest.mark.parametrize(
    "chances",
    # Shares of the questions with a gain of -2, -1, 0, 1 and 2.
    [
        (0, 0.02, 0.96, 0.02, 0),
        (0.02, 0, 0.96, 0, 0.02),
        (0, 0.1, 0.6, 0.3, 0),
        (0.05, 0, 0.75, 0, 0.2),
        (0.01, 0.05, 0.7, 0.14, 0.1),
    ],
)
def test_differences_in_two_epochs_are_covered_in_95_of_100(chances: tuple[float, ...]) -> None:
    """Over all outcomes of 20 questions in two epochs."""
    effect = sum(p * gain for gain, p in enumerate(chances, start=-2)) / 2
    covered = 0.0
    for ends in combinations(range(24), 4):
        bounds = (-1, *ends, 24)
        counts = [after - before - 1 for before, after in pairwise(bounds)]
        if any(n and not p for n, p in zip(counts, chances, strict=True)):
            continue
        gains = [gain for gain, n in enumerate(counts, start=-2) for _ in range(n)]
        low, high = difference_interval(gains, [2] * 20)
        if low <= effect <= high:
            ways = math.factorial(20) / math.prod(map(math.factorial, counts))
            covered += ways * math.prod(p**n for p, n in zip(chances, counts, strict=True))
    assert covered >= 0.935


def test_a_coin_between_runs_varies_less_than_a_run() -> None:
    gains = [0.5, -0.5] * 20  # of a run over a fair coin between two others
    # With one loss or gain added in halves, the squares sum to 11 and the sizes to 21.
    of_means = difference_interval(gains, [1] * 40, of_means=True)
    assert of_means == pytest.approx(tango(10 * 21 / 11, 10 * 21 / 11, 40 * 21 / 11))
    assert difference_interval(gains, [1] * 40) == pytest.approx(tango(10, 10, 40))
