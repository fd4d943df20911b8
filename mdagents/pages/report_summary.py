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
from mdagents.pages.run_card import date_of, settings_table, shared_settings
from mdagents.pages.tiles import Tile, tiles_of_run
from mdagents.scoring import comparison_tables, comparison_text, what_if_text
from mdagents.scoring.comparison import Block, Comparison
from mdagents.scoring.exaid_figures import ExaidFigures
from mdagents.scoring.formatting import Table, percent
from mdagents.scoring.group import Group
from mdagents.scoring.report import ALL, NOT_ROUTED, Report
from mdagents.scoring.report_text import report_lines, report_tables
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.run_verdict import run_verdict
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
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
    """What was run: model, data set, method, number of questions."""
    result: str
    """Result in one sentence."""
    limits: Sequence[str]
    """Sentences on the uncertainty and the scope of the result."""
    run_names: Sequence[str]
    """Display names of the runs."""
    notices: Sequence[str]
    lines: Sequence[str]
    """Figures that are clearer in a line than in a table."""
    tables: Sequence[Table]
    figures: Sequence[Chart]
    """Figures that carry the result."""
    values: Mapping[str, Any]
    """Contents of the JSON file that the program writes beside the page."""
    words: Sequence[str]
    """Words of the glossary that the page uses."""
    details: Sequence[Chart] = ()
    tiles: Sequence[Tile] = ()
    meta: Sequence[str] = ()
    """Date and other facts in a small line."""
    same: Sequence[str] = ()
    """Settings that all of several runs share."""


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
    verdict = run_verdict(report, run.manifest, run.rows)
    return Head(
        title=verdict.title,
        result=verdict.sentence,
        limits=verdict.limits,
        run_names=[run.name],
        notices=report.notices,
        lines=report_lines(report),
        tables=[
            *report_tables(report),
            *_exaid_tables(report.summaries, has_total=True),
            settings_table(run),
        ],
        figures=charts[:2],
        details=charts[2:],
        values=report.as_dict(),
        words=["First majority", "Rescued", "Overturned", "Paid", "Teams' tokens", "95% interval"],
        tiles=tiles_of_run(report, run),
        meta=list(filter(None, [date_of(run.manifest)])),
    )


def head_of_comparison(comparison: Comparison, runs: Sequence[RunOutput] = ()) -> Head:
    """Make the head of the page of a comparison, or of a study.

    Args:
        comparison: The figures of the runs.
        runs: Runs to describe by a card each, with the rows that are compared.
    """
    blocks = comparison.blocks
    labels = [run.label for block in blocks for run in block.runs]
    runs_in_words = " and ".join(labels) if len(labels) == 2 else f"{len(labels)} runs"
    what = comparison.name or f"{runs_in_words} on {blocks[0].questions:,} questions"
    summaries = {
        f"{comparison.place(block)}{run.label}": run.summaries
        for block in blocks
        for run in block.runs
        if run.summaries is not None
    }
    same, differing = shared_settings(runs, labels) if runs else ([], None)
    return Head(
        title=what,
        result=_sentence(comparison_text.headline(comparison)),
        limits=list(map(_sentence, comparison_text.verdicts(comparison))),
        run_names=labels,
        same=same,
        words=["95% interval", "Frontier", "Holm", "Minimum detectable difference"],
        notices=comparison_text.comparison_notices(comparison),
        lines=comparison_text.comparison_lines(comparison),
        tables=[
            *comparison_tables.overview_tables(comparison),
            *comparison_tables.block_tables(comparison),
            *_exaid_tables(summaries),
            *([differing] if differing else []),
        ],
        figures=[
            replace(chart, title=f"{comparison.place(block)}{chart.title}")
            for block in blocks
            for chart in _block_charts(block)
        ],
        values=_without_folders(comparison).as_dict(),
    )


def head_of_what_if(what_if: WhatIf, runs: Sequence[RunOutput]) -> Head:
    """Make the head of the page of the policies over several runs.

    Args:
        what_if: The figures of the policies.
        runs: Those runs, with the rows that the policies choose from.
    """
    names = list(what_if.runs)
    same, differing = shared_settings(runs, names)
    return Head(
        title=f"Policies over {len(names)} runs on {what_if.questions:,} questions",
        result=_sentence(what_if_text.headline(what_if)),
        limits=list(map(_sentence, what_if_text.verdicts(what_if))),
        run_names=names,
        same=same,
        words=["95% interval", "Frontier"],
        notices=what_if_text.what_if_notices(what_if),
        lines=what_if_text.what_if_lines(what_if, _FAMILIES_SHOWN),
        tables=[
            *what_if_text.what_if_tables(what_if, _FAMILIES_SHOWN),
            *([differing] if differing else []),
        ],
        figures=(
            [Chart("Accuracy against tokens", policy_chart(what_if), is_wide=True)]
            if what_if.questions >= SMALLEST_FOR_RATES
            else []
        ),
        values=what_if.as_dict(),
    )


def _sentence(words: str) -> str:
    """Return words as a sentence, with a capital letter and a full stop."""
    return f"{words[:1].upper()}{words[1:]}."


def _without_folders(comparison: Comparison) -> Comparison:
    """Return the comparison without local folder paths: a page is shared with others."""
    blocks = [
        replace(block, runs=[replace(run, path=Path(run.path).name) for run in block.runs])
        for block in comparison.blocks
    ]
    return replace(comparison, blocks=blocks)


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


def _block_charts(block: Block) -> list[Chart]:
    groups = {run.label: run.figures for run in block.runs}
    front = [run.label for run in block.runs if run.pareto]
    charts = _accuracy_charts(groups, groups, front)
    if charts and block.pairs:
        pairs = {block.pair_name(pair): pair for pair in block.pairs}
        charts.append(Chart("Differences", difference_chart(pairs)))
    return charts


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
