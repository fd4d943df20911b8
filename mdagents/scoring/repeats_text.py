"""Renders figures over several epochs as tables and lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdagents.scoring.formatting import Table, interval, p_equation, percent
from mdagents.scoring.repeats import Repeats
from mdagents.scoring.statistics import (
    SIGNIFICANT,
    SMALLEST_FOR_COEFFICIENTS,
    SMALLEST_FOR_RATES,
)
from mdagents_llm.text import counted

if TYPE_CHECKING:
    from mdagents.scoring.positions import PositionBias


def repeats_tables(figures: Repeats) -> list[Table]:
    """Return tables of reliability, accuracy by epoch and, if known, position bias."""
    if figures.questions < SMALLEST_FOR_RATES:
        return []
    reliability = [
        [f"{k} answers" if k > 1 else "1 answer", percent(figures.pass_at[k]), percent(all_right)]
        for k, all_right in figures.pass_hat.items()
    ]
    epochs = [
        [
            str(epoch),
            f"{of.correct} of {of.n}",
            f"{percent(of.accuracy)} ({interval(of.accuracy_low, of.accuracy_high)})",
        ]
        for epoch, of in figures.by_epoch.items()
    ]
    bias = _shown_bias(figures)
    return [
        Table(
            ["", "at least one right", "all right"],
            reliability,
            title=f"{counted(figures.questions, 'question')} in {counted(figures.epochs, 'epoch')}",
        ),
        Table(["epoch", "right", "accuracy (95% interval)"], epochs, title="Accuracy by epoch"),
        *([_places(bias)] if bias else []),
    ]


def repeats_lines(figures: Repeats, routing_stability: float | None) -> list[str]:
    """Return lines on the majority vote, position bias and routing stability.

    Args:
        figures: Figures over the epochs.
        routing_stability: Share of questions that were routed to the same level in all epochs; None
            when not routed.
    """
    if figures.questions < SMALLEST_FOR_RATES:
        what = f"{counted(figures.questions, 'question')} in {counted(figures.epochs, 'epoch')}"
        return [f"{what}: too few for their reliability"]
    lines = [f"majority vote of the epochs: {percent(figures.majority)}"]
    if bias := _shown_bias(figures):
        lines.append(
            f"by the place of the option: accuracy differs {_beyond(bias.accuracy_p)}, "
            f"answers differ {_beyond(bias.answers_p)}"
        )
    if routing_stability is not None:
        lines.append(f"routed the same in all epochs: {percent(routing_stability)}")
    return lines


def _shown_bias(figures: Repeats) -> PositionBias | None:
    return figures.position_bias if figures.questions >= SMALLEST_FOR_COEFFICIENTS else None


def _places(bias: PositionBias) -> Table:
    rows = [
        [letter, str(of.n), percent(of.accuracy), percent(of.answers),
         percent(of.answers_without_bias)]
        for letter, of in bias.places.items()
    ]  # fmt: skip
    rows.append(["no bias", "", percent(bias.accuracy_without_bias), "", ""])
    return Table(
        ["", "right option here", "of these right", "answers here", "without bias"],
        rows,
        has_total=True,
        title="by the place of the option, averaged over the epochs' orders",
    )


def _beyond(p: float) -> str:
    by = "more than by chance" if p < SIGNIFICANT else "no more than by chance"
    return f"{by} ({p_equation(p)})"
