"""Renders what-if results of policies as tables and sentences."""

from __future__ import annotations

from mdagents.scoring.formatting import (
    Headline,
    Part,
    Table,
    interval,
    number,
    p_equation,
    percent,
    points,
)
from mdagents.scoring.group_text import ACCURACY, COST_COLUMNS, accuracy_cell
from mdagents.scoring.policies import Kind
from mdagents.scoring.routing import ORACLE
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents.scoring.what_if import TOO_FEW, Choice, Coin, FamilyOutcome, Reached, WhatIf

_ON_SCREEN = 8  # families in the table
_FOLDS_NAMED = 3


def what_if_parts(what_if: WhatIf) -> list[Part]:
    """Return what-if results for a terminal, the verdict first."""
    first, *more = verdicts(what_if)
    return [
        Headline(first),
        *more,
        *what_if_tables(what_if, _ON_SCREEN),
        *what_if_lines(what_if, _ON_SCREEN),
        *(f"NOTE: {notice}" for notice in what_if_notices(what_if)),
    ]


def headline(what_if: WhatIf) -> str:
    """Return the verdict in a few words."""
    choice = what_if.choice
    if choice is None:
        return TOO_FEW
    best = f"always {what_if.best_run}"
    if choice.beside_best_run.is_shown and choice.beside_best_run.difference > 0:
        return f"{_label(choice)} is better than {best}"
    return f"no policy is significantly better than {best}"


def verdicts(what_if: WhatIf) -> list[str]:
    """Return sentences that compare the choice with the best run and a coin, and the savings."""
    choice = what_if.choice
    if choice is None:
        return [TOO_FEW]
    best = what_if.runs[what_if.best_run]
    named = (
        f"always {what_if.best_run} ({points(best.accuracy)}% at "
        f"{best.tokens_per_question or 0:,.0f} tokens per question)"
    )
    if list(choice.in_folds) == [f"always {what_if.best_run}"]:
        first = f"No policy is significantly better than {named}: cross-validation also picks it."
        return [first, _saving(what_if)]
    difference, reached = choice.beside_best_run, choice.reached
    figures = (
        f"{points(reached.accuracy)}% "
        f"({_apart(difference.difference, difference.low, difference.high)}, "
        f"McNemar {p_equation(difference.mcnemar_p)}) at {reached.tokens_per_question:,.0f}"
    )
    if difference.is_shown and difference.difference > 0:
        first = (
            f"{_label(choice)}, chosen by cross-validation, is better than {named}: it reaches "
            f"{figures}."
        )
    else:
        first = (
            f"No policy is significantly better than {named}. The one that cross-validation "
            f"chooses, {_label(choice)}, reaches {figures}."
        )
    return [first, *_beside_coin(what_if, choice), _saving(what_if)]


def what_if_lines(what_if: WhatIf, shown: int) -> list[str]:
    """Return lines on the method and on omitted families.

    Args:
        what_if: What-if results.
        shown: Number of families in the table.
    """
    lines = [what_if.how] if what_if.choice else []
    if what_if.choice:
        lines.append(
            f"best in hindsight on all questions: «{what_if.choice.in_hindsight}»; the thresholds "
            "in the table were also chosen on all questions: use them for new questions only"
        )
    lines.append("the oracle picks the best run per question in hindsight: an upper bound")
    more = len(_of_several(what_if)) - shown
    if more > 0:
        lines.append(f"{more} further families of policies are in the JSON file")
    return lines


def what_if_notices(what_if: WhatIf) -> list[str]:
    """Return caveats to show with the figures."""
    left_out = [f"{count} of {name}" for name, count in what_if.left_out.items() if count]
    if not left_out:
        return what_if.notices
    return [
        f"only the {what_if.questions} questions that all runs hold are taken; "
        f"left out: {', '.join(left_out)}",
        *what_if.notices,
    ]


