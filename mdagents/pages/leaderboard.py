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
from mdagents.scoring.formatting import UNKNOWN, number, percent, usd
from mdagents.scoring.ranking import Scores, rank_ranges
from mdagents.scoring.statistics import SMALLEST_FOR_RATES

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
    questions: int
    """Number of the questions."""

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
        name: Rank(best, worst, len(names), items, len(scores[name].right))
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
    place: str
    """The rank in words; `…` while it is being computed."""
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
        right = percent(accuracy) if _has_rate(self.line.run) else f"{totals.correct} of {n}"
        texts = (
            ("accuracy", right if n else UNKNOWN, accuracy),
            ("USD / 1,000", usd(cost), cost),
            ("tokens", number(tokens, ",.0f"), tokens),
        )
        return [(what, text, -1 if value is None else value) for what, text, value in texts]


def _has_rate(run: ListedRun) -> bool:
    """Return whether a run has enough questions for a percentage; epochs add none."""
    return min(run.totals.scored, len(run.manifest.item_ids)) >= SMALLEST_FOR_RATES


def _interval(run: ListedRun) -> tuple[float, float] | None:
    if not _has_rate(run):
        return None
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
        is_ranking: Whether others are being computed.
    """

    runs: Sequence[ListedRun | UnreadableRun]
    ranks: Ranks
    is_ranking: bool = False

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
        rows = []
        for run in runs:
            rank = self.ranks.get(run.name)
            is_open = self.is_ranking and run.state is RunState.FINISHED
            place = str(rank or ("…" if is_open else "–"))
            rows.append(BoardRow(RunLine(run), rank, place, axis))
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
        """(who is first on the most questions that runs share, how sure that is)."""
        ranks = [(row, row.rank) for row in self.rows if row.rank is not None]
        if not ranks:
            return "", ""
        most = max((rank for _, rank in ranks), key=lambda rank: (rank.questions, rank.runs))
        first = [row for row, rank in ranks if rank.items == most.items and rank.best == 1]
        if not first:  # the folder of the most accurate was removed
            return "", ""
        dataset = first[0].line.run.manifest.dataset
        asked = f"{most.runs} runs of the same {most.questions:,} questions of {dataset}"
        if len(first) > 1:
            return (
                f"{len(first)} of {asked} share first place.",
                "Paired tests show no significant difference between them.",
            )
        return (
            f"{first[0].model} · {first[0].line.method} is the most accurate of {asked}.",
            "Paired tests show it to be better than each of the others.",
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
            key = (run.state, run.snapshot, run.totals.questions, row.place, axis)
            yield Part(f"run-{run.name}", "rows", key, macro("row", row))
        for listed in self.runs:
            if isinstance(listed, UnreadableRun):
                yield Part(f"run-{listed.name}", "rows", listed, macro("unreadable", listed))
