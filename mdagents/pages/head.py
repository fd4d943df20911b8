"""The top of the page: the figures of a run or of a comparison, and their charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mdagents.pages.charts import (
    accuracy_chart,
    calibration_chart,
    cost_chart,
    difference_chart,
    letter_chart,
    outcome_chart,
)
from mdagents.pages.listing import outcome
from mdagents.scoring.compare import Comparison
from mdagents.scoring.comparison_text import (
    comparison_notices,
    comparison_tables,
    pair_name,
    router_tables,
    run_lines,
)
from mdagents.scoring.formatting import Table
from mdagents.scoring.group import Group
from mdagents.scoring.report import ALL, NOT_ROUTED, Report, report_lines, report_tables
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and what it shows."""

    title: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Head:
    """The part of the page above the questions."""

    title: str
    notices: Sequence[str]
    lines: Sequence[str]
    """Figures that are clearer in a line than in a table."""
    tables: Sequence[Table]
    charts: Sequence[Chart]
    legend: Sequence[str] = ()
    """What the names in the tables stand for."""


def head_of_run(report: Report, rows: Sequence[ScoredRow]) -> Head:
    """Make the head of the page of one run.

    Args:
        report: The figures of the run.
        rows: Its questions.
    """
    levels = report.by_difficulty
    routed = {level: Counter[str]() for level in (*levels, NOT_ROUTED)}
    for row in rows:
        routed[row.difficulty or NOT_ROUTED][outcome(row)] += 1
    charts = [
        *_accuracy_charts({**levels, ALL: report.overall}, levels or {ALL: report.overall}),
        Chart(
            "Routing",
            outcome_chart({level: counted for level, counted in routed.items() if counted}),
        ),
    ]
    has_enough = report.overall.questions >= SMALLEST_FOR_COEFFICIENTS
    if has_enough and report.calibration[ALL].n >= SMALLEST_FOR_COEFFICIENTS:
        charts.append(Chart("Calibration", calibration_chart(report.calibration[ALL])))
    if has_enough:
        charts.append(
            Chart(
                "Position of the option",
                letter_chart(report.accuracy_by_gold_letter, report.predicted_letters),
            )
        )
    return Head(
        title=report.input,
        notices=report.notices,
        lines=report_lines(report),
        tables=report_tables(report),
        charts=charts,
    )


def head_of_comparison(comparison: Comparison) -> Head:
    """Make the head of the page of a comparison."""
    runs = {f"run {run.number}": run for run in comparison.runs}
    figures = {name: run.figures for name, run in runs.items()}
    front = [name for name, run in runs.items() if run.pareto]
    pairs = {pair_name(pair): pair for pair in comparison.pairs}
    return Head(
        title=f"Comparison of {len(runs)} runs on {comparison.questions} questions",
        notices=comparison_notices(comparison),
        legend=run_lines(comparison),
        lines=[],
        tables=[*comparison_tables(comparison), *router_tables(comparison.router)],
        charts=[
            *_accuracy_charts(figures, figures, front),
            *(
                [Chart("Differences", difference_chart(pairs))]
                if comparison.questions >= SMALLEST_FOR_RATES
                else []
            ),
        ],
    )


def _accuracy_charts(
    groups: Mapping[str, Group], in_cost: Mapping[str, Group], front: Sequence[str] = ()
) -> list[Chart]:
    """Return accuracy, alone and against tokens, of the groups with enough questions."""
    shown = {name: g for name, g in groups.items() if g.questions >= SMALLEST_FOR_RATES}
    if not shown:
        return []
    against = "Tokens against accuracy" + (", with the Pareto front" if front else "")
    cost = {name: g for name, g in in_cost.items() if name in shown}
    return [
        Chart("Accuracy", accuracy_chart(shown)),
        Chart(against, cost_chart(cost or shown, front)),
    ]
