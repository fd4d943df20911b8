"""Renders a comparison of runs as tables and lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mdagents.scoring.compare import Comparison
from mdagents.scoring.formatting import (
    UNKNOWN,
    Table,
    counts,
    interval,
    number,
    p_equation,
    p_value,
    points,
    share,
    usd,
    with_minus,
    wrapped,
)
from mdagents.scoring.pairs import Flip, Pair
from mdagents.scoring.report import ACCURACY, COST_COLUMNS, accuracy_cell, cost_cells, group_tables
from mdagents.scoring.routing import Policy
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES

Names = Mapping[int, str]
"""Run number -> name of the run."""

NO_DIFFERENCE = "no significant difference"
TOO_FEW = "too few questions to tell"

_IDS_SHOWN = 10
_PAIRS_LISTED = 3


def render_comparison(comparison: Comparison) -> str:
    """Return runs, pairs, flips and the router report, if any, as text for a terminal."""
    return "\n".join(
        [
            *map(wrapped, _run_lines(comparison)),
            *map(wrapped, scope_lines(comparison)),
            *(table.as_text() for table in comparison_tables(comparison)),
            *map(wrapped, verdicts(comparison)),
            *map(wrapped, _flips(comparison)),
            *(table.as_text() for table in router_tables(comparison)),
            *(wrapped(f"NOTE: {notice}") for notice in comparison_notices(comparison)),
        ]
    )


def run_names(comparison: Comparison) -> Names:
    """Return the labels of the runs, for use where there is room."""
    return {run.number: run.label for run in comparison.runs}


def verdicts(comparison: Comparison) -> list[str]:
    """Return sentences that state which differences are statistically significant."""
    names = run_names(comparison)
    if len(comparison.pairs) <= _PAIRS_LISTED:
        lines = [_verdict(pair, comparison, names) for pair in comparison.pairs]
    elif comparison.questions < SMALLEST_FOR_RATES:
        lines = [TOO_FEW]
    else:
        shown = [
            "{} is better than {}".format(*_better_first(pair, names))
            for pair in comparison.pairs
            if pair.shows_difference
        ]
        others = len(comparison.pairs) - len(shown)
        left = [f"{NO_DIFFERENCE} in {others} of {len(comparison.pairs)} pairs"] if others else []
        lines = ["; ".join([*shown, *left])]
    if not all(_is_shown(pair, comparison) for pair in comparison.pairs):
        lines.append("cost per extra correct answer: shown only for significant differences")
    return lines


def headline(comparison: Comparison) -> str:
    """Return the verdict in a few words."""
    shown = [pair for pair in comparison.pairs if _is_shown(pair, comparison)]
    if comparison.questions < SMALLEST_FOR_RATES:
        return TOO_FEW
    if not shown:
        return NO_DIFFERENCE
    if len(comparison.pairs) > 1:
        return f"a difference is shown in {len(shown)} of {len(comparison.pairs)} pairs"
    return f"{_better_first(shown[0], run_names(comparison))[0]} is better"


def scope_lines(comparison: Comparison, names: Names | None = None) -> list[str]:
    """Return lines on the questions and figures that are left out.

    Args:
        comparison: Comparison to describe.
        names: Names of the runs by number; None uses their numbers.
    """
    called = _called(comparison, names)
    left_out = [
        f"{run.left_out} of {called[run.number]}" for run in comparison.runs if run.left_out
    ]
    lines = []
    if left_out:
        lines += [
            f"NOTE: only the {comparison.questions} questions that all runs hold are compared",
            f"left out: {', '.join(left_out)}",
        ]
    if comparison.questions < SMALLEST_FOR_COEFFICIENTS:
        rates = f"percentages (from {SMALLEST_FOR_RATES}), "
        lines.append(
            f"too few questions to show: {rates * (comparison.questions < SMALLEST_FOR_RATES)}"
            f"a detectable difference (from {SMALLEST_FOR_COEFFICIENTS})"
        )
    return lines


def comparison_tables(comparison: Comparison, names: Names | None = None) -> list[Table]:
    """Return tables of the runs and of their pairs; `names` as in `scope_lines`."""
    called = names or {run.number: str(run.number) for run in comparison.runs}
    groups = {called[run.number]: run.figures for run in comparison.runs}
    accuracy, cost = group_tables("run", groups, names_left=names is not None)
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
            pair_name(pair, called),
            _difference(pair, comparison),
            p_value(pair.mcnemar_p),
            *([p_value(pair.mcnemar_p_holm)] if several else []),
            _detectable(pair, comparison.questions),
        ]
        for pair in comparison.pairs
    ]
    priced = [_is_shown(pair, comparison) for pair in comparison.pairs]
    flips = [
        [
            pair_name(pair, called),
            str(len(pair.wrong_to_right)),
            str(len(pair.right_to_wrong)),
            *(_prices(pair if is_priced else None) if any(priced) else []),
        ]
        for pair, is_priced in zip(comparison.pairs, priced, strict=True)
    ]
    difference = ["pair", "difference (95% interval)", "McNemar p"]
    holm = ["Holm p"] if several else []
    return [
        accuracy,
        cost,
        Table([*difference, *holm, "detectable"], differences, names_left=names is not None),
        Table(
            ["pair", "now right", "now wrong", *(_PRICES if any(priced) else ())],
            flips,
            names_left=names is not None,
        ),
    ]


def router_tables(comparison: Comparison, names: Names | None = None) -> list[Table]:
    """Return tables of the routing policies, and of the levels on the questions sent to each.

    The result is empty without a router report; `names` as in `scope_lines`.
    """
    report = comparison.router
    if report is None:
        return []
    called = _called(comparison, names)
    policies = [
        [policy.name, accuracy_cell(policy.figures), _regret(policy)] for policy in report.policies
    ]
    columns = ["router", *report.forced]
    levels = [
        [
            level,
            str(reached["router"].n),
            *(share(reached[name].correct, reached[name].n) for name in columns),
        ]
        for level, reached in report.by_routed_level.items()
    ]
    beside = ", ".join(f"{level} ({called[number]})" for level, number in report.forced.items())
    return [
        Table(
            ["", ACCURACY, "regret (95% interval)"],
            policies,
            title=f"router: {called[report.router]} beside {beside}",
        ),
        Table(
            ["", *COST_COLUMNS],
            [[policy.name, *cost_cells(policy.figures)] for policy in report.policies],
        ),
        Table(
            ["routed to", "questions", *columns], levels, title="right, by where the router sent"
        ),
    ]


def comparison_notices(comparison: Comparison, names: Names | None = None) -> list[str]:
    """Return caveats to show with the figures; `names` as in `scope_lines`."""
    called = _called(comparison, names)
    report = comparison.router
    of_router = []
    if report is not None:
        of_router.append("the oracle picks the best run per question in hindsight: an upper bound")
        if report.same_models is False:
            of_router.append("these runs asked different models, which is part of the regret")
    numbered = {f"run {number}": name for number, name in called.items()}
    for notice in comparison.notices:
        whose, _, rest = notice.partition(": ")
        of_router.append(f"{numbered[whose]}: {rest}" if whose in numbered else notice)
    return of_router


def pair_name(pair: Pair, names: Names) -> str:
    """Return the name of a pair, such as `2 − 1`."""
    return f"{names[pair.second]} − {names[pair.first]}"


def _called(comparison: Comparison, names: Names | None) -> Names:
    """Return the names of the runs for use in a sentence."""
    return names or {run.number: f"run {run.number}" for run in comparison.runs}


def _run_lines(comparison: Comparison) -> list[str]:
    return [f"{run.number}  {run.name} ({counts(run.status_counts)})" for run in comparison.runs]


def _is_shown(pair: Pair, comparison: Comparison) -> bool:
    return pair.shows_difference and comparison.questions >= SMALLEST_FOR_RATES


def _better_first(pair: Pair, names: Names) -> tuple[str, str]:
    second_is_better = pair.difference > 0
    better, worse = (pair.second, pair.first)[:: 1 if second_is_better else -1]
    return names[better], names[worse]


def _verdict(pair: Pair, comparison: Comparison, names: Names) -> str:
    name = pair_name(pair, names)
    if comparison.questions < SMALLEST_FOR_RATES:
        return f"{TOO_FEW}: {name} is {with_minus(_difference(pair, comparison))}"
    is_one_of = f" (Holm, {len(comparison.pairs)} pairs)" * (len(comparison.pairs) > 1)
    of_p = f"{p_equation(pair.p)}{is_one_of}"
    if not _is_shown(pair, comparison):
        low, high = points(pair.difference_low, "+.1f"), points(pair.difference_high, "+.1f")
        figures = with_minus(
            f"{points(pair.difference, '+.1f')} points (95% interval {low} to {high})"
        )
        return f"{NO_DIFFERENCE}: {name} is {figures}, {of_p}"
    better, worse = _better_first(pair, names)
    low, high = map(points, sorted(map(abs, (pair.difference_low, pair.difference_high))))
    by = f"{points(abs(pair.difference))} points"
    return f"{better} is better than {worse} by {by} (95% interval {low} to {high}), {of_p}"


def _difference(pair: Pair, comparison: Comparison) -> str:
    """Return the difference in points with its interval; for few questions, in answers."""
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


_PRICES = ("tokens/extra right", "USD/extra right")


def _prices(pair: Pair | None) -> list[str]:
    """Return the price of an extra right answer; unknown when `pair` is None."""
    if pair is None:
        return [UNKNOWN] * len(_PRICES)
    return [_price(pair.tokens_per_extra_correct, ",.0f"), _price(pair.cost_per_extra_correct)]


def _price(ratio: float | None, form: str | None = None) -> str:
    if ratio is not None and ratio < 0:
        return "cheaper too"
    return usd(ratio) if form is None else number(ratio, form)


def _flips(comparison: Comparison) -> list[str]:
    if len(comparison.pairs) > _PAIRS_LISTED:
        return []
    return [
        f"{pair.second} − {pair.first}, {direction}: {_ids(flips)}"
        for pair in comparison.pairs
        for direction, flips in (
            ("wrong → right", pair.wrong_to_right),
            ("right → wrong", pair.right_to_wrong),
        )
    ]


def _ids(flips: Sequence[Flip]) -> str:
    more = f", … {len(flips) - _IDS_SHOWN} more" if len(flips) > _IDS_SHOWN else ""
    return (", ".join(flip.question_id for flip in flips[:_IDS_SHOWN]) or "-") + more
