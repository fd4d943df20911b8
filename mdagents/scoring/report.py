"""The report of a run: accuracy and its uncertainty, unanswered questions and why, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from mdagents.scoring.agreement import Agreement, agreement
from mdagents.scoring.formatting import Table, counts, interval, number, percent, points
from mdagents.scoring.forms.mdagents import OURS
from mdagents.scoring.group import (
    Group,
    Proportion,
    make_group,
    right_by_question,
    scored,
)
from mdagents.scoring.repeats import Repeats, repeats, routing_stability
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import (
    Calibration,
    calibration,
    minimum_detectable_difference,
)
from mdagents.settings import Difficulty, Status

T = TypeVar("T")

ALL = "all"
"""Name of the row that holds all questions."""

NOT_ROUTED = "not routed"
"""Stands for a missing level."""

_SMALLEST_PERMUTATION = 5
_RARER = "rarer"


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run: what `summary.json` holds. Levels are followed by `all`."""

    input: str
    read_as: dict[str, int]
    """Program that wrote the records -> records; `mdagents` is this one."""
    notices: list[str]
    overall: Group
    by_difficulty: dict[str, Group]
    status_counts: dict[str, int]
    accuracy_by_gold_letter: dict[str, Group]
    """Presented letter of the right option -> figures: shows a position bias."""
    accuracy_by_permutation: dict[str, Proportion]
    """Source letters in presented order, `CADB` -> figures, the most frequent first; orders that
    fewer than five questions have are summed up as `rarer`. Empty when not known."""
    predicted_letters: dict[str, int]
    routing: dict[str, int]
    """Level -> questions, the skipped ones included."""
    routed_by: dict[str, int]
    """`router`, `fallback` or `forced` -> questions; empty when not known."""
    routing_stability: float | None
    """Share of questions that were routed to the same level in all epochs; None for one epoch."""
    repeats: Repeats | None
    """None when every question was answered once."""
    calibration: dict[str, Calibration]
    """Level -> calibration of the stated confidence."""
    agreement: dict[str, Agreement]
    """Level -> agreement between experts."""
    minimum_detectable_difference: dict[str, float | None]
    """Level -> smallest difference in accuracy that a comparison on these questions would detect in
    8 of 10 cases, with an independent system that is about as accurate."""
    disagreements: int
    """Records whose own letter differs from the one parsed here."""

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON types."""
        return asdict(self)


def make_report(output: RunOutput) -> Report:
    """Compute the figures of a run."""
    rows = output.rows
    counted = scored(rows)
    known = [level for level in Difficulty if any(row.difficulty == level for row in rows)]
    foreign = sorted({row.difficulty for row in rows} - set(Difficulty) - {""})
    by_level: dict[str, Sequence[ScoredRow]] = {
        str(level): [row for row in rows if row.difficulty == level] for level in (*known, *foreign)
    }
    groups = {level: make_group(of_level) for level, of_level in by_level.items()}
    overall = make_group(rows)
    by_level[ALL] = rows
    return Report(
        input=output.name,
        read_as=dict(output.read_as),
        notices=output.notices,
        overall=overall,
        by_difficulty=groups,
        status_counts=dict(Counter(row.status for row in rows).most_common()),
        accuracy_by_gold_letter=dict(
            sorted(_grouped(counted, lambda row: row.label, make_group).items())
        ),
        accuracy_by_permutation=_by_permutation(counted),
        predicted_letters=dict(
            sorted(Counter(row.response for row in counted if row.status == "answered").items())
        ),
        routing=dict(Counter(row.difficulty or NOT_ROUTED for row in rows).most_common()),
        routed_by=dict(Counter(row.routed_by for row in rows if row.routed_by).most_common()),
        routing_stability=routing_stability(rows),
        repeats=repeats(counted),
        calibration={level: _calibration(of_level) for level, of_level in by_level.items()},
        agreement={level: agreement(of_level) for level, of_level in by_level.items()},
        minimum_detectable_difference={
            level: _detectable(scored(of_level)) for level, of_level in by_level.items()
        },
        disagreements=sum(row.disagrees for row in rows),
    )


def _grouped(
    rows: Iterable[ScoredRow],
    key: Callable[[ScoredRow], str],
    figures: Callable[[Sequence[ScoredRow]], T],
) -> dict[str, T]:
    groups: dict[str, list[ScoredRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: figures(of_group) for name, of_group in groups.items()}


def _by_permutation(rows: Sequence[ScoredRow]) -> dict[str, Proportion]:
    sizes = Counter(row.order for row in rows if row.order)
    frequent = [order for order, n in sizes.most_common() if n >= _SMALLEST_PERMUTATION]
    figures = _grouped(
        (row for row in rows if row.order),
        lambda row: row.order if sizes[row.order] >= _SMALLEST_PERMUTATION else _RARER,
        Proportion.of,
    )
    return {order: figures[order] for order in (*frequent, _RARER) if order in figures}


def _calibration(rows: Sequence[ScoredRow]) -> Calibration:
    stated = [
        (row.confidence, row.correct)
        for row in rows
        if row.status == Status.ANSWERED and row.confidence is not None
    ]
    return calibration([confidence for confidence, _ in stated], [right for _, right in stated])


def _detectable(rows: Sequence[ScoredRow]) -> float | None:
    shares = [right / answers for right, answers in zip(*right_by_question(rows), strict=True)]
    if not shares:
        return None
    mean = sum(shares) / len(shares)
    variance = sum((share - mean) ** 2 for share in shares) / len(shares)
    # Two independent systems of this accuracy differ on this share of the questions.
    return minimum_detectable_difference(len(shares), discordance=2 * variance)


def render_report(report: Report) -> str:
    """Return the report as text for a terminal."""
    notices = [f"NOTE: {notice}" for notice in report.notices]
    return "\n".join(
        [*(table.as_text() for table in report_tables(report)), *report_lines(report), *notices]
    )


def report_tables(report: Report) -> list[Table]:
    """Return figures by level and, where known, the agreement of the experts."""
    groups = Table(
        ["", *GROUP_COLUMNS],
        [
            *([level, *group_cells(group)] for level, group in report.by_difficulty.items()),
            [ALL, *group_cells(report.overall)],
        ],
        has_total=True,
    )
    levels = [
        level
        for level in report.agreement
        if report.agreement[level].n or report.calibration[level].n
    ]
    if not levels:
        return [groups]
    if len(levels) == 2:  # a single level and `all` are the same
        del levels[1]
    panel = Table(
        ["", *_PANEL_COLUMNS],
        [[level, *_panel_cells(report.agreement[level], report.calibration[level])]
         for level in levels],
        has_total=levels[-1] == ALL,
    )  # fmt: skip
    return [groups, panel]


def report_lines(report: Report) -> list[str]:
    """Return figures that are clearer in a line than in a table."""
    lines = [
        "status: " + counts(report.status_counts),
        "routing: " + counts(report.routing),
    ]
    by_letter = [
        f"{letter} {percent(group.accuracy)} of {group.n}"
        for letter, group in report.accuracy_by_gold_letter.items()
    ]
    lines.append("accuracy by letter of the right option: " + (", ".join(by_letter) or "-"))
    lines += _lines_of_repeats(report)
    detectable = report.minimum_detectable_difference[ALL]
    if detectable is not None:
        lines.append(
            f"another system must differ by about {points(detectable)} points to be told apart on "
            "these questions"
        )
    if set(report.read_as) - {OURS.name}:
        lines.append("read as: " + counts(report.read_as))
    if report.disagreements:
        lines.append(
            f"WARNING: {report.disagreements} records hold another letter than their text does"
        )
    return lines


GROUP_COLUMNS = ("n", "answered", "accuracy", "95 % interval", "of answered", "chance",
                 "tokens/q", "calls/q", "USD/q")  # fmt: skip
"""Headings of `group_cells`."""


def group_cells(group: Group) -> list[str]:
    """Return a group as cells of a table."""
    return [
        str(group.n) + (f" (+{group.skipped} skipped)" if group.skipped else ""),
        str(group.answered),
        percent(group.accuracy),
        interval(group.accuracy_low, group.accuracy_high),
        percent(group.accuracy_answered),
        percent(group.chance),
        number(group.tokens_per_question, ",.0f"),
        number(group.calls_per_question, ".1f"),
        number(group.cost_per_question, ".5f"),
    ]


_PANEL_COLUMNS = ("experts agree", "kappa", "right majority overturned", "wrong majority rescued",
                  "calibration error", "Brier")  # fmt: skip


def _panel_cells(panel: Agreement, stated: Calibration) -> list[str]:
    return [
        _first_and_last(percent(panel.first), percent(panel.last)),
        _first_and_last(number(panel.first_kappa, ".2f"), number(panel.last_kappa, ".2f")),
        f"{panel.overturned} of {panel.right_majority}" if panel.n else "-",
        f"{panel.rescued} of {panel.wrong_majority}" if panel.n else "-",
        number(stated.expected_error, ".3f"),
        number(stated.brier, ".3f"),
    ]


def _first_and_last(first: str, last: str) -> str:
    return first if first == last else f"{first} → {last}"


def _lines_of_repeats(report: Report) -> list[str]:
    figures = report.repeats
    if figures is None:
        return []
    chances = ", ".join(f"{k} {percent(chance)}" for k, chance in figures.pass_hat.items())
    lines = [
        f"{figures.questions} questions in {figures.epochs} epochs: right k times in a row: "
        f"{chances}; majority vote {percent(figures.majority)}"
    ]
    if report.routing_stability is not None:
        lines.append(f"routed the same in all epochs: {percent(report.routing_stability)}")
    return lines
