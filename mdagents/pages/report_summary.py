"""The head of a report: figures and charts of a run, comparison, what-if or study."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mdagents.pages.canvas import PERCENT, Figure, Scale, fitted
from mdagents.pages.charts import (
    QUARTER,
    Difference,
    accuracy_figure,
    agreement_figure,
    calibration_figure,
    changes_figure,
    cost_figure,
    forest_figure,
    position_figure,
)
from mdagents.pages.curve import policy_figure
from mdagents.pages.run_card import date_of, settings_table, shared_settings
from mdagents.pages.tiles import Tile, tiles_of_run
from mdagents.scoring import comparison_tables, comparison_text, what_if_text
from mdagents.scoring.agreement import by_first_agreement
from mdagents.scoring.audit.teaching import Lesson
from mdagents.scoring.breakdown_text import HOW_TESTED, breakdown_lines, breakdown_table
from mdagents.scoring.comparison import Block, Comparison
from mdagents.scoring.exaid_figures import ExaidFigures
from mdagents.scoring.formatting import Table, percent
from mdagents.scoring.group import Group, make_group
from mdagents.scoring.report import ALL, Report
from mdagents.scoring.report_text import report_lines, report_tables
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.run_names import described
from mdagents.scoring.run_verdict import run_verdict
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
from mdagents.scoring.what_if import WhatIf
from mdagents_llm.text import counted

_FAMILIES_SHOWN = 20  # in the table of policies
_LONGEST_VERDICT = 400  # characters of verdicts at the top; longer ones go to the end


@dataclass(frozen=True, slots=True)
class Wrong:
    """Groups of questions by one property, in the section on what the run got wrong."""

    name: str
    """Name of the property."""
    groups: Mapping[str, Group]

    @property
    def large(self) -> Mapping[str, Group]:
        """Groups that have enough questions for a percentage."""
        return _large_enough(self.groups)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a measure of an audit occurred."""

    number: int
    """Place of the question in the list, from 1."""
    question_id: str
    said: Sequence[tuple[str, str]]
    """(speaker, sentence)"""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The occurrences of a measure of an audit."""

    title: str
    counts: str
    """What the measure counts."""
    total: int
    shown: Sequence[Occurrence]
    """The first of them."""


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
    figures: Sequence[Figure]
    """Figures that carry the result."""
    values: Mapping[str, Any]
    """Contents of the JSON file that the program writes beside the page, without folders."""
    words: Sequence[str]
    """Words of the glossary that the page uses."""
    details: Sequence[Figure] = ()
    table_first: Sequence[Table] = ()
    """Tables that are shown open, above the figures."""
    tiles: Sequence[Tile] = ()
    meta: Sequence[str] = ()
    """Date and other facts in a small line."""
    wrong: Sequence[Wrong] = ()
    accuracy: Scale | None = None
    """Axis of the accuracies in `wrong`, in percent of its width."""
    same: Sequence[str] = ()
    """Settings that all of several runs share."""
    occurrences: Sequence[Occurrences] = ()
    lessons: Sequence[tuple[int, Lesson]] = ()
    """Questions that teach most, each with its place in the list of questions, from 1."""


def head_of_run(report: Report, run: RunOutput) -> Head:
    """Make the head of the page of one run.

    Args:
        report: The figures of the run.
        run: The run.
    """
    levels, panel = report.by_difficulty, report.agreement[ALL]
    figures, details = [], []
    wrong: list[Wrong] = []
    shown = _large_enough({**levels, ALL: report.overall} if len(levels) > 1 else levels)
    shown = shown or _large_enough({ALL: report.overall})
    if shown:
        figures.append(accuracy_figure("Accuracy by level", shown, ALL))
    if report.overall.questions >= SMALLEST_FOR_COEFFICIENTS:
        agreed = {name: make_group(rows) for name, rows in by_first_agreement(run.rows).items()}
        if panel.n >= SMALLEST_FOR_COEFFICIENTS:
            figures.append(changes_figure(panel))
        if any(group.tokens_per_question for group in shown.values()):
            of_levels = {name: group for name, group in shown.items() if name != ALL} or shown
            details.append(
                cost_figure(
                    "Tokens and accuracy",
                    of_levels,
                    {name: group.tokens_per_question or 0 for name, group in of_levels.items()},
                    "tokens per question",
                    widths=QUARTER,
                )
            )
        if report.calibration[ALL].n >= SMALLEST_FOR_COEFFICIENTS:
            details.append(calibration_figure(report.calibration[ALL]))
        details.append(position_figure(report.accuracy_by_gold_letter, report.predicted_letters))
        if agreed:
            details.append(agreement_figure(agreed))
        properties = {"Level": levels, "First opinions": agreed,
                      "Right option": report.accuracy_by_gold_letter}  # fmt: skip
        wrong = [Wrong(name, of) for name, of in properties.items() if len(of) > 1]
    verdict = run_verdict(report, run.manifest, run.rows)
    return Head(
        title=verdict.title,
        result=verdict.sentence,
        limits=verdict.limits,
        run_names=[run.name],
        notices=[sentence(notice) for notice in report.notices],
        lines=[
            *report_lines(report),
            *(f"{of.by}: {line}" for of in report.breakdowns for line in breakdown_lines(of)),
            *([HOW_TESTED] if report.breakdowns else []),
        ],
        tables=[
            *report_tables(report),
            *map(breakdown_table, report.breakdowns),
            *_exaid_tables(report.summaries, has_total=True),
            settings_table(run),
        ],
        figures=figures,
        details=details,
        wrong=wrong,
        accuracy=fitted(
            [
                100 * (end or 0)
                for of in wrong
                for group in of.large.values()
                for end in (group.accuracy_low, group.accuracy_high)
            ]
            or PERCENT,
            0,
            100,
            within=PERCENT,
        )
        if wrong
        else None,
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
    shared = [
        name
        for name in (described(runs[0].manifest) if runs else ())
        if all(name in described(run.manifest) for run in runs)
    ]
    title = [runs_in_words, *shared, counted(blocks[0].questions, "question")]
    summaries = {
        f"{comparison.place(block)}{run.label}": run.summaries
        for block in blocks
        for run in block.runs
        if run.summaries is not None
    }
    verdicts = comparison_text.verdicts(comparison)
    is_long = sum(map(len, verdicts)) > _LONGEST_VERDICT
    tables = [
        *comparison_tables.overview_tables(comparison),
        *comparison_tables.block_tables(comparison),
    ]
    same, differing = shared_settings(runs, labels) if runs else ([], None)
    return Head(
        title=comparison.name or " · ".join(title),
        result=sentence(comparison_text.headline(comparison), labels),
        limits=[] if is_long else [sentence(verdict, labels) for verdict in verdicts],
        run_names=labels,
        same=same,
        table_first=tables[:1],
        words=["95% interval", "Frontier", "Holm", "Minimum detectable difference"],
        notices=[
            sentence(notice, labels) for notice in comparison_text.comparison_notices(comparison)
        ],
        lines=[*(verdicts if is_long else []), *comparison_text.comparison_lines(comparison)],
        tables=[
            *tables[1:],
            *_exaid_tables(summaries),
            *([differing] if differing else []),
        ],
        figures=[figure for block in blocks for figure in _block_figures(comparison, block)],
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
        result=sentence(what_if_text.headline(what_if), names),
        limits=[sentence(verdict, names) for verdict in what_if_text.verdicts(what_if)],
        run_names=names,
        same=same,
        words=["95% interval", "Frontier"],
        notices=[sentence(notice, names) for notice in what_if_text.what_if_notices(what_if)],
        lines=what_if_text.what_if_lines(what_if, _FAMILIES_SHOWN),
        tables=[
            *what_if_text.what_if_tables(what_if, _FAMILIES_SHOWN),
            *([differing] if differing else []),
        ],
        figures=([policy_figure(what_if)] if what_if.questions >= SMALLEST_FOR_RATES else []),
        values=what_if.as_dict(),
    )


def sentence(words: str, names: Sequence[str] = ()) -> str:
    """Return words as a sentence, with a capital letter unless a name or a file begins it."""
    begins_with_word = re.match(r"[a-z]+\b(?![.:_/-])", words) is not None
    if begins_with_word and not words.startswith(tuple(names)):
        words = words[0].upper() + words[1:]
    return f"{words.removesuffix('.')}."


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
    headings = ["", "questions with a summary", "text in a summary", "summaries", "alerts reported",
                "unsupported terms", "cut fields", "clipped"]  # fmt: skip
    return [Table(headings, rows, has_total=has_total and len(rows) > 1, title="EXAID's summaries")]


def _block_figures(comparison: Comparison, block: Block) -> list[Figure]:
    """Return the forest plots by baseline, and accuracy against cost and tokens."""
    place = comparison.place(block)
    groups = _large_enough({run.label: run.figures for run in block.runs})
    if not groups:
        return []
    figures = [
        forest_figure(run.label, of_run, place)
        for run in block.runs
        if (of_run := _differences(block, run.number))
    ]
    if comparison.baseline:
        figures = [figure for figure in figures if figure.choice == comparison.baseline]
    for title, amount, unit, scale in (
        ("Accuracy against cost", "cost_per_question", "USD per 1,000 questions", 1000),
        ("Accuracy against tokens", "tokens_per_question", "tokens per question", 1),
    ):
        of_all = {
            name: scale * value
            for name, group in groups.items()
            if (value := getattr(group, amount)) is not None
        }
        if len(of_all) > 1 and all(value > 0 for value in of_all.values()):
            front = _front(of_all, groups)
            figures.append(cost_figure(f"{place}{title}", groups, of_all, unit, front))
    return figures


def _front(amounts: Mapping[str, float], groups: Mapping[str, Group]) -> list[str]:
    """Return the names of the groups that no other matches for at most the same amount."""
    front, best = [], -1
    for name in sorted(amounts, key=lambda n: (amounts[n], -groups[n].correct)):
        if groups[name].correct > best:
            front.append(name)
            best = groups[name].correct
    return front


def _differences(block: Block, baseline: int) -> list[Difference]:
    """Return the pairs of a block with a run, seen from it, the best other run first."""
    found = []
    for pair in block.pairs:
        if baseline in (pair.first, pair.second):
            is_second = pair.first == baseline
            other = pair.second if is_second else pair.first
            sign = 1 if is_second else -1
            found.append(Difference(block.label(other), pair, sign, block.shows(pair)))
    return sorted(found, key=lambda of: -of.values[1])


def _large_enough(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Return the groups with enough questions for a percentage."""
    return {name: g for name, g in groups.items() if g.questions >= SMALLEST_FOR_RATES}
