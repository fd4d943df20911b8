"""Renders the router report of a block of compared runs as tables and caveats."""

from __future__ import annotations

from mdagents.scoring.comparison import Block
from mdagents.scoring.formatting import Table, interval, points, share
from mdagents.scoring.group_text import ACCURACY, COST_COLUMNS, accuracy_cell, cost_cells
from mdagents.scoring.routing import ROUTER, Policy
from mdagents.scoring.statistics import SMALLEST_FOR_RATES


def router_tables(block: Block) -> list[Table]:
    """Return tables of the routing policies, and of the levels on the questions sent to each.

    The result is empty without a router report.
    """
    report = block.router
    if report is None:
        return []
    forced = [f"{level} ({block.label(number)})" for level, number in report.forced.items()]
    columns = [ROUTER, *report.forced]
    levels = [
        [
            level,
            str(reached[ROUTER].n),
            *(share(reached[name].correct, reached[name].n) for name in columns),
        ]
        for level, reached in report.by_routed_level.items()
    ]
    return [
        Table(
            ["", ACCURACY, "regret (95% interval)"],
            [[of.name, accuracy_cell(of.figures), _regret(of)] for of in report.policies],
            title=f"router: {block.label(report.router)} beside {', '.join(forced)}",
        ),
        Table(
            ["", *COST_COLUMNS],
            [[policy.name, *cost_cells(policy.figures)] for policy in report.policies],
        ),
        Table(["routed to", "answers", *columns], levels, title="right, by where the router sent"),
    ]


def router_notices(block: Block) -> list[str]:
    """Return caveats to show with the router report; empty without one."""
    if block.router is None:
        return []
    notices = ["the oracle picks the best run per question in hindsight: an upper bound"]
    if block.router.same_models is False:
        notices.append(
            "the runs beside the router asked different models, which is part of the regret"
        )
    return notices


def _regret(policy: Policy) -> str:
    figures = policy.figures
    if figures.questions < SMALLEST_FOR_RATES:
        return f"{round(policy.regret * figures.n)} of {figures.n}"
    return f"{points(policy.regret)} points ({interval(policy.regret_low, policy.regret_high)})"
