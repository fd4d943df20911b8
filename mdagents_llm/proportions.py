"""Confidence intervals of proportions and of their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence

Interval = tuple[float, float]
Z95 = 1.959963984540054
"""97.5% quantile of the normal distribution."""

_PRECISION = 1e-12  # of the ends of an interval


def accuracy_interval(right: Sequence[int], answers: Sequence[int]) -> Interval | tuple[None, None]:
    """Return the 95% interval of accuracy: Wilson's, for as many answers as are independent.

    Args:
        right: Number of right answers to each question.
        answers: Number of answers to each question.

    Returns:
        The interval; (None, None) without a question.
    """
    if not answers:
        return None, None
    effect = design_effect(right, answers, lowest=0)
    return wilson(sum(right) / effect, sum(answers) / effect) or (None, None)


def difference_interval(
    differences: Sequence[float], answers: Sequence[int], *, of_means: bool = False
) -> Interval:
    """Return the 95% interval of the difference of two accuracies on the same questions.

    It is Tango's, for as many answers as are independent.

    Args:
        differences: Number of the second run's right answers to each question, minus the first's;
            not empty.
        answers: Number of each run's answers to each question.
        of_means: Whether an answer may be a mean over several, as that of a coin between two runs.
    """
    effect = design_effect(differences, answers, lowest=-1, least=0.0 if of_means else 1.0)
    better = sum(gain for gain in differences if gain > 0)
    worse = -sum(gain for gain in differences if gain < 0)
    return tango(better / effect, worse / effect, sum(answers) / effect) or (-1.0, 1.0)


def design_effect(
    sums: Sequence[float], sizes: Sequence[int], *, lowest: int, least: float = 1.0
) -> float:
    """Return how many of these grouped values tell as much about their mean as one independent one.

    A few groups that differ say little about how values belong together. Half a group whose values
    are all the lowest, and half a group whose values are all 1, are therefore counted as well: they
    outweigh such few groups, and are outweighed by many.

    Args:
        sums: Sum of the values of each group; not empty.
        sizes: Number of values in each group, from 1. A value is −1, 0 or 1.
        lowest: Smallest value that is possible, −1 or 0.
        least: Smallest effect to return; below 1 only where the values are means, which vary less.

    Returns:
        The ratio of two variances of the mean: of these groups, and of as many independent values.
        At most that of groups whose values are all equal, which is their size if they have one.

    Source: Kish, L. (1965), Survey Sampling, sections 5.4 and 8.2; for score intervals, Korn and
    Graubard (1998), Survey Methodology 24, 193-201.
    """
    squared_sizes = sum(n * n for n in sizes)
    most = added = squared_sizes / sum(sizes)
    n = sum(sizes) + added
    mean = (sum(sums) + added * (1 + lowest) / 2) / n
    independent = (sum(map(abs, sums)) + added * (1 - lowest) / 2) / n - mean * mean
    squares = sum(s * s for s in sums) + added * added * (1 + lowest * lowest) / 2
    products = (
        sum(s * n for s, n in zip(sums, sizes, strict=True)) + added * added * (1 + lowest) / 2
    )
    grouped = (squares - 2 * mean * products + mean * mean * (squared_sizes + added * added)) / n
    return min(most, max(least, grouped / independent))


def wilson(successes: float, n: float) -> Interval | None:
    """Return the 95% Wilson score interval of a proportion; None for n = 0.

    Args:
        successes: Number of successes, 0 to n.
        n: Number of independent trials; both are fractional where a `design_effect` divides them.

    Source: Wilson, E. B. (1927), J. Am. Stat. Assoc. 22, 209-212.
    """
    if n == 0:
        return None
    p, z2 = successes / n, Z95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # Without rounding where all trials are alike.
    return (
        max(0.0, centre - half) if successes > 0 else 0.0,
        min(1.0, centre + half) if successes < n else 1.0,
    )


def tango(better: float, worse: float, n: float) -> Interval | None:
    """Return Tango's 95% score interval of the difference of two paired proportions.

    Args:
        better: Number of pairs in which only the second trial is a success, 0 to n.
        worse: Number of pairs in which only the first trial is a success.
        n: Number of independent pairs; all are fractional where a `design_effect` divides them.

    Returns:
        The interval of the second proportion minus the first, within −1 to 1; None for n = 0.

    Source: Tango, T. (1998), Stat. Med. 17, 891-908.
    """
    if n == 0:
        return None
    estimate = (better - worse) / n

    def is_plausible(difference: float) -> bool:
        # Most likely share of worse pairs, given the difference.
        b = (2 * n - better + worse) * difference - better - worse
        root = math.sqrt(b * b + 8 * n * worse * difference * (1 - difference))
        share = (root - b) / (4 * n)
        variance = n * (2 * share + difference * (1 - difference))
        return (n * (estimate - difference)) ** 2 <= Z95**2 * variance

    def end(outermost: float) -> float:
        inside, outside = estimate, outermost
        if is_plausible(outermost):
            return outermost
        while abs(outside - inside) > _PRECISION:
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_plausible(middle) else (inside, middle)
        return inside

    return end(-1.0), end(1.0)
