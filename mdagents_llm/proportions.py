"""Confidence intervals of proportions and of their differences."""

from __future__ import annotations

import math

Interval = tuple[float, float]
Z95 = 1.959963984540054
"""97.5% quantile of the normal distribution."""

_PRECISION = 1e-12  # of the ends of an interval


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


def tango(better: float, worse: float, n: int) -> Interval | None:
    """Return Tango's 95% score interval of the difference of two paired proportions.

    Args:
        better: Number of pairs in which only the second trial is a success, 0 to n; fractional when
            each trial is itself a mean.
        worse: Number of pairs in which only the first trial is a success.
        n: Number of independent pairs.

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
