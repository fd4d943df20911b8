"""View models of the runs page: runs in progress, and a board of the others with their ranks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mdagents.display.display import interval_so_far
from mdagents.live.runs import ListedRun, RunState, UnreadableRun
from mdagents.pages.html_parts import Part, made_by
from mdagents.pages.run import RunLine
from mdagents.scoring.formatting import number, percent, usd
from mdagents.scoring.ranking import Scores, rank_ranges

_WIDTH, _STEP = 160, 0.1  # drawing units; step of the axis

Ranks = Mapping[str, "Rank"]
"""Name of a run -> rank."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Rank of a run among the finished runs of the same questions."""

    best: int
    worst: int
    runs: int
    """Number of these runs."""
    items: bytes
    """Digest of the questions."""

    def __str__(self) -> str:
        place = f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"
        return f"{place} of {self.runs}"


def ranked(scores: Mapping[str, Scores]) -> Ranks:
    """Return the rank of each run that shares its questions with another.

    Args:
        scores: Name of a finished run -> its right answers.
    """
    groups: dict[bytes, list[str]] = {}
    for name, of_run in scores.items():
        if of_run.right:
            groups.setdefault(of_run.items, []).append(name)
    return {
        name: Rank(best, worst, len(names), items)
        for items, names in groups.items()
        if len(names) > 1
        for name, (best, worst) in zip(
            names, rank_ranges([scores[name] for name in names]), strict=True
        )
    }


@dataclass(frozen=True, slots=True)
class Axis:
    """Accuracies that the intervals of the board are drawn on, 0 to 1."""

    low: float
    high: float

    def at(self, accuracy: float) -> float:
        """Return the place of an accuracy, in drawing units."""
        return _WIDTH * (accuracy - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(place, label) of each tick."""
        steps = round((self.high - self.low) / _STEP)
        every = 1 if steps <= 4 else 2 if steps <= 8 else 5
        shown = [self.low + _STEP * step for step in range(0, steps + 1, every)]
        return [(self.at(accuracy), f"{accuracy:.0%}") for accuracy in shown]


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A run as a row of the board."""

    line: RunLine
    rank: Rank | None
    axis: Axis

    @property
    def model(self) -> str:
        """Models that the run asks, without provider."""
        return ", ".join(name.rpartition("/")[2] for name in self.line.models.split(", "))

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """Places of the interval's ends and of the accuracy; None if unknown."""
        totals = self.line.run.totals
        ends = _interval(self.line.run)
        if ends is None:
            return None
        return (
            self.axis.at(ends[0]),
            self.axis.at(ends[1]),
            self.axis.at(totals.correct / totals.scored),
        )

    @property
    def cells(self) -> list[tuple[str, str, float]]:
        """(heading, text, sort key) of accuracy, cost and tokens; unknown ones have key −1."""
        totals = self.line.run.totals
        n = totals.scored
        accuracy = totals.correct / n if n else None
        cost = 1000 * totals.cost_usd / n if n and totals.cost_usd is not None else None
        tokens = totals.total_tokens / n if n else None
        texts = (
            ("accuracy", percent(accuracy), accuracy),
            ("USD / 1,000", usd(cost), cost),
            ("tokens", number(tokens, ",.0f"), tokens),
        )
        return [(what, text, -1 if value is None else value) for what, text, value in texts]


def _interval(run: ListedRun) -> tuple[float, float] | None:
    try:
        return interval_so_far(run.totals)
    except ValueError:  # inconsistent totals
        return None


def axis_of(runs: Sequence[ListedRun]) -> Axis:
    """Return an axis in steps of 10 points that holds the intervals of all runs."""
    ends = [end for run in runs for end in _interval(run) or ()]
    low = math.floor(min(ends, default=0) / _STEP) * _STEP
    high = math.ceil(max(ends, default=1) / _STEP) * _STEP
    return Axis(max(0.0, low), min(1.0, high)) if high > low else Axis(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Board:
    """The runs page.

    Args:
        runs: Runs of the folder, the latest start first.
        ranks: Ranks that are known so far.
    """

    runs: Sequence[ListedRun | UnreadableRun]
    ranks: Ranks

    @property
    def running(self) -> list[RunLine]:
        """Runs in progress."""
        return [
            RunLine(run)
            for run in self.runs
            if isinstance(run, ListedRun) and run.state is RunState.RUNNING
        ]

    @property
    def rows(self) -> list[BoardRow]:
        """All other readable runs, the most accurate first."""
        runs = [
            run
            for run in self.runs
            if isinstance(run, ListedRun) and run.state is not RunState.RUNNING
        ]
        axis = axis_of(runs)
        rows = [BoardRow(RunLine(run), self.ranks.get(run.name), axis) for run in runs]
        return sorted(rows, key=lambda row: -row.cells[0][2])

    @property
    def axis(self) -> Axis:
        """Axis of the intervals."""
        return axis_of([row.line.run for row in self.rows])

    @property
    def datasets(self) -> list[tuple[str, int]]:
        """(data set, number of runs) of the board."""
        return sorted(Counter(row.line.run.manifest.dataset for row in self.rows).items())

    @property
    def methods(self) -> list[str]:
        """Methods of the board."""
        return sorted({row.line.method for row in self.rows})

    @property
    def lead(self) -> tuple[str, str]:
        """(who leads the largest group of runs of the same questions, how sure that is)."""
        groups = Counter(rank.items for rank in self.ranks.values())
        if not groups:
            return "", ""
        ((items, count),) = groups.most_common(1)
        rows = [row for row in self.rows if row.rank and row.rank.items == items]
        if not rows:
            return "", ""
        first = rows[0]
        dataset = first.line.run.manifest.dataset
        sharing = sum(row.rank is not None and row.rank.best == 1 for row in rows)
        sure = (
            f"Paired tests leave {sharing} of {count} runs of the same questions in first place."
            if sharing > 1
            else f"It is better than each of the other {count - 1} runs of the same questions."
        )
        return (
            f"{first.model} · {first.line.method} leads {dataset} with {first.cells[0][1]}.",
            sure,
        )

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the page in order."""
        macro = partial(made_by, "board.html")
        yield Part("lead", "leads", self.lead, macro("lead", self))
        for line in self.running:
            key: object = (line.run.snapshot, line.run.totals.questions)
            yield Part(f"running-{line.name}", "running", key, macro("running", line))
        axis = self.axis
        yield Part("axis", "axis-of-board", axis, macro("axis", axis))
        for row in self.rows:
            run = row.line.run
            key = (run.state, run.snapshot, run.totals.questions, row.rank, axis)
            yield Part(f"run-{run.name}", "rows", key, macro("row", row))
        for listed in self.runs:
            if isinstance(listed, UnreadableRun):
                yield Part(f"run-{listed.name}", "rows", listed, macro("unreadable", listed))
