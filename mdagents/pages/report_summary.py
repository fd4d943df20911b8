"""The head of a report: figures and charts of a run, comparison, what-if or study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mdagents.pages.charts import (
    accuracy_chart,
    calibration_chart,
    cost_chart,
    difference_chart,
    letter_chart,
    outcome_chart,
)
from mdagents.pages.curve import policy_chart
from mdagents.pages.listing import outcome
from mdagents.pages.run_card import Card, headline, make_card
from mdagents.scoring import comparison_text, study_text, what_if_text
from mdagents.scoring.compare import Comparison
from mdagents.scoring.exaid_figures import ExaidFigures
from mdagents.scoring.formatting import Table, percent
from mdagents.scoring.group import Group
from mdagents.scoring.report import ALL, NOT_ROUTED, Report, report_lines, report_tables
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
from mdagents.scoring.study import StudyFigures
from mdagents.scoring.what_if import WhatIf

_FAMILIES_SHOWN = 20  # in the table of policies


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title."""

    title: str
    svg: Markup
    is_wide: bool = False
    """Whether the chart takes the full width of the page."""


@dataclass(frozen=True, slots=True)
class Head:
    """The part of the page above the questions."""

    title: str
    """Result in one sentence."""
    run_names: Sequence[str]
    """Display names of the runs."""
    cards: Sequence[Card]
    """One card for each run."""
    notices: Sequence[str]
    lines: Sequence[str]
    """Figures that are clearer in a line than in a table."""
    tables: Sequence[Table]
    charts: Sequence[Chart]
    figures: Mapping[str, Any]
    """Contents of the JSON file that the program writes beside the page."""
    verdicts: Sequence[str] = ()
    """Conclusions of a comparison, in words."""


def head_of_run(report: Report, run: RunOutput) -> Head:
    """Make the head of the page of one run.

    Args:
        report: The figures of the run.
        run: The run.
    """
    levels = report.by_difficulty
    routed = {level: Counter[str]() for level in (*levels, NOT_ROUTED)}
    for row in run.rows:
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
        title=headline(report.overall, run.manifest),
        run_names=[run.name],
        cards=[make_card(run)],
        notices=report.notices,
        lines=report_lines(report),
        tables=[*report_tables(report), *_exaid_tables(report.summaries, has_total=True)],
        charts=charts,
        figures=report.as_dict(),
    )


def head_of_comparison(comparison: Comparison, runs: Sequence[RunOutput]) -> Head:
    """Make the head of the page of a comparison.

    Args:
        comparison: The figures of the runs.
        runs: Those runs, with the rows that are compared.
    """
    names = comparison_text.run_names(comparison)
    figures = {names[run.number]: run.figures for run in comparison.runs}
    front = [names[run.number] for run in comparison.runs if run.pareto]
    pairs = {comparison_text.pair_name(pair, names): pair for pair in comparison.pairs}
    made = {names[run.number]: run.summaries for run in comparison.runs}
    what = " and ".join(names.values()) if len(names) == 2 else f"{len(names)} runs"
    return Head(
        title=f"{what} on {comparison.questions:,} questions: "
        + comparison_text.headline(comparison),
        run_names=list(names.values()),
        cards=list(map(make_card, runs)),
        notices=comparison_text.comparison_notices(comparison, names),
        verdicts=comparison_text.verdicts(comparison),
        lines=comparison_text.scope_lines(comparison, names),
        tables=[
            *comparison_text.comparison_tables(comparison, names),
            *comparison_text.router_tables(comparison, names),
            *_exaid_tables({name: of_run for name, of_run in made.items() if of_run}),
        ],
        charts=[
            *_accuracy_charts(figures, figures, front),
            *(
                [Chart("Differences", difference_chart(pairs))]
                if comparison.questions >= SMALLEST_FOR_RATES
                else []
            ),
        ],
        figures=_without_folders(comparison.as_dict()),
    )


def head_of_what_if(what_if: WhatIf, runs: Sequence[RunOutput]) -> Head:
    """Make the head of the page of the policies over several runs.

    Args:
        what_if: The figures of the policies.
        runs: Those runs, with the rows that the policies choose from.
    """
    names = list(what_if.runs)
    return Head(
        title=f"Policies over {len(names)} runs on {what_if.questions:,} questions: "
        + what_if_text.headline(what_if),
        run_names=names,
        cards=list(map(make_card, runs)),
        notices=what_if_text.what_if_notices(what_if),
        verdicts=what_if_text.verdicts(what_if),
        lines=what_if_text.what_if_lines(what_if, _FAMILIES_SHOWN),
        tables=what_if_text.what_if_tables(what_if, _FAMILIES_SHOWN),
        charts=(
            [Chart("Accuracy against tokens", policy_chart(what_if), is_wide=True)]
            if what_if.questions >= SMALLEST_FOR_RATES
            else []
        ),
        figures=what_if.as_dict(),
    )


def head_of_study(study: StudyFigures) -> Head:
    """Make the head of the page of a study.

    Args:
        study: Figures of the study.
    """
    charts = []
    for block in study.blocks:
        groups = {method.method: method.figures for method in block.methods}
        front = [method.method for method in block.methods if method.pareto]
        where = f"{block.dataset}, {block.model}: "
        charts += [
            replace(chart, title=f"{where}{chart.title[0].lower()}{chart.title[1:]}")
            for chart in _accuracy_charts(groups, groups, front)
        ]
    return Head(
        title=f"{study.name}: {study_text.headline(study)}",
        run_names=[method.run for block in study.blocks for method in block.methods],
        cards=[],
        notices=study_text.study_notices(study),
        verdicts=study_text.verdicts(study),
        lines=study_text.study_lines(study),
        tables=[*study_text.study_overview(study), *study_text.study_tables(study)],
        charts=charts,
        figures=study.as_dict(),
    )


def _without_folders(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures without local folder paths: a page is shared with others."""
    for run in figures["runs"]:
        run["path"] = Path(run["path"]).name
    return figures


def _exaid_tables(figures: Mapping[str, ExaidFigures], *, has_total: bool = False) -> list[Table]:
    """Return the table of EXAID's figures by group of questions; no table if it was off."""
    if not figures:
        return []
    rows = [
        [
            name,
            f"{of.questions - of.without_summary} of {of.questions}",
            percent(of.coverage),
            f"{of.summaries:,}",
            f"{of.alerts - of.missed_alerts} of {of.alerts}",
            f"{of.unsupported_terms:,}",
            f"{of.cut_fields:,}",
            f"{of.clipped:,}",
        ]
        for name, of in figures.items()
    ]
    headings = ["", "questions with a summary", "text in a summary", "summaries", "alerts told",
                "unsupported terms", "cut fields", "clipped"]  # fmt: skip
    return [Table(headings, rows, has_total=has_total and len(rows) > 1, title="EXAID's summaries")]


def _accuracy_charts(
    groups: Mapping[str, Group], in_cost: Mapping[str, Group], front: Sequence[str] = ()
) -> list[Chart]:
    """Return charts of accuracy and of accuracy against tokens for sufficiently large groups."""
    shown = {name: g for name, g in groups.items() if g.questions >= SMALLEST_FOR_RATES}
    if not shown:
        return []
    against = "Tokens against accuracy" + (", with the Pareto front" if front else "")
    cost = {name: g for name, g in in_cost.items() if name in shown}
    return [
        Chart("Accuracy", accuracy_chart(shown)),
        Chart(against, cost_chart(cost or shown, front)),
    ]
