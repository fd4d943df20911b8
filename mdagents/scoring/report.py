"""The report of a run: accuracy with its uncertainty, reasons for missing answers, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from mdagents.scoring.agreement import Agreement, agreement
from mdagents.scoring.exaid_figures import ExaidFigures, exaid_figures
from mdagents.scoring.formatting import (
    UNKNOWN,
    Table,
    coefficient,
    counts,
    interval,
    number,
    percent,
    points,
    share,
    usd,
    wrapped,
)
from mdagents.scoring.forms.mdagents import OURS
from mdagents.scoring.group import (
    Group,
    Proportion,
    make_group,
    right_by_question,
    scored,
)
from mdagents.scoring.repeats import Repeats, repeats, routing_stability
from mdagents.scoring.repeats_text import repeats_lines, repeats_tables
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import (
    SMALLEST_FOR_COEFFICIENTS,
    SMALLEST_FOR_RATES,
    Calibration,
    calibration,
    minimum_detectable_difference,
)
from mdagents.settings import Difficulty, RoutedBy, Status

T = TypeVar("T")

ALL = "all"
"""Name of the row over all questions."""

NOT_ROUTED = "not routed"
"""Name used for a missing level."""

_SMALLEST_PERMUTATION = 5
_RARER = "rarer"


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run: the content of `summary.json`. Levels are followed by `all`."""

    input: str
    read_as: dict[str, int]
    """Program that wrote the records -> number of records; `mdagents` is this program."""
    notices: list[str]
    overall: Group
    by_difficulty: dict[str, Group]
    status_counts: dict[str, int]
    accuracy_by_gold_letter: dict[str, Group]
    """Presented letter of the right option -> figures; reveals a position bias."""
    accuracy_by_permutation: dict[str, Proportion]
    """Source letters in presented order, such as `CADB` -> figures, most frequent first; orders of
    fewer than five questions are combined as `rarer`. Empty when unknown."""
    predicted_letters: dict[str, int]
    routing: dict[str, int]
    """Level -> number of questions, including skipped ones."""
    routed_by: dict[str, int]
    """`router`, `fallback` or `forced` -> number of questions; empty when unknown."""
    routing_stability: float | None
    """Share of questions that were routed to the same level in all epochs; None for one epoch."""
    repeats: Repeats | None
    """Figures over the epochs; None when every question was answered once."""
    calibration: dict[str, Calibration]
    """Level -> calibration of the stated confidence."""
    agreement: dict[str, Agreement]
    """Level -> agreement between experts."""
    minimum_detectable_difference: dict[str, float | None]
    """Level -> minimum difference in accuracy that a comparison on these questions detects with 80%
    power, against an independent system of about the same accuracy."""
    summaries: dict[str, ExaidFigures]
    """Level -> EXAID's figures; levels that EXAID did not follow are missing."""
    disagreements: int
    """Number of records whose stored letter differs from the one parsed here."""

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
        summaries={
            level: figures
            for level, of_level in by_level.items()
            if (figures := exaid_figures(row.summarised for row in of_level)) is not None
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
    # Expected share of discordant questions between two independent systems of this accuracy.
    return minimum_detectable_difference(len(shares), discordance=2 * variance)


def render_report(report: Report) -> str:
    """Return the report as text for a terminal."""
    notices = [f"NOTE: {notice}" for notice in report.notices]
    return "\n".join(
        [
            *(table.as_text() for table in report_tables(report)),
            *map(wrapped, [*report_lines(report), *notices]),
        ]
    )


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
        return [Table(["", "accuracy", *COST_COLUMNS], cells, has_total=len(groups) > 1)]
    return [
        *group_tables("", groups, has_total=len(groups) > 1),
        *_tables_of_thinking(groups),
        *_tables_of_experts(report, list(groups)),
        *(repeats_tables(report.repeats) if report.repeats is not None else []),
    ]


def _tables_of_thinking(groups: Mapping[str, Group]) -> list[Table]:
    """Return a table of hidden reasoning tokens and accuracy; empty without hidden reasoning."""
    cells = [
        [
            name,
            number(group.reasoning_tokens_per_question, ",.0f"),
            percent(group.right_per_1000_reasoning_tokens),
        ]
        for name, group in groups.items()
        if group.reasoning_tokens_per_question
    ]
    headings = ["", "reasoning tokens/question", "accuracy per 1,000 of them"]
    return [Table(headings, cells, has_total=len(cells) > 1)] if cells else []


def group_tables(
    heading: str, groups: Mapping[str, Group], *, has_total: bool = False, names_left: bool = True
) -> list[Table]:
    """Return tables of the accuracy and the cost per question of groups of questions.

    Args:
        heading: Heading of the column with the names.
        groups: Groups by name.
        has_total: Whether the last group is the total of the others.
        names_left: Whether names are left-aligned.
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
        Table([heading, "answered", ACCURACY, "chance"], accuracy, has_total, names_left),
        Table([heading, *COST_COLUMNS], cost, has_total, names_left),
    ]


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
            coefficient(stated.expected_error, ".3f", rated),
            coefficient(stated.brier, ".3f", rated),
        ]
        if set(cells) != {UNKNOWN}:
            coefficients.append([name, *cells])
        if panel.n and report.overall.questions >= SMALLEST_FOR_COEFFICIENTS:
            right_of_wrong = f"{panel.rescued} of {panel.wrong_majority}"
            right_of_right = f"{panel.right_majority - panel.overturned} of {panel.right_majority}"
            right_of_none = f"{panel.no_majority_right} of {panel.no_majority}"
            decisions.append([name, right_of_right, right_of_wrong, right_of_none])
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
        ),
        Table(
            ["", "was right", "was wrong", "was split"],
            decisions,
            has_total=len(decisions) > 1 and decisions[-1][0] == ALL,
            title="correct decisions when the majority of experts",
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
            f"({overall.questions} questions, 80% power)"
        )
    lines += _what_is_too_few(report)
    if set(report.read_as) - {OURS.name}:
        lines.append("read as: " + counts(report.read_as))
    if report.disagreements:
        lines.append(
            f"WARNING: {report.disagreements} records hold another letter than their text does"
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
    with_interval = f"percentages with their 95% interval (from {SMALLEST_FOR_RATES})"
    left_out = [with_interval] if rates else []
    if coefficients:
        left_out.append(f"{', '.join(coefficients)} (from {SMALLEST_FOR_COEFFICIENTS})")
    return [f"too few questions{where} to show: {', '.join(left_out)}"] if left_out else []


def _first_and_last(first: float | None, last: float | None, form: str, n: int) -> str:
    smallest = SMALLEST_FOR_RATES if form.endswith("%") else SMALLEST_FOR_COEFFICIENTS
    if n < smallest:
        return UNKNOWN
    texts = number(first, form), number(last, form)
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)
