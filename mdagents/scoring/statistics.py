"""Closed-form statistics of right and wrong answers; `mdagents_llm.bootstrap` resamples.

Rates are fractions from 0 to 1. What cannot be computed from the data at hand is None, never NaN.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mdagents_llm.proportions import Z95

SMALLEST_FOR_RATES = 10
"""Questions from which on people are shown a rate as a percentage with its interval. Below, one
question moves it by more than ten points: what is shown then is the count, `3 of 7`."""

SMALLEST_FOR_COEFFICIENTS = 30
"""Questions from which on people are shown what is estimated with more than one parameter: kappa,
calibration, accuracy by letter, the difference that can be detected. JSON files hold them all.

A convention. One of n questions moves a kappa by up to 1 / (n (1 - agreement by chance)): with four
options of 30 questions by less than 0.05, of 10 by 0.13."""

SIGNIFICANT = 0.05
"""A difference with a p-value below this is statistically significant."""

_Z80 = 0.8416212335729143  # 80% quantile


def mcnemar_exact(worse: int, better: int) -> float:
    """Return the two-sided exact McNemar p-value: twice the smaller binomial tail, at most 1.

    Args:
        worse: Questions that only the first system got right.
        better: Questions that only the second got right.

    Returns:
        1 when there is no such question, and so no evidence of a difference.

    Source: McNemar, Q. (1947), Psychometrika 12, 153-157; exact form: binomial(n, 1/2).
    """
    n, fewer = worse + better, min(worse, better)
    # The largest term of the tail comes from whole numbers, the others as ratios to it: nothing
    # overflows and no rounding builds up, whatever n is.
    tail = term = 1.0
    for i in range(fewer, 0, -1):
        term *= i / (n - i + 1)
        tail += term
        if term < tail * 1e-17:
            break
    return min(1.0, 2 * tail * (math.comb(n, fewer) / (1 << n)))


def fisher_exact(right: int, wrong: int, other_right: int, other_wrong: int) -> float:
    """Return the two-sided exact p-value of Fisher's test on a table of two groups.

    It is the probability, given the margins, of all tables that are no more likely than this one.

    Args:
        right: Right answers of the group.
        wrong: Wrong answers of the group.
        other_right: Right answers of all others.
        other_wrong: Wrong answers of all others.

    Source: Fisher, R. A. (1922), J. R. Stat. Soc. 85, 87-94.
    """
    size, others = right + wrong, other_right + other_wrong
    all_right = right + other_right

    def log_ways(inside: int) -> float:
        return _log_comb(size, inside) + _log_comb(others, all_right - inside)

    logs = list(map(log_ways, range(max(0, all_right - others), min(size, all_right) + 1)))
    largest, observed = max(logs), log_ways(right)
    ways = [math.exp(each - largest) for each in logs]
    # Rounding must not tell equally likely tables apart.
    as_rare = (way for each, way in zip(logs, ways, strict=True) if each <= observed + 1e-7)
    return min(1.0, math.fsum(as_rare) / math.fsum(ways))


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, in the order given; controls the family-wise error.

    Source: Holm, S. (1979), Scand. J. Stat. 6, 65-70.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def minimum_detectable_difference(n: int, discordance: float) -> float | None:
    """Return the smallest true difference in accuracy that McNemar's test detects with 80% power.

    Two-sided 5%, normal approximation. The sample size for a difference d is
    n = (z.975 √ψ + z.80 √(ψ − d²))² / d², solved here for d. No difference can be larger than ψ:
    where the formula says so, ψ is raised until it equals d.

    Args:
        n: Questions that both systems answer.
        discordance: ψ, the share of questions that exactly one of the two gets right; with several
            answers to each question, the mean squared difference of their shares of right ones.

    Returns:
        The difference as a fraction; None when n is below 4, where none can be detected.

    Source: Connor, R. J. (1987), Biometrics 43, 207-211.
    """
    if n < 4:
        return None
    root = math.sqrt(n + _Z80**2 - Z95**2)
    for_full_discordance = (Z95 * math.sqrt(n) + _Z80 * root) / (n + _Z80**2)
    return for_full_discordance * max(math.sqrt(discordance), for_full_discordance)


def questions_needed(difference: float, discordance: float) -> int | None:
    """Return the number of questions with which McNemar's test shows a difference with 80% power.

    Args:
        difference: True difference in accuracy, from −1 to 1.
        discordance: Share of questions that exactly one of the two systems gets right.

    Returns:
        The number; None for a difference of 0.

    Source: as for `minimum_detectable_difference`.
    """
    if not difference:
        return None
    d, discordance = abs(difference), max(discordance, abs(difference))
    root = Z95 * math.sqrt(discordance) + _Z80 * math.sqrt(discordance - d * d)
    return math.ceil((root / d) ** 2)


def pass_hat(right: Sequence[int], trials: Sequence[int], k: int) -> float | None:
    """Compute pass^k: the chance that a question is answered right k times in a row.

    Args:
        right: Right answers to each question.
        trials: Answers to each question; those with fewer than k are left out.
        k: 1 or more.

    Returns:
        The mean over questions of C(right, k) / C(trials, k); None when none has k answers.

    Source: Yao et al. (2024), τ-bench, arXiv 2406.12045, section 4.
    """
    chances = [
        math.comb(c, k) / math.comb(n, k) for c, n in zip(right, trials, strict=True) if n >= k
    ]
    return sum(chances) / len(chances) if chances else None


def pass_at(right: Sequence[int], trials: Sequence[int], k: int) -> float | None:
    """Compute pass@k: the chance that at least one of k answers to a question is right.

    Args:
        right: Right answers to each question.
        trials: Answers to each question; those with fewer than k are left out.
        k: 1 or more.

    Returns:
        The mean over questions of 1 - C(trials - right, k) / C(trials, k), which is unbiased; None
        when none has k answers.

    Source: Chen et al. (2021), arXiv 2107.03374, section 2.1.
    """
    none_right = pass_hat([n - c for c, n in zip(right, trials, strict=True)], trials, k)
    return None if none_right is None else 1 - none_right


def pairwise_agreement(ratings: Sequence[Sequence[str]]) -> float | None:
    """Return the mean over questions of the share of pairs of raters who agree.

    Args:
        ratings: For each question the letter of each rater; questions with fewer than two raters
            are left out.

    Returns:
        0 to 1; None when no question has two raters.

    Source: the observed agreement of Fleiss, J. L. (1971), Psychol. Bull. 76, 378-382.
    """
    rated = sum(len(letters) >= 2 for letters in ratings)
    shares = (
        # Without the pairs of a rater with itself.
        (sum(map(letters.count, letters)) - n) / (n * (n - 1))
        for letters in ratings
        if (n := len(letters)) >= 2
    )
    return sum(shares) / rated if rated else None


def fleiss_kappa(ratings: Sequence[Sequence[str]]) -> float | None:
    """Compute the agreement beyond chance, for raters who choose letters as often as they do here.

    Args:
        ratings: As for `pairwise_agreement`. The number of raters may differ between questions;
            where it does not, this is Fleiss' kappa.

    Returns:
        1 for full agreement, 0 for that of chance; None without two raters of a question, or when
        all of them name one and the same letter throughout.

    Source: Fleiss, J. L. (1971), Psychol. Bull. 76, 378-382.
    """
    observed = pairwise_agreement(ratings)
    letters = Counter(letter for rated in ratings if len(rated) >= 2 for letter in rated)
    if observed is None or len(letters) == 1:
        return None
    total = letters.total()
    by_chance = sum((count / total) ** 2 for count in letters.values())
    return (observed - by_chance) / (1 - by_chance)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Answers whose stated confidence lies in (low, high]; the first bin holds 0 as well."""

    low: float
    high: float
    n: int
    confidence: float | None
    """Mean; None, like `accuracy`, for n = 0."""
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far stated confidence and accuracy differ."""

    n: int
    """Answers with a stated confidence."""
    expected_error: float | None
    """Expected calibration error: mean of |confidence - accuracy| over the bins, by their n."""
    brier: float | None
    """Mean squared distance of confidence from 1 for right and 0 for wrong: 0 is best."""
    bins: list[CalibrationBin]


_BINS = 10
_UPPER_ENDS = [end / _BINS for end in range(1, _BINS + 1)]


def calibration(confidences: Sequence[float], right: Sequence[bool]) -> Calibration:
    """Compute the calibration in ten bins of equal width.

    Args:
        confidences: Of each answer, 0 to 1.
        right: Of each answer.

    Source: Guo et al. (2017), arXiv 1706.04599, section 2; Brier, G. W. (1950), Mon. Weather
    Rev. 78, 1-3.
    """
    sums = [[0, 0.0, 0] for _ in range(_BINS)]  # n, confidence, right
    for confidence, is_right in zip(confidences, right, strict=True):
        of_bin = sums[bisect_left(_UPPER_ENDS, confidence)]
        of_bin[0] += 1
        of_bin[1] += confidence
        of_bin[2] += is_right
    n = len(confidences)
    return Calibration(
        n=n,
        expected_error=sum(abs(said - was) for _, said, was in sums) / n if n else None,
        brier=sum((c - r) ** 2 for c, r in zip(confidences, right, strict=True)) / n if n else None,
        bins=[
            CalibrationBin(
                low=round(high - 1 / _BINS, 1),
                high=high,
                n=int(of_bin),
                confidence=said / of_bin if of_bin else None,
                accuracy=was / of_bin if of_bin else None,
            )
            for high, (of_bin, said, was) in zip(_UPPER_ENDS, sums, strict=True)
        ],
    )
