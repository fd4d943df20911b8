"""Renders the figures of a group of questions as cells of tables."""

from __future__ import annotations

from mdagents.scoring.formatting import UNKNOWN, interval, number, percent, usd
from mdagents.scoring.group import Group
from mdagents.scoring.statistics import SMALLEST_FOR_RATES

ACCURACY = "accuracy (95% interval)"
"""Column heading for `accuracy_cell`."""


def accuracy_cell(group: Group) -> str:
    """Return accuracy with its interval; for few questions, the number of right answers."""
    if group.accuracy is None:
        return UNKNOWN
    if group.questions < SMALLEST_FOR_RATES:
        return f"{group.correct} of {group.n} right"
    return f"{percent(group.accuracy)} ({interval(group.accuracy_low, group.accuracy_high)})"


COST_COLUMNS = ("tokens/question", "calls/question", "USD/1,000 questions")
"""Column headings for `cost_cells`."""


def cost_cells(group: Group) -> list[str]:
    """Return tokens and calls per question and USD per 1,000 questions as table cells."""
    cost = group.cost_per_question
    return [
        number(group.tokens_per_question, ",.0f"),
        number(group.calls_per_question, ".1f"),
        usd(None if cost is None else 1000 * cost),
    ]