def what_if_tables(what_if: WhatIf, shown: int) -> list[Table]:
    """Return tables of the runs, of the best families, and of the reference policies.

    Args:
        what_if: What-if results.
        shown: Maximum number of families.
    """
    headings = [ACCURACY, COST_COLUMNS[0]]
    runs = [
        [name, accuracy_cell(group), f"{group.tokens_per_question or 0:,.0f}"]
        for name, group in what_if.runs.items()
    ]
    families = [
        [outcome.name, *_cells(what_if, outcome.reached), number(outcome.threshold, ".2f")]
        for outcome in _of_several(what_if)[:shown]
        if outcome.reached
    ]
    bounds = [[ORACLE, *_cells(what_if, what_if.oracle)]]
    choice = what_if.choice
    if choice is not None:
        coin = choice.beside_coin
        bounds = [
            ["chosen by cross-validation", *_cells(what_if, choice.reached)],
            [
                f"coin: {coin.cheaper} or {coin.dearer}"
                if coin.cheaper != coin.dearer
                else f"always {coin.cheaper}",
                f"{points(coin.accuracy)}%",
                f"{_tokens_of_coin(what_if, coin):,.0f}",
            ],
            *bounds,
        ]
    return [
        Table(["run", *headings], runs, title="Runs"),
        *(
            [
                Table(
                    ["policy", *headings, "threshold"],
                    families,
                    title="Policies of several runs, thresholds by cross-validation",
                )
            ]
            if families
            else []
        ),
        Table(["", *headings], bounds, title="Chosen policy and bounds"),
    ]


def _of_several(what_if: WhatIf) -> list[FamilyOutcome]:
    """Return the families that combine several runs and have known results."""
    return [
        outcome
        for outcome in what_if.families
        if outcome.kind is not Kind.ALWAYS and outcome.reached
    ]


def _cells(what_if: WhatIf, reached: Reached) -> list[str]:
    ends = interval(reached.accuracy_low, reached.accuracy_high)
    accuracy = (
        f"{reached.correct} of {what_if.answers} right"
        if what_if.questions < SMALLEST_FOR_RATES
        else f"{percent(reached.accuracy)} ({ends})"
    )
    return [accuracy, f"{reached.tokens_per_question:,.0f}"]


def _label(choice: Choice) -> str:
    """Return the family chosen by cross-validation, or several with their numbers of folds."""
    families = list(choice.in_folds.items())
    if len(families) == 1:
        return f"«{families[0][0]}»"
    named = [f"«{name}» in {folds}" for name, folds in families[:_FOLDS_NAMED]]
    others = sum(folds for _, folds in families[_FOLDS_NAMED:])
    parts = [*named, *([f"others in {others}"] if others else [])]
    return f"{', '.join(parts)} of {sum(choice.in_folds.values())} folds"


def _apart(difference: float, low: float, high: float) -> str:
    return f"{points(difference, '+.1f')} points, 95% interval {interval(low, high, '+.1f')}"


def _beside_coin(what_if: WhatIf, choice: Choice) -> list[str]:
    """Return a sentence comparing the choice with a coin; empty if the coin is the best run."""
    coin = choice.beside_coin
    if coin.cheaper == coin.dearer == what_if.best_run:
        return []
    rival = (
        f"always {coin.cheaper}"
        if coin.cheaper == coin.dearer
        else f"a coin that sends {points(coin.share_of_dearer, '.0f')}% of the questions to "
        f"{coin.dearer} and the others to {coin.cheaper}"
    )
    verdict = "is better than that" if coin.low > 0 else "is not significantly better than that"
    tokens = _tokens_of_coin(what_if, coin)
    are_same = round(tokens) == round(choice.reached.tokens_per_question)
    at = "the same" if are_same else f"{tokens:,.0f}"
    return [
        f"At {at} tokens {rival} reaches {points(coin.accuracy)}%: the choice {verdict} "
        f"({_apart(coin.difference, coin.low, coin.high)}, the coin held fixed)."
    ]


def _tokens_of_coin(what_if: WhatIf, coin: Coin) -> float:
    """Return the tokens per question of a coin: those of the policy, within those of the runs."""
    cheaper, dearer = (
        what_if.runs[name].tokens_per_question or 0 for name in (coin.cheaper, coin.dearer)
    )
    return cheaper + coin.share_of_dearer * (dearer - cheaper)


def _saving(what_if: WhatIf) -> str:
    best = f"always {what_if.best_run}"
    if what_if.cheapest_as_good is None:
        return f"No policy with at least as many right answers takes fewer tokens than {best}."
    reached = what_if.outcome(what_if.cheapest_as_good).reached
    of_best = what_if.outcome(best).reached
    assert reached is not None, "it was chosen by what it reaches"
    assert of_best is not None, "a single run needs no choice"
    fewer = ""
    if of_best.tokens_per_question:
        saved = 1 - reached.tokens_per_question / of_best.tokens_per_question
        fewer = f", {points(saved, '.0f')}% fewer"
    return (
        f"Of the policies with at least as many right answers as {best}, "
        f"«{what_if.cheapest_as_good}» takes fewest tokens: {points(reached.accuracy)}% at "
        f"{reached.tokens_per_question:,.0f}{fewer}. That is the "
        f"cheapest of {len(what_if.families)} in hindsight, and a difference that is not "
        "significant is not equality."
    )
