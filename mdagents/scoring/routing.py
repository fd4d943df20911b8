"""The value of the router: a routed run compared with runs forced to each level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mdagents.scoring.group import Group, Proportion, by_question, correct_answers, make_group
from mdagents.scoring.pairs import interval_between
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Difficulty, RoutedBy, TeamRole
from mdagents_llm.proportions import Interval, accuracy_interval

ROUTER, REPLAYED, ORACLE = "router", "router replayed", "oracle"


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to choose a level for each question, and its results."""

    name: str
    """Name of the policy. `router`: the routed run itself. `router replayed`: the levels that it
    chose, with the answers of the forced runs. `always LEVEL`: a forced run. `oracle`: the best
    level per question in hindsight, the cheapest on ties."""
    figures: Group
    regret: float
    """Accuracy of the oracle minus that of this policy."""
    regret_low: float
    """Lower end of the 95% interval: for `router` that of a comparison, else that of a share, for
    the oracle is never worse; 0 for the oracle."""
    regret_high: float


@dataclass(frozen=True, slots=True)
class RouterReport:
    """A routed run compared with forced runs."""

    router: int
    """Number of the routed run among the compared runs, from 1."""
    forced: dict[str, int]
    """Level -> number of the run that was forced to it."""
    policies: list[Policy]
    by_routed_level: dict[str, dict[str, Proportion]]
    """Level chosen by the router -> results of the router and of each forced run on its questions;
    shows whether the router matches levels to questions."""
    same_models: bool | None
    """Whether all of these runs used the same models; None when a file does not state them."""


def make_router_report(
    runs: Sequence[RunOutput], shared: Sequence[Sequence[ScoredRow]]
) -> RouterReport | None:
    """Build the router report.

    Args:
        runs: The compared runs.
        shared: Rows of each run for the same questions, in the same order.

    Returns:
        The report; None unless exactly one run was routed and at least two others were forced, each
        to a different level.
    """
    found = routed_and_forced(shared)
    if found is None:
        return None
    router, places = found
    always = {level: shared[place] for level, place in places.items()}
    return RouterReport(
        router=router + 1,
        forced={level: place + 1 for level, place in places.items()},
        policies=_policies(shared[router], always),
        by_routed_level=_by_routed_level(shared[router], always),
        same_models=_same_models(runs[place] for place in (router, *places.values())),
    )


def routed_and_forced(
    shared: Sequence[Sequence[ScoredRow]],
) -> tuple[int, dict[str, int]] | None:
    """Return the index of the routed run, and level -> index of the run forced to it.

    Args:
        shared: Rows of each run for the same questions, in the same order.

    Returns:
        The indices; None unless exactly one run was routed and at least two others were forced,
        each to a different level.
    """
    roles = [_role(rows) for rows in shared]
    forced = [role for role in roles if role in set(Difficulty)]
    if roles.count(ROUTER) != 1 or len(forced) < 2 or len(forced) > len(set(forced)):
        return None
    return roles.index(ROUTER), {
        str(level): roles.index(level) for level in Difficulty if level in forced
    }


def replayed(
    routed: Sequence[ScoredRow], always: Mapping[str, Sequence[ScoredRow]]
) -> list[ScoredRow] | None:
    """Return the answers of the forced runs at the levels that the router chose.

    Args:
        routed: Rows of the routed run.
        always: Level -> rows of the run forced to it, for the same questions in the same order.

    Returns:
        The rows; None when the router chose a level that no run was forced to.
    """
    if not all(row.difficulty in always for row in routed):
        return None
    return [always[row.difficulty][place] for place, row in enumerate(routed)]


def oracle(runs: Sequence[Sequence[ScoredRow]]) -> list[ScoredRow]:
    """Return, for each question, the rows of the best run on it; ties go to the cheapest.

    Args:
        runs: Rows of each run for the same questions, in the same order.
    """

    def merit(answers: Sequence[ScoredRow]) -> tuple[int, int]:
        return correct_answers(answers), -sum(row.total_tokens or 0 for row in answers)

    questions = zip(*(by_question(rows) for rows in runs), strict=True)
    return [row for candidates in questions for row in max(candidates, key=merit)]


def _role(rows: Sequence[ScoredRow]) -> str:
    """Return `router`, the level that a run was forced to, or an empty string for other runs.

    A run whose router rated only some of its questions has neither role.
    """
    levels = {row.difficulty for row in rows if row.difficulty}
    by = {row.routed_by for row in rows if row.routed_by}
    if by & {RoutedBy.ROUTER, RoutedBy.FALLBACK, RoutedBy.DISAGREEMENT}:
        return ROUTER if RoutedBy.FORCED not in by else ""
    if not by and len(levels) > 1:
        return ROUTER
    return levels.pop() if by <= {RoutedBy.FORCED} and len(levels) == 1 else ""


def _policies(
    routed: Sequence[ScoredRow], always: Mapping[str, Sequence[ScoredRow]]
) -> list[Policy]:
    choices = {ROUTER: routed}
    if (as_routed := replayed(routed, always)) is not None:
        choices[REPLAYED] = as_routed
    choices |= {f"always {level}": rows for level, rows in always.items()}
    bound = choices[ORACLE] = oracle(list(always.values()))
    best = make_group(bound).correct
    policies = []
    for name, rows in choices.items():
        figures = make_group(rows)
        low, high = _regret_interval(name, rows, bound)
        regret = (best - figures.correct) / figures.n
        policies.append(Policy(name, figures, regret, regret_low=low, regret_high=high))
    return policies


def _regret_interval(name: str, rows: Sequence[ScoredRow], bound: Sequence[ScoredRow]) -> Interval:
    if name == ORACLE:
        return 0.0, 0.0  # by definition
    if name == ROUTER:  # answers of its own, which may be right where the oracle's are wrong
        return interval_between(rows, bound)
    lost = [
        correct_answers(best) - correct_answers(own)
        for own, best in zip(by_question(rows), by_question(bound), strict=True)
    ]
    low, high = accuracy_interval(lost, [len(answers) for answers in by_question(rows)])
    return low or 0.0, 1.0 if high is None else high


def _by_routed_level(
    routed: Sequence[ScoredRow], always: Mapping[str, Sequence[ScoredRow]]
) -> dict[str, dict[str, Proportion]]:
    places: dict[str, list[int]] = {}
    for place, row in enumerate(routed):
        places.setdefault(row.difficulty or "not routed", []).append(place)
    choices = {ROUTER: routed, **always}
    by_difficulty = sorted(places, key=lambda level: [*Difficulty, level].index(level))
    return {
        level: {
            name: Proportion.of([rows[place] for place in places[level]])
            for name, rows in choices.items()
        }
        for level in by_difficulty
    }


def _same_models(runs: Iterable[RunOutput]) -> bool | None:
    """Return whether the teams used the same models; the router's own model is ignored."""
    roles = [role for role in TeamRole if role is not TeamRole.ROUTER]
    models = {
        tuple(str(run.manifest.get("models", {}).get(role, "")) for role in roles) for run in runs
    }
    return None if any("" in asked for asked in models) else len(models) == 1
