"""Confidence intervals of proportions."""

from __future__ import annotations

import math

Interval = tuple[float, float]
Z95 = 1.959963984540054
"""97.5% quantile of the normal distribution."""


def wilson(successes: float, n: int) -> Interval | None:
    """Return the 95% Wilson score interval of a proportion; None for n = 0.

    Args:
        successes: Number of successes, 0 to n; fractional when each trial is itself a mean.
        n: Number of independent trials.

    Source: Wilson, E. B. (1927), J. Am. Stat. Assoc. 22, 209-212.
    """
    if n == 0:
        return None
    p, z2 = successes / n, Z95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
