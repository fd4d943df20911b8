"""A comparison of runs as tables and lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.compare import Comparison
from mdagents.scoring.formatting import Table, counts, interval, number, p_value, percent, points
from mdagents.scoring.pairs import Flip, Pair
from mdagents.scoring.report import GROUP_COLUMNS, group_cells
from mdagents.scoring.routing import RouterReport

_IDS_SHOWN = 10
_PAIRS_LISTED = 3


def render_comparison(comparison: Comparison) -> str:
    """Return runs, pairs, flips and the router's report, if any, as text for a terminal."""
    return "\n".join(
        [
            *run_lines(comparison),
            *(table.as_text() for table in comparison_tables(comparison)),
            *_flips(comparison),
            *(table.as_text() for table in router_tables(comparison.router)),
            *(f"NOTE: {notice}" for notice in comparison_notices(comparison)),
        ]
    )


def run_lines(comparison: Comparison) -> list[str]:
    """Return the runs with their numbers, and how many of their questions are left out."""
    lines = [f"{run.number}  {run.name} ({counts(run.status_counts)})" for run in comparison.runs]
    left_out = [f"{run.left_out} of run {run.number}" for run in comparison.runs if run.left_out]
    if left_out:
        lines.append(
            f"NOTE: only the {comparison.questions} questions that all runs hold are compared; "
            f"left out: {', '.join(left_out)}"
        )
    return lines


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return figures of the runs, and of their pairs."""
    runs = [
        [
            str(run.number),
            *group_cells(run.figures),
            "-" if run.pareto is None else "yes" if run.pareto else "",
        ]
        for run in comparison.runs
    ]
    several = len(comparison.pairs) > 1
    pair_headings = [
        "pair", "difference", "95 % interval", "wrong → right", "right → wrong", "McNemar p",
        *(["Holm p"] if several else []), "detectable", "tokens per extra right",
        "USD per extra right",
    ]  # fmt: skip
    pairs = [
        [
            pair_name(pair),
            points(pair.difference, "+.1f"),
            interval(pair.difference_low, pair.difference_high, "+.1f"),
            str(len(pair.wrong_to_right)),
            str(len(pair.right_to_wrong)),
            p_value(pair.mcnemar_p),
            *([p_value(pair.mcnemar_p_holm)] if several else []),
            points(pair.minimum_detectable_difference),
            _price(pair.tokens_per_extra_correct, ",.0f"),
            _price(pair.cost_per_extra_correct, ".5f"),
        ]
        for pair in comparison.pairs
    ]
    return [
        Table(["run", *GROUP_COLUMNS, "Pareto"], runs, names_left=False),
        Table(pair_headings, pairs, names_left=False),
    ]


def router_tables(report: RouterReport | None) -> list[Table]:
    """Return figures of the routing policies, and of the levels on the questions sent to each."""
    if report is None:
        return []
    policies = [
        [
            policy.name,
            percent(policy.figures.accuracy),
            interval(policy.figures.accuracy_low, policy.figures.accuracy_high),
            points(policy.regret),
            interval(policy.regret_low, policy.regret_high),
            number(policy.figures.tokens_per_question, ",.0f"),
            number(policy.figures.cost_per_question, ".5f"),
        ]
        for policy in report.policies
    ]
    names = ["router", *report.forced]
    levels = [
        [level, str(reached["router"].n), *(percent(reached[name].accuracy) for name in names)]
        for level, reached in report.by_routed_level.items()
    ]
    beside = ", ".join(f"{level} (run {number})" for level, number in report.forced.items())
    return [
        Table(
            ["", "accuracy", "95 % interval", "regret", "95 % of regret", "tokens/q", "USD/q"],
            policies,
            title=f"router: run {report.router} beside {beside}",
        ),
        Table(["routed to", "n", *names], levels),
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


def _price(ratio: float | None, form: str) -> str:
    return "cheaper too" if ratio is not None and ratio < 0 else number(ratio, form)


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
