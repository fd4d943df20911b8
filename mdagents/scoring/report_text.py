"""Renders the report of a run as tables and lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdagents.scoring.breakdown_text import HOW_TESTED, breakdown_lines, breakdown_table
from mdagents.scoring.formatting import (
    UNKNOWN,
    Part,
    Table,
    coefficient,
    counts,
    number,
    percent,
    points,
    share,
)
from mdagents.scoring.forms.mdagents import OURS
from mdagents.scoring.group import Group
from mdagents.scoring.group_text import ACCURACY, COST_COLUMNS, accuracy_cell, cost_cells
from mdagents.scoring.ratings import ratings_tables
from mdagents.scoring.repeats_text import repeats_lines, repeats_tables
from mdagents.scoring.report import ALL, Report
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
from mdagents.settings import RoutedBy, Status
from mdagents_llm.text import counted


def report_parts(report: Report) -> list[Part]:
    """Return the report for a terminal: tables, lines and caveats."""
    parts: list[Part] = [*report_tables(report), *report_lines(report)]
    for breakdown in report.breakdowns:
        parts += [breakdown_table(breakdown), *breakdown_lines(breakdown)]
    parts += [HOW_TESTED] if report.breakdowns else []
    return [*parts, *(f"NOTE: {notice}" for notice in report.notices)]


def report_tables(report: Report) -> list[Table]:
    """Return tables by level: accuracy, cost and, where known, expert agreement and confidence.

    Below `SMALLEST_FOR_RATES` questions, all answered, a single table shows accuracy and cost.
    """
    groups = {**report.by_difficulty, ALL: report.overall}
    if list(groups.values()) == [report.overall] * 2:  # a single level equals the total
        del groups[ALL]
    is_handful = report.overall.questions < SMALLEST_FOR_RATES
    if is_handful and report.status_counts.keys() == {Status.ANSWERED}:
        cells = [[name, accuracy_cell(of), *cost_cells(of)] for name, of in groups.items()]
        return [
            Table(
                ["", "accuracy", *COST_COLUMNS], cells, len(groups) > 1, title="Accuracy and cost"
            ),
            *ratings_tables(report.ratings),
        ]
    return [
        *_group_tables(groups, has_total=len(groups) > 1),
        *_tables_of_thinking(groups),
        *_tables_of_experts(report, list(groups)),
        *(repeats_tables(report.repeats) if report.repeats is not None else []),
        *ratings_tables(report.ratings),
    ]


def _tables_of_thinking(groups: Mapping[str, Group]) -> list[Table]:
    """Return a table of hidden reasoning tokens and right answers; empty without such tokens."""
    cells = [
        [
            name,
            number(group.reasoning_tokens_per_question, ",.0f"),
            number(group.right_per_1000_reasoning_tokens, ",.2f"),
        ]
        for name, group in groups.items()
        if group.reasoning_tokens_per_question
    ]
    headings = ["", "reasoning tokens/question", "right answers per 1,000 of them"]
    return [Table(headings, cells, len(cells) > 1, title="Hidden reasoning")] if cells else []


def _group_tables(groups: Mapping[str, Group], *, has_total: bool) -> list[Table]:
    """Return tables of the accuracy and the cost per question of groups of questions.

    Args:
        groups: Groups by name.
        has_total: Whether the last group is the total of the others.
    """
    accuracy = [
        [
            name,
            f"{group.answered} of {group.n}"
            + (f" (+{group.skipped} skipped)" if group.skipped else ""),
            accuracy_cell(group),
            percent(group.chance),
        ]
        for name, group in groups.items()
    ]
    cost = [[name, *cost_cells(group)] for name, group in groups.items()]
    return [
        Table(["", "answered", ACCURACY, "chance"], accuracy, has_total, title="Accuracy"),
        Table(["", *COST_COLUMNS], cost, has_total, title="Tokens, calls and cost"),
    ]


def _tables_of_experts(report: Report, names: Sequence[str]) -> list[Table]:
    """Return tables of agreement, calibration and majority decisions, given enough questions."""
    coefficients, decisions = [], []
    for name in names:
        panel, stated = report.agreement[name], report.calibration[name]
        # Several epochs of a question do not count as additional questions.
        questions = (report.by_difficulty | {ALL: report.overall})[name].questions
        judged, rated = min(panel.n, questions), min(stated.n, questions)
        cells = [
            _first_and_last(panel.first, panel.last, ".1%", judged),
            _first_and_last(panel.first_kappa, panel.last_kappa, "z.2f", judged),
            coefficient(stated.expected_error, rated),
            coefficient(stated.brier, rated),
        ]
        if set(cells) != {UNKNOWN}:
            coefficients.append([name, *cells])
        if panel.n and report.overall.questions >= SMALLEST_FOR_COEFFICIENTS:
            kept = panel.right_majority - panel.overturned
            decisions.append(
                [
                    name,
                    _of(kept, panel.right_majority),
                    _of(panel.rescued, panel.wrong_majority),
                    _of(panel.no_majority_right, panel.no_majority),
                ]
            )
    headings = ["", "experts agree", "kappa", "calibration error", "Brier"]
    columns = [
        place
        for place in range(len(headings))
        if any(row[place] != UNKNOWN for row in coefficients)
    ]
    tables = [
        Table(
            [headings[place] for place in columns],
            [[row[place] for place in columns] for row in coefficients],
            has_total=len(coefficients) > 1 and coefficients[-1][0] == ALL,
            title="Agreement and calibration",
        ),
        Table(
            ["", "was right", "was wrong", "was split"],
            decisions,
            has_total=len(decisions) > 1 and decisions[-1][0] == ALL,
            title="Correct decisions when the first majority of experts",
        ),
    ]
    return [table for table in tables if table.rows]


def report_lines(report: Report) -> list[str]:
    """Return the figures that are shown as lines of text instead of tables."""
    overall = report.overall
    how = " by disagreement" if RoutedBy.DISAGREEMENT in report.routed_by else ""
    lines = [f"status: {counts(report.status_counts)}", f"routing{how}: {counts(report.routing)}"]
    if 0 < overall.answered < overall.n:
        lines.append(f"right among the answered: {share(overall.correct, overall.answered)}")
    if overall.questions >= SMALLEST_FOR_COEFFICIENTS:
        lines.append(
            "accuracy by letter of the right option: "
            + ", ".join(
                f"{letter} {share(group.correct, group.n)}"
                + (f" of {group.n}" if group.n >= SMALLEST_FOR_RATES else "")
                for letter, group in report.accuracy_by_gold_letter.items()
            )
        )
    if report.repeats is not None:
        lines += repeats_lines(report.repeats, report.routing_stability)
    detectable = report.minimum_detectable_difference[ALL]
    if detectable is not None and overall.questions >= SMALLEST_FOR_COEFFICIENTS:
        lines.append(
            f"minimum detectable difference: {points(detectable)} points "
            f"({counted(overall.questions, 'question')}, 80% power)"
        )
    lines += _what_is_too_few(report)
    if set(report.read_as) - {OURS.name}:
        lines.append("read as: " + counts(report.read_as))
    if report.disagreements:
        lines.append(
            f"WARNING: {counted(report.disagreements, 'record')} with another letter than in the "
            "text of the response"
        )
    return lines


def _what_is_too_few(report: Report) -> list[str]:
    """Return a line on the figures omitted for lack of questions, if any."""
    groups = [report.overall, *report.by_difficulty.values()]
    rates = any(group.n and group.questions < SMALLEST_FOR_RATES for group in groups)
    if report.overall.questions < SMALLEST_FOR_COEFFICIENTS:
        where = ""
        coefficients = ["kappa", "calibration", "accuracy by letter", "detectable difference"]
        coefficients += ["what the panel added"] if report.agreement[ALL].n else []
        coefficients += ["places"] if report.repeats and report.repeats.position_bias else []
    else:
        where = " at some levels"
        coefficients = [
            name
            for name, figures in (("kappa", report.agreement), ("calibration", report.calibration))
            if any(0 < of_level.n < SMALLEST_FOR_COEFFICIENTS for of_level in figures.values())
        ]
    with_interval = f"percentages with their 95% interval ({SMALLEST_FOR_RATES} needed)"
    left_out = [with_interval] if rates else []
    if coefficients:
        left_out.append(f"{', '.join(coefficients)} ({SMALLEST_FOR_COEFFICIENTS} needed)")
    return [f"too few questions{where} to show: {', '.join(left_out)}"] if left_out else []


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else UNKNOWN


def _first_and_last(first: float | None, last: float | None, form: str, n: int) -> str:
    smallest = SMALLEST_FOR_RATES if form.endswith("%") else SMALLEST_FOR_COEFFICIENTS
    if n < smallest:
        return UNKNOWN
    texts = number(first, form), number(last, form)
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)
