"""A comparison of runs as tables and lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mdagents.scoring.compare import Comparison
from mdagents.scoring.formatting import (
    UNKNOWN,
    Table,
    counts,
    interval,
    number,
    p_value,
    points,
    share,
    usd,
    wrapped,
)
from mdagents.scoring.pairs import Flip, Pair
from mdagents.scoring.report import ACCURACY, COST_COLUMNS, accuracy_cell, cost_cells, group_tables
from mdagents.scoring.routing import Policy, RouterReport
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES

_IDS_SHOWN = 10
_PAIRS_LISTED = 3


def render_comparison(comparison: Comparison) -> str:
    """Return runs, pairs, flips and the router's report, if any, as text for a terminal."""
    return "\n".join(
        [
            *map(wrapped, run_lines(comparison)),
            *(table.as_text() for table in comparison_tables(comparison)),
            *map(wrapped, _flips(comparison)),
            *(table.as_text() for table in router_tables(comparison.router)),
            *(wrapped(f"NOTE: {notice}") for notice in comparison_notices(comparison)),
        ]
    )


def run_lines(comparison: Comparison) -> list[str]:
    """Return the runs with their numbers, and how many of their questions are left out."""
    lines = [f"{run.number}  {run.name} ({counts(run.status_counts)})" for run in comparison.runs]
    left_out = [f"{run.left_out} of run {run.number}" for run in comparison.runs if run.left_out]
    if left_out:
        lines += [
            f"NOTE: only the {comparison.questions} questions that all runs hold are compared",
            f"left out: {', '.join(left_out)}",
        ]
    if comparison.questions < SMALLEST_FOR_COEFFICIENTS:
        rates = f"percentages (from {SMALLEST_FOR_RATES}), "
        lines.append(
            f"too few questions for: {rates * (comparison.questions < SMALLEST_FOR_RATES)}"
            f"a detectable difference (from {SMALLEST_FOR_COEFFICIENTS})"
        )
    return lines


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return figures of the runs, and of their pairs."""
    groups = {str(run.number): run.figures for run in comparison.runs}
    accuracy, cost = group_tables("run", groups, names_left=False)
    front = {None: UNKNOWN, True: "yes", False: ""}
    of_runs = zip(cost.rows, comparison.runs, strict=True)
    cost = replace(
        cost,
        headings=[*cost.headings, "Pareto"],
        rows=[[*cells, front[run.pareto]] for cells, run in of_runs],
    )
    several = len(comparison.pairs) > 1
    differences = [
        [
            pair_name(pair),
            _difference(pair, comparison),
            p_value(pair.mcnemar_p),
            *([p_value(pair.mcnemar_p_holm)] if several else []),
            _detectable(pair, comparison.questions),
        ]
        for pair in comparison.pairs
    ]
    flips = [
        [
            pair_name(pair),
            str(len(pair.wrong_to_right)),
            str(len(pair.right_to_wrong)),
            _price(pair.tokens_per_extra_correct, ",.0f"),
            _price(pair.cost_per_extra_correct),
        ]
        for pair in comparison.pairs
    ]
    difference = ["pair", "difference (95 % interval)", "McNemar p"]
    holm = ["Holm p"] if several else []
    return [
        accuracy,
        cost,
        Table([*difference, *holm, "detectable"], differences, names_left=False),
        Table(
            ["pair", "now right", "now wrong", "tokens/extra right", "USD/extra right"],
            flips,
            names_left=False,
        ),
    ]


def router_tables(report: RouterReport | None) -> list[Table]:
    """Return figures of the routing policies, and of the levels on the questions sent to each."""
    if report is None:
        return []
    policies = [
        [policy.name, accuracy_cell(policy.figures), _regret(policy)] for policy in report.policies
    ]
    names = ["router", *report.forced]
    levels = [
        [
            level,
            str(reached["router"].n),
            *(share(reached[name].correct, reached[name].n) for name in names),
        ]
        for level, reached in report.by_routed_level.items()
    ]
    beside = ", ".join(f"{level} (run {number})" for level, number in report.forced.items())
    return [
        Table(
            ["", ACCURACY, "regret (95 % interval)"],
            policies,
            title=f"router: run {report.router} beside {beside}",
        ),
        Table(
            ["", *COST_COLUMNS],
            [[policy.name, *cost_cells(policy.figures)] for policy in report.policies],
        ),
        Table(["routed to", "questions", *names], levels, title="right, by where the router sent"),
    ]


def comparison_notices(comparison: Comparison) -> list[str]:
    """Return what a reader must know before reading the figures."""
    report = comparison.router
    of_router = []
    if report is not None:
        of_router.append("the oracle knows the outcome; part of its lead is luck")
        if report.same_models is False:
            of_router.append("these runs asked different models, which is part of the regret")
    return [*of_router, *comparison.notices]


def pair_name(pair: Pair) -> str:
    """Return a name such as `2 − 1`."""
    return f"{pair.second} − {pair.first}"


def _difference(pair: Pair, comparison: Comparison) -> str:
    """Return the difference in points and its interval; of a handful of questions, in questions."""
    if comparison.questions < SMALLEST_FOR_RATES:
        return f"{pair.extra_correct:+} of {comparison.answers}"
    ends = interval(pair.difference_low, pair.difference_high, "+.1f")
    return f"{points(pair.difference, '+.1f')} points ({ends})"


def _detectable(pair: Pair, questions: int) -> str:
    enough = questions >= SMALLEST_FOR_COEFFICIENTS
    smallest = pair.minimum_detectable_difference if enough else None
    return UNKNOWN if smallest is None else f"{points(smallest)} points"


def _regret(policy: Policy) -> str:
    figures = policy.figures
    if figures.questions < SMALLEST_FOR_RATES:
        return f"{round(policy.regret * figures.n)} of {figures.n}"
    return f"{points(policy.regret)} points ({interval(policy.regret_low, policy.regret_high)})"


def _price(ratio: float | None, form: str | None = None) -> str:
    if ratio is not None and ratio < 0:
        return "cheaper too"
    return usd(ratio) if form is None else number(ratio, form)


def _flips(comparison: Comparison) -> list[str]:
    if len(comparison.pairs) > _PAIRS_LISTED:
        return []
    return [
        f"{pair_name(pair)}, {direction}: {_ids(flips)}"
        for pair in comparison.pairs
        for direction, flips in (
            ("wrong → right", pair.wrong_to_right),
            ("right → wrong", pair.right_to_wrong),
        )
    ]


def _ids(flips: Sequence[Flip]) -> str:
    more = f", … {len(flips) - _IDS_SHOWN} more" if len(flips) > _IDS_SHOWN else ""
    return (", ".join(flip.question_id for flip in flips[:_IDS_SHOWN]) or "-") + more
