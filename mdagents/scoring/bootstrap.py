"""Bootstrap intervals over questions. Apart from `statistics` because numpy takes time to load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdagents.scoring.statistics import Interval

RESAMPLES = 10_000
SEED = 42


def clustered_bootstrap(
    sums: Sequence[float], sizes: Sequence[int], *, seed: int = SEED, resamples: int = RESAMPLES
) -> Interval | None:
    """Return the 95 % percentile interval of a mean over answers grouped by question.

    Questions are drawn with all their answers, since the answers to one question are alike:
    drawing single answers would overstate the sample size.

    Args:
        sums: Of each question, the sum over its answers (of right answers, or of differences).
        sizes: Of each question, the number of its answers.
        seed: Of the draws. The order of the questions does not matter.
        resamples: Number of draws.

    Returns:
        The interval; None without a question.

    Source: Efron, B. (1979), Ann. Stat. 7, 1-26; of groups: Davison and Hinkley (1997), Bootstrap
    Methods and their Application, section 3.8.
    """
    if not sums:
        return None
    # How often each kind of question is drawn is multinomial: the same resamples, without drawing
    # every question individually.
    kinds, counts = np.unique(np.column_stack([sums, sizes]), axis=0, return_counts=True)
    n = counts.sum()
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples)
    totals = drawn @ kinds
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    sizes: Sequence[int],
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """Return the 95 % percentile interval of the difference in accuracy, second minus first.

    Both systems keep their answers to a question that is drawn, so that what makes a question easy
    for both does not widen the interval.

    Args:
        first: Right answers of the first system to each question.
        second: Those of the second, in the same order.
        sizes: Answers of each system to each question.
        seed: Of the draws.
        resamples: Number of draws.

    Returns:
        The interval; None without a question.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    return clustered_bootstrap(differences, sizes, seed=seed, resamples=resamples)
