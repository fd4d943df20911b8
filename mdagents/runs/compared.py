"""Runs compared on the same questions, for programs and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mdagents.runs.result import RunResult
from mdagents.scoring import comparison as scoring
from mdagents.scoring import comparison_text
from mdagents.scoring.comparison import Block, Comparison
from mdagents.scoring.comparison_tables import difference
from mdagents.scoring.formatting import UNKNOWN, p_value
from mdagents.scoring.group_text import ACCURACY, accuracy_cell, cost_cells
from mdagents.scoring.rows import read_output
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.notebook import html_line, html_table
from mdagents_llm.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from mdagents.pages.canvas import Figure

_FRONT = {None: UNKNOWN, True: "yes", False: ""}


@dataclass(frozen=True, slots=True, repr=False)
class RunComparison:
    """Runs compared on the same questions. A notebook shows it as two tables."""

    comparison: Comparison
    """All figures, as `mdagents score --compare` writes them."""

    @property
    def verdict(self) -> str:
        """The result in a sentence: which run is better, or that none is."""
        return comparison_text.headline(self.comparison)

    @property
    def _block(self) -> Block:
        return self.comparison.blocks[0]

    def runs(self) -> pd.DataFrame:
        """Return one row per run: accuracy with its 95% interval, and amounts per question.

        Raises:
            ConfigError: pandas is not installed.
        """
        names = (
            "questions", "n", "correct", "accuracy", "accuracy_low", "accuracy_high",
            "tokens_per_question", "calls_per_question", "cost_per_question",
        )  # fmt: skip
        return _frame(
            {"run": run.label, **{name: getattr(run.figures, name) for name in names},
             "on_frontier": run.pareto}
            for run in self._block.runs
        )  # fmt: skip

    def pairs(self) -> pd.DataFrame:
        """Return one row per pair: the paired difference with its interval, and McNemar's test.

        `p` is adjusted by Holm's method if there are several pairs.

        Raises:
            ConfigError: pandas is not installed.
        """
        names = ("difference", "difference_low", "difference_high", "mcnemar_p", "p")
        return _frame(
            {
                "first": self._block.label(pair.first),
                "second": self._block.label(pair.second),
                **{name: getattr(pair, name) for name in names},
                "right_to_wrong": len(pair.right_to_wrong),
                "wrong_to_right": len(pair.wrong_to_right),
            }
            for pair in self._block.pairs
        )

    def figures(self) -> dict[str, Figure]:
        """Return the figures of the report by title; a notebook draws each.

        There are none below 10 questions.

        Raises:
            ConfigError: matplotlib is not installed.
        """
        with needs_extra("report", "a figure"):
            from mdagents.pages.report_summary import head_of_comparison

            return {figure.title: figure for figure in head_of_comparison(self.comparison).figures}

    def frontier(self) -> Figure:
        """Return accuracy against cost with the frontier, or against tokens without prices.

        Raises:
            ConfigError: matplotlib is not installed, or there are fewer than 10 questions.
        """
        figures = self.figures()
        for title in ("Accuracy against cost", "Accuracy against tokens"):
            if title in figures:
                return figures[title]
        raise ConfigError("a frontier needs at least 10 questions and the tokens of each run")

    def __repr__(self) -> str:
        questions = counted(self._block.questions, "question")
        return f"<RunComparison {len(self._block.runs)} runs, {questions}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """Return the tables that a notebook shows, in the colors of its theme."""
        block = self._block
        runs = [
            [run.label, accuracy_cell(run.figures), *cost_cells(run.figures), _FRONT[run.pareto]]
            for run in block.runs
        ]
        pairs = [
            [block.pair_name(pair), difference(pair, block), p_value(pair.p)]
            for pair in block.pairs
        ]
        adjusted = "p (McNemar, Holm)" if len(pairs) > 1 else "p (McNemar)"
        notices = map(html_line, comparison_text.comparison_notices(self.comparison))
        costs = ["tokens", "calls", "USD/1,000", "Pareto"]
        questions = counted(block.questions, "question")
        title = f"{questions}; tokens and calls per question, Pareto by tokens"
        return "".join(
            [
                html_line(self.verdict),
                html_table(
                    runs,
                    ["", ACCURACY, *costs],
                    title,
                ),
                html_table(pairs, ["", "difference (95% interval)", adjusted]),
                *notices,
            ]
        )


def _frame(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    with needs_extra("data", "a table of runs"):
        import pandas as pd

    return pd.DataFrame(list(rows))


def compare(runs: Sequence[RunResult | Path | str], *, common: bool = False) -> RunComparison:
    """Compare runs on the same questions, with a paired test for each pair.

    Args:
        runs: Results of `run`, or what `load` takes as a path; at least two.
        common: Whether runs with different questions are compared on their common ones.

    Raises:
        ConfigError: A run does not exist or cannot be read, there are fewer than two, or they hold
            different questions.
    """
    if isinstance(runs, RunResult | Path | str) or len(runs) < 2:
        raise ConfigError("compare needs a list of at least two runs")
    paths = [run.folder if isinstance(run, RunResult) else Path(run) for run in runs]
    return RunComparison(scoring.compare([read_output(path) for path in paths], common=common))
