"""Renders a comparison of runs as text: verdicts, notes, a study as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.comparison import Block, Comparison
from mdagents.scoring.comparison_tables import (
    block_tables,
    difference,
    overview_tables,
)
from mdagents.scoring.formatting import (
    UNKNOWN,
    Headline,
    Part,
    counts,
    interval,
    p_equation,
    points,
)
from mdagents.scoring.pairs import Pair
from mdagents.scoring.routing_text import router_notices
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
from mdagents.scoring.table_formats import as_markdown as table_as_markdown
from mdagents.settings import Status
from mdagents_llm.text import counted

NO_DIFFERENCE = "no significant difference"
TOO_FEW = "too few questions to tell"

_NAMES_SHOWN = 10
_MISSING_SHOWN = 4
_PAIRS_LISTED = 3
_SENTENCES_SHOWN = 6
_GROUPS_IN_HEADLINE = 3


def comparison_parts(comparison: Comparison, *, in_detail: bool = False) -> list[Part]:
    """Return a comparison for a terminal: the verdict, a table of the runs, what limits them.

    Args:
        comparison: The comparison.
        in_detail: Whether the tables of all pairs are shown as well. Few pairs always have them.
    """
    if in_detail or not is_shortened(comparison):
        first, *more = verdicts(comparison)
        return [
            Headline(first),
            *more,
            *block_tables(comparison),
            *_run_names(comparison),
            *_flips(comparison),
            *_limits(comparison),
        ]
    shown = [
        f"{comparison.place(block)}{_verdict(pair, block, comparison)}"
        for block in comparison.blocks
        for pair in block.pairs
        if block.shows(pair)
    ]
    left_out = len(shown) - _SENTENCES_SHOWN
    if left_out > 0:
        shown[_SENTENCES_SHOWN:] = [counted(left_out, "more significant difference")]
    tables = overview_tables(comparison) or block_tables(comparison, with_pairs=False)
    return [Headline(headline(comparison)), *shown, *tables, *_limits(comparison)]


def _limits(comparison: Comparison) -> list[str]:
    return [
        *comparison_lines(comparison),
        *(f"NOTE: {notice}" for notice in comparison_notices(comparison)),
    ]


def is_shortened(comparison: Comparison) -> bool:
    """Return whether there are too many pairs to show all of them on a screen."""
    return comparison.comparisons > _PAIRS_LISTED


def headline(comparison: Comparison) -> str:
    """Return the verdict in a few words."""
    pairs = [(block, pair) for block in comparison.blocks for pair in block.pairs]
    if not pairs:
        return "nothing to compare yet"
    if all(block.questions < SMALLEST_FOR_RATES for block in comparison.blocks):
        return TOO_FEW
    shown = [_better_first(block, pair) for block, pair in pairs if block.shows(pair)]
    if not shown:
        return NO_DIFFERENCE + (f" from {comparison.baseline}" if comparison.baseline else "")
    if len(pairs) == 1:
        return _better_runs(shown)[0]
    groups = _better_runs(shown)
    where = f"in {len(shown)} of {len(pairs)} comparisons"
    if len(groups) > _GROUPS_IN_HEADLINE:
        return f"significant differences {where}"
    return f"{'; '.join(groups)} ({where})"


def verdicts(comparison: Comparison) -> list[str]:
    """Return sentences that state which differences are statistically significant."""
    return [
        f"{comparison.place(block)}{verdict}"
        for block in comparison.blocks
        for verdict in _verdicts(block, comparison)
    ]


def comparison_lines(comparison: Comparison) -> list[str]:
    """Return lines on omitted figures, the statistical methods, and questions without an answer."""
    lines = _what_is_too_few(comparison)
    if total := comparison.comparisons:
        holm = f"; Holm over all {total} comparisons" if total > 1 else ""
        has_epochs = any(block.answers > block.questions for block in comparison.blocks)
        epochs = ", epochs by their design effect" if has_epochs else ""
        lines.append(
            f"differences: Tango's interval{epochs}; p: McNemar's exact test{holm}; Pareto: no "
            "other run is as accurate with as few tokens"
        )
    if not all(block.shows(pair) for block in comparison.blocks for pair in block.pairs):
        lines.append("cost per extra correct answer: shown only for significant differences")
    for block in comparison.blocks:
        place = comparison.place(block)
        unanswered = [
            f"{run.label} ({counts(missing)})"
            for run in block.runs
            if (missing := {s: n for s, n in run.status_counts.items() if s != Status.ANSWERED})
        ]
        lines += [f"{place}without an answer: {', '.join(unanswered)}"] if unanswered else []
        lines += [
            f"{place}{what} in no run: {len(ids)} of {counted(block.questions, 'question')} "
            f"({_some(ids)})"
            for what, ids in (("right", block.nobody_right), ("answered", block.nobody_answered))
            if ids
        ]
    return lines


def comparison_notices(comparison: Comparison) -> list[str]:
    """Return caveats to show with the figures."""
    by_reason: dict[str, list[str]] = {}
    for run, why in comparison.missing.items():
        by_reason.setdefault(why, []).append(run)
    missing = [
        f"missing ({why}): {_some(runs, _MISSING_SHOWN, between='; ')}"
        for why, runs in by_reason.items()
    ]
    left_out = [
        f"{comparison.place(block)}compared on the {_size(block)} that all runs hold; left out: "
        + ", ".join(
            f"{counted(run.left_out, 'answer')} of {run.label}"
            for run in block.runs
            if run.left_out
        )
        for block in comparison.blocks
        if any(run.left_out for run in block.runs)
    ]
    notices = [
        notice for block in comparison.blocks for notice in (*router_notices(block), *block.notices)
    ]
    return [*missing, *left_out, *dict.fromkeys(notices)]


def _size(block: Block) -> str:
    questions = counted(block.questions, "question")
    if block.answers == block.questions:
        return questions
    return f"{counted(block.answers, 'answer')} to {questions}"


def as_markdown(comparison: Comparison) -> str:
    """Return a study as Markdown for a paper: tables, with notes on the methods."""
    parts = [f"# {comparison.name}", headline(comparison), *verdicts(comparison)]
    for table in [*overview_tables(comparison), *block_tables(comparison)]:
        parts += [f"## {table.title}"] if table.title else []
        parts.append(table_as_markdown(table))
    notices = [f"NOTE: {notice}" for notice in comparison_notices(comparison)]
    parts.append("\n".join(f"- {line}" for line in (*comparison_lines(comparison), *notices)))
    return "\n\n".join(parts) + "\n"


def _verdicts(block: Block, comparison: Comparison) -> list[str]:
    """Return a sentence for each pair, or for many pairs one that names the significant ones."""
    if not block.pairs:
        return [f"nothing to compare with {comparison.baseline} yet"]
    if comparison.comparisons <= _PAIRS_LISTED:
        return [_verdict(pair, block, comparison) for pair in block.pairs]
    if block.questions < SMALLEST_FOR_RATES:
        return [TOO_FEW]
    shown = [_verdict(pair, block, comparison) for pair in block.pairs if block.shows(pair)]
    others = [block.pair_name(pair) for pair in block.pairs if not block.shows(pair)]
    if not shown:
        largest = max(block.pairs, key=lambda pair: abs(pair.difference))
        return [
            f"largest of {len(block.pairs)} differences: {_figures(largest, block, comparison)}"
        ]
    if others:
        shown.append(
            f"{NO_DIFFERENCE} in {len(others)} of {len(block.pairs)} pairs: {_some(others)}"
        )
    return ["; ".join(shown)]


def _verdict(pair: Pair, block: Block, comparison: Comparison) -> str:
    name = block.pair_name(pair)
    if block.questions < SMALLEST_FOR_RATES:
        return f"{TOO_FEW}: {name} is {difference(pair, block)}"
    if not block.shows(pair):
        return f"{NO_DIFFERENCE}: {_figures(pair, block, comparison)}"
    better, worse = _better_first(block, pair)
    low, high = sorted(map(abs, (pair.difference_low, pair.difference_high)))
    saves = (pair.tokens_per_extra_correct or 0) < 0
    saving = f"; {better} needs fewer tokens" if saves else ""
    return (
        f"{better} is better than {worse} by {points(abs(pair.difference))} points "
        f"(95% interval {interval(low, high)}), {_p(pair, comparison)}{saving}"
    )


def _figures(pair: Pair, block: Block, comparison: Comparison) -> str:
    ends = interval(pair.difference_low, pair.difference_high, "+.1f")
    figures = f"{points(pair.difference, '+.1f')} points (95% interval {ends})"
    return f"{block.pair_name(pair)} is {figures}, {_p(pair, comparison)}"


def _p(pair: Pair, comparison: Comparison) -> str:
    return p_equation(pair.p) + (" (Holm)" if comparison.comparisons > 1 else "")


def _better_first(block: Block, pair: Pair) -> tuple[str, str]:
    """Return the labels of the better and the worse run of a pair."""
    first, second = block.label(pair.first), block.label(pair.second)
    return (second, first) if pair.difference > 0 else (first, second)


def _better_runs(shown: Sequence[tuple[str, str]]) -> list[str]:
    """Return who is better than whom, such as `a and b are better than c`.

    Args:
        shown: Labels of the better and the worse run of each significant pair.
    """
    better_than: dict[str, list[str]] = {}
    for better, worse in dict.fromkeys(shown):
        better_than.setdefault(worse, []).append(better)
    worse_than: dict[tuple[str, ...], list[str]] = {}
    for worse, runs in better_than.items():
        worse_than.setdefault(tuple(runs), []).append(worse)
    return [
        f"{_listed(runs)} {'is' if len(runs) == 1 else 'are'} better than {_listed(worse)}"
        for runs, worse in worse_than.items()
    ]


def _what_is_too_few(comparison: Comparison) -> list[str]:
    """Return a line on the figures omitted for lack of questions, if any."""
    fewest = min(block.questions for block in comparison.blocks)
    if fewest >= SMALLEST_FOR_COEFFICIENTS:
        return []
    where = " in some blocks" if len(comparison.blocks) > 1 else ""
    rates = f"percentages ({SMALLEST_FOR_RATES} needed), " if fewest < SMALLEST_FOR_RATES else ""
    return [
        f"too few questions{where} to show: {rates}a detectable difference "
        f"({SMALLEST_FOR_COEFFICIENTS} needed)"
    ]


def _run_names(comparison: Comparison) -> list[str]:
    """Return lines with the names of runs that a user compares, where they differ from labels."""
    if comparison.name:
        return []
    runs = comparison.blocks[0].runs
    return [f"{run.label}: {run.name}" for run in runs if run.label != run.name]


def _flips(comparison: Comparison) -> list[str]:
    """Return lines with the questions that only one run of a pair got right; empty for many."""
    if comparison.comparisons > _PAIRS_LISTED:
        return []
    return [
        f"{comparison.place(block)}{block.pair_name(pair)}, {direction}: "
        + (_some([flip.question_id for flip in flips]) or UNKNOWN)
        for block in comparison.blocks
        for pair in block.pairs
        for direction, flips in (
            ("wrong → right", pair.wrong_to_right),
            ("right → wrong", pair.right_to_wrong),
        )
    ]


def _some(names: Sequence[str], shown: int = _NAMES_SHOWN, between: str = ", ") -> str:
    """Return the first names, and the number of the others."""
    more = [f"… {len(names) - shown} more"] if len(names) > shown else []
    return between.join([*names[:shown], *more])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
