"""Renders an error analysis as tables and lines of text, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from mdagents.scoring.breakdown import Breakdown, QuestionGroup
from mdagents.scoring.formatting import Table, p_value, share
from mdagents.scoring.group_text import ACCURACY, accuracy_cell
from mdagents.scoring.statistics import SIGNIFICANT, SMALLEST_FOR_RATES
from mdagents_llm.files.spreadsheet import text_cell
from mdagents_llm.text import counted, one_line

_GROUPS_SHOWN = 20
_WRONG_SHOWN = 8


def breakdown_table(breakdown: Breakdown) -> Table:
    """Return the largest groups with accuracy and p-value; significant ones are starred."""
    shown = breakdown.groups[:_GROUPS_SHOWN]
    has_epochs = any(group.figures.n > group.figures.questions for group in breakdown.groups)
    return Table(
        ["", "answers" if has_epochs else "questions", "right", ACCURACY, "p", "Holm p"],
        [
            [
                one_line(group.value),
                f"{group.figures.n:,}",
                f"{group.figures.correct:,}",
                accuracy_cell(group.figures),
                p_value(group.p),
                p_value(group.p_holm) + (" *" if is_different(group) else ""),
            ]
            for group in shown
        ],
        title=f"accuracy by {breakdown.by}",
    )


def is_different(group: QuestionGroup) -> bool:
    """Return whether a group's accuracy differs significantly from that of the rest."""
    return group.p_holm is not None and group.p_holm < SIGNIFICANT


HOW_TESTED = (
    f"p: Fisher's exact test of a group against all other questions, from {SMALLEST_FOR_RATES} "
    f"questions; Holm over the tested groups; *: below {SIGNIFICANT:.0%}"
)
"""Explanation of the columns with p-values."""


def breakdown_lines(breakdown: Breakdown) -> list[str]:
    """Return lines on the groups left out and on the wrong questions of each group."""
    groups = breakdown.groups
    lines = []
    if len(groups) > _GROUPS_SHOWN:
        left_out = counted(len(groups) - _GROUPS_SHOWN, "smaller group")
        lines.append(f"{left_out}: see the CSV")
    for group in groups[:_GROUPS_SHOWN]:
        if group.wrong:
            ids = ", ".join(map(one_line, group.wrong[:_WRONG_SHOWN]))
            more = len(group.wrong) - _WRONG_SHOWN
            ids += f", … {more} more" if more > 0 else ""
            wrong = share(len(group.wrong), group.figures.questions)
            of_most = "most answers " if group.figures.n > group.figures.questions else ""
            lines.append(f"{of_most}wrong of {one_line(group.value)} ({wrong}): {ids}")
    return lines


def write_breakdown_csv(file: TextIO, breakdowns: Sequence[Breakdown]) -> None:
    """Write a CSV line for each group, with rates as fractions and wrong ids separated by `; `."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([
        "group_by", "group", "questions", "answers", "answered", "correct", "accuracy",
        "accuracy_low", "accuracy_high", "fisher_p", "holm_p", "wrong_ids",
    ])  # fmt: skip
    for breakdown in breakdowns:
        for group in breakdown.groups:
            of = group.figures
            writer.writerow([
                text_cell(breakdown.by), text_cell(group.value), of.questions, of.n, of.answered,
                of.correct, of.accuracy, of.accuracy_low, of.accuracy_high, group.p, group.p_holm,
                text_cell("; ".join(group.wrong)),
            ])  # fmt: skip
