"""Measure how often the 95% intervals of accuracies and their differences hold the true value.

    python -m benchmarks.intervals

Simulated runs answer each question in several epochs. A question has its own chance of a right
answer, drawn from a beta distribution; the answers of its epochs are correlated by `correlation`: 0
where all questions are equally hard, 1 where all epochs of a question say the same. In the second
run of a pair, half of the questions, or nine of ten, keep the chance that they have in the first.

Three intervals are compared: the percentile bootstrap over questions, with the interval of one
epoch where all questions or all epochs of each are alike; the interval of one epoch, as if a
question's mean were one answer (Wilson's, Tango's); and the same for the effective number of
answers, which scoring uses.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import make_parser, parse, show_machine, show_table
from mdagents_llm.bootstrap import clustered_bootstrap
from mdagents_llm.proportions import Interval, accuracy_interval, difference_interval, tango, wilson

QUESTIONS = (20, 100, 500)
EPOCHS = (2, 5)
CORRELATIONS = (0.0, 0.3, 0.9, 1.0)
ACCURACIES = (0.5, 0.8, 0.95, 0.99)
PAIRS = ((0.6, 0.7), (0.9, 0.9), (0.9, 0.95), (0.95, 0.99))
KEPT = (0.5, 0.9)
"""Shares of the questions whose chance of a right answer is the same in both runs of a pair."""
ENOUGH = 0.93
"""Coverage below which a setting is counted as too low."""

BOOTSTRAP = "bootstrap"

_RESAMPLES = 1000
_EACH_RESAMPLED = 4  # every fourth simulation, because resampling takes most of the time
_SEED = 42

Counts = tuple[tuple[int, int], ...]
"""Pairs (right answers to a question, or their difference; number of such questions)."""


@dataclass(slots=True)
class Measured:
    """What a method reached in the settings of one row."""

    coverage: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)


def effective(counts: Counts, epochs: int, *, paired: bool) -> Interval:
    """Return the interval that scoring uses."""
    sums = [value for value, count in counts for _ in range(count)]
    sizes = [epochs] * len(sums)
    if paired:
        return difference_interval(sums, sizes)
    low, high = accuracy_interval(sums, sizes)
    assert low is not None
    assert high is not None
    return low, high


def of_one_epoch(counts: Counts, epochs: int, *, paired: bool) -> Interval:
    """Return the interval for as many answers as there are questions."""
    questions = sum(count for _, count in counts)
    better = sum(value * count for value, count in counts if value > 0) / epochs
    worse = -sum(value * count for value, count in counts if value < 0) / epochs
    ends = tango(better, worse, questions) if paired else wilson(better, questions)
    assert ends is not None
    return ends


def resampled(counts: Counts, epochs: int, *, paired: bool) -> Interval:
    """Return the percentile interval over questions, where questions and epochs differ."""
    if len(counts) == 1 or all(abs(value) in (0, epochs) for value, _ in counts):
        return of_one_epoch(counts, epochs, paired=paired)
    sums = [value for value, count in counts for _ in range(count)]
    ends = clustered_bootstrap(sums, [epochs] * len(sums), resamples=_RESAMPLES)
    assert ends is not None
    return ends


METHODS = {
    BOOTSTRAP: resampled,
    "one epoch": of_one_epoch,
    "effective answers": effective,
}


def chances(
    rng: np.random.Generator, mean: float, correlation: float, size: tuple[int, int]
) -> NDArray[np.float64]:
    """Return the chance of a right answer to each question, by simulation and question."""
    if correlation == 0:
        return np.full(size, mean)
    if correlation == 1:
        return (rng.random(size) < mean).astype(float)
    spread = 1 / correlation - 1
    return rng.beta(mean * spread, (1 - mean) * spread, size)


def accuracies(
    rng: np.random.Generator, size: tuple[int, int], epochs: int
) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Yield the true accuracy and the right answers of simulated runs, setting by setting."""
    for mean, correlation in product(ACCURACIES, CORRELATIONS):
        yield mean, rng.binomial(epochs, chances(rng, mean, correlation, size))


def differences(
    rng: np.random.Generator, size: tuple[int, int], epochs: int
) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Yield the true difference and the gains of simulated pairs of runs, setting by setting."""
    for (first, second), correlation, kept in product(PAIRS, CORRELATIONS, KEPT):
        before = chances(rng, first, correlation, size)
        after = np.where(rng.random(size) < kept, before, chances(rng, second, correlation, size))
        gains = rng.binomial(epochs, after) - rng.binomial(epochs, before)
        yield (1 - kept) * (second - first), gains


def measure(simulations: int, *, paired: bool) -> None:
    """Print how often the intervals hold the true value, by questions and epochs."""
    rng = np.random.default_rng(_SEED)
    rows: list[dict[str, object]] = []
    settings, too_low = 0, dict.fromkeys(METHODS, 0)
    for questions, epochs in product(QUESTIONS, EPOCHS):
        simulate = differences if paired else accuracies
        found = {name: Measured() for name in METHODS}
        intervals = {name: _remembered(name, epochs, paired=paired) for name in METHODS}
        for truth, values in simulate(rng, (simulations, questions), epochs):
            settings += 1
            outcomes = [tuple(sorted(Counter(row).items())) for row in values.tolist()]
            for name, interval in intervals.items():
                step = _EACH_RESAMPLED if name == BOOTSTRAP else 1
                ends = list(map(interval, outcomes[::step]))
                held = fmean(low - 1e-9 <= truth <= high + 1e-9 for low, high in ends)
                found[name].coverage.append(held)
                found[name].width.append(fmean(high - low for low, high in ends))
                too_low[name] += held < ENOUGH
        rows.append({"questions": questions, "epochs": epochs} | {
            name: f"{min(of.coverage):.1%} {fmean(of.coverage):.1%} {100 * fmean(of.width):.1f}"
            for name, of in found.items()
        })  # fmt: skip
    below = {"questions": f"below {ENOUGH:.0%}, of {settings}", "epochs": "", **too_low}
    what = "Differences" if paired else "Accuracies"
    show_table(f"{what}: lowest and mean coverage, mean width in points", [*rows, below])


def _remembered(name: str, epochs: int, *, paired: bool) -> Callable[[Counts], Interval]:
    return cache(lambda counts: METHODS[name](counts, epochs, paired=paired))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("intervals", __doc__)
    parser.add_argument(
        "--simulations", type=int, default=2000, help="of each setting [%(default)s]"
    )
    options = parse(parser, argv, quick={"simulations": 10})
    show_machine("intervals")
    for paired in (False, True):
        measure(options.simulations, paired=paired)
    return 0


if __name__ == "__main__":
    sys.exit(main())
