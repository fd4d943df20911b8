"""Bootstrap intervals of a mean over groups of values. It loads numpy, which takes time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
SEED = 42

_CELLS_AT_ONCE = 20_000_000  # of counts, 8 bytes each


def clustered_bootstrap(
    sums: Sequence[float], sizes: Sequence[int], *, seed: int = SEED, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of a mean over values in groups.

    Groups are drawn with all their values: where the values of a group are alike, as the answers to
    one question are, drawing single values would overstate the sample size.

    Args:
        sums: Of each group, the sum of its values.
        sizes: Of each group, the number of its values.
        seed: Of the draws. The order of the groups does not matter.
        resamples: Number of draws.

    Returns:
        The interval; None without a group.

    Source: Efron, B. (1979), Ann. Stat. 7, 1-26; of groups: Davison and Hinkley (1997), Bootstrap
    Methods and their Application, section 3.8.
    """
    if not len(sums):
        return None
    # How often each kind of group is drawn is multinomial: the same resamples, without drawing
    # every group individually.
    kinds, counts = np.unique(np.column_stack([sums, sizes]), axis=0, return_counts=True)
    n, rng = counts.sum(), np.random.default_rng(seed)
    at_once = max(1, _CELLS_AT_ONCE // len(kinds))
    totals = np.concatenate(
        [
            rng.multinomial(n, counts / n, size=min(at_once, resamples - done)) @ kinds
            for done in range(0, resamples, at_once)
        ]
    )
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    sizes: Sequence[int],
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of the difference of two means, second minus first.

    Both keep their values of a group that is drawn, so that what is common to both, as an easy
    question is to two systems, does not widen the interval.

    Args:
        first: Of each group, the sum of the first's values.
        second: Those of the second, in the same order.
        sizes: Of each group, the number of values of each.
        seed: Of the draws.
        resamples: Number of draws.

    Returns:
        The interval; None without a group.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    return clustered_bootstrap(differences, sizes, seed=seed, resamples=resamples)
