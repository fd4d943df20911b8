"""Compares runs on the same questions: accuracy, statistical uncertainty and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

from mdagents.scoring.exaid_figures import ExaidFigures, exaid_figures
from mdagents.scoring.group import Group, make_group, scored
from mdagents.scoring.items import other_ids, shared_rows
from mdagents.scoring.pairs import Pair, make_pair
from mdagents.scoring.routing import RouterReport, make_router_report
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.run_names import names_of
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import holm
from mdagents_llm.bootstrap import RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run with its figures on the compared questions."""

    number: int
    """Number of the run, from 1 in the order given; pairs refer to it."""
    name: str
    label: str
    """Short name that distinguishes the run from the others."""
    path: str
    left_out: int
    """Number of scored questions of the run that are not compared."""
    status_counts: dict[str, int]
    figures: Group
    summaries: ExaidFigures | None
    """EXAID's figures on the compared questions; None when EXAID followed none of them."""
    pareto: bool | None
    """Whether the run is Pareto-optimal: no other run is at least as accurate with at most as many
    tokens, and better in one of the two. None when its tokens are unknown."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The content of `compare_….json`."""

    questions: int
    answers: int
    """Number of answers of each run: `questions` times epochs."""
    bootstrap_seed: int
    bootstrap_resamples: int
    notices: list[str]
    runs: list[ComparedRun]
    pairs: list[Pair]
    router: RouterReport | None
    """Router report; None unless a routed run was given along with runs forced to the levels."""

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as JSON types."""
        return asdict(self)


def compare(runs: Sequence[RunOutput], *, common: bool = False) -> Comparison:
    """Compare runs on the questions they share.

    Args:
        runs: Runs to compare, at least two.
        common: Whether runs with different questions are compared on their common ones.

    Raises:
        ConfigError: The runs hold different questions, or none in common.
    """
    shared = shared_rows(runs, common=common)
    pairs = [
        make_pair((first, second), before, after)
        for (first, before), (second, after) in combinations(enumerate(shared, start=1), 2)
    ]
    if len(pairs) > 1:
        adjusted = holm([pair.mcnemar_p for pair in pairs])
        pairs = [replace(pair, mcnemar_p_holm=p) for pair, p in zip(pairs, adjusted, strict=True)]
    return Comparison(
        questions=len({row.question_id for row in shared[0]}),
        answers=len(shared[0]),
        bootstrap_seed=SEED,
        bootstrap_resamples=RESAMPLES,
        notices=notices_of(runs, [f"run {number}" for number in range(1, len(runs) + 1)], shared),
        runs=_compared_runs(runs, shared),
        pairs=pairs,
        router=make_router_report(runs, shared),
    )


def notices_of(
    runs: Sequence[RunOutput], names: Sequence[str], shared: Sequence[Sequence[ScoredRow]]
) -> list[str]:
    """Return the notices of the runs; notices shared by all runs carry no run name.

    Args:
        runs: Runs, at least one.
        names: Names of the runs.
        shared: Rows of each run for the same questions, in the same order.
    """
    of_all = [notice for notice in runs[0].notices if all(notice in r.notices for r in runs)]
    of_single = [
        f"{name}: {notice}"
        for name, run in zip(names, runs, strict=True)
        for notice in run.notices
        if notice not in of_all
    ]
    return [*of_all, *of_single, *other_ids(names, shared)]


def _compared_runs(
    runs: Sequence[RunOutput], shared: Sequence[Sequence[ScoredRow]]
) -> list[ComparedRun]:
    groups = [make_group(rows) for rows in shared]
    return [
        ComparedRun(
            number=number,
            name=run.name,
            label=label,
            path=str(run.path),
            left_out=len(scored(run.rows)) - len(rows),
            status_counts=dict(Counter(row.status for row in rows).most_common()),
            figures=group,
            summaries=exaid_figures(row.summarised for row in rows),
            pareto=is_on_front(group, groups),
        )
        for number, (run, label, rows, group) in enumerate(
            zip(runs, names_of(runs), shared, groups, strict=True), 1
        )
    ]


def is_on_front(group: Group, groups: Sequence[Group]) -> bool | None:
    """Return whether a group is on the Pareto front of accuracy and tokens.

    It is unless another group is as accurate with as few tokens, and better in one of the two.

    Args:
        group: Group to test.
        groups: All groups, over the same questions.

    Returns:
        None when the tokens of `group` are unknown.
    """
    if group.tokens_per_question is None:
        return None
    tokens = group.tokens_per_question
    return not any(
        other.tokens_per_question is not None
        and other.correct >= group.correct
        and other.tokens_per_question <= tokens
        and (other.correct > group.correct or other.tokens_per_question < tokens)
        for other in groups
    )
