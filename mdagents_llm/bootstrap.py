"""Bootstrap confidence intervals of a mean over grouped values. Imports numpy, which is slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
SEED = 42
"""Seed of the resampling."""

FEWEST_GROUPS = 10
"""Number of groups from which on an interval is shown. Below, resampled means vary too little: of
normal values, the 95% interval of 2, 3 and 5 holds the true mean in 50, 78 and 86% of samples, that
of one has no width."""

_CELLS_AT_ONCE = 20_000_000  # counts in memory at once, 8 bytes each


def clustered_bootstrap(
    sums: Sequence[float], sizes: Sequence[int], *, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """Return the 95% percentile interval of a mean over grouped values.

    Whole groups are resampled: where the values of a group are correlated, as the answers to one
    question are, resampling single values would overstate the sample size. The interval is the same
    each time, whatever the order of the groups.

    Args:
        sums: Sum of the values of each group.
        sizes: Number of values in each group.
        resamples: Number of resamples.

    Returns:
        The interval; None without groups.

    Source: Efron, B. (1979), Ann. Stat. 7, 1-26; for groups, Davison and Hinkley (1997), Bootstrap
    Methods and their Application, section 3.8.
    """
    if not len(sums):
        return None
    # The number of draws of each distinct group is multinomial: the same resamples, without
    # drawing every group individually.
    kinds, counts = np.unique(np.column_stack([sums, sizes]), axis=0, return_counts=True)
    n, rng = counts.sum(), np.random.default_rng(SEED)
    at_once = max(1, _CELLS_AT_ONCE // len(kinds))
    totals = np.concatenate(
        [
            rng.multinomial(n, counts / n, size=min(at_once, resamples - done)) @ kinds
            for done in range(0, resamples, at_once)
        ]
    )
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)
