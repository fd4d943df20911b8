"""Verdicts with epochs: an interval and a test that point in opposite directions show nothing.

The interval is of the mean difference of answers (Miller 2024, arXiv 2411.00640), McNemar's exact
test of the number of questions, so that they can contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mdagents.scoring.audit.audit import audit
from mdagents.scoring.audit.controls import compare_control
from mdagents.scoring.audit.text import significance_of, verdict_of
from mdagents.scoring.comparison import compare
from mdagents.scoring.comparison_text import NO_DIFFERENCE, headline
from mdagents.scoring.ranking import rank_ranges, scores_of
from mdagents.scoring.report import make_report
from mdagents.scoring.rows import RunOutput, read_output
from mdagents.scoring.run_verdict import run_verdict
from mdagents.scoring.what_if import Difference
from tests.mdagents.scoring.made_up_runs import row, run_of
from tests.mdagents.scoring.result_records import ours, write

EPOCHS = range(1, 11)


def epochs_of(name: str, is_right: Callable[[int, int], bool], questions: int = 100) -> RunOutput:
    return run_of(
        name,
        [
            replace(row("A" if is_right(n, epoch) else "B", id_=f"q{n}", epoch=epoch), content=n)
            for n in range(questions)
            for epoch in EPOCHS
        ],
    )


# By answers, `team` loses 12 × 10 and gains 30 × 1 of 1,000: −9 points, −15.9 to −2.7. By
# questions, 30 speak for it and 12 against: p = 0.0079, twice the binomial tail of 12 of 42.
SINGLE = epochs_of("single", lambda n, epoch: n < 12 or n >= 42 or epoch <= 5)
TEAM = epochs_of("team", lambda n, epoch: n >= 12 and (n >= 42 or epoch <= 6))


def test_a_test_for_the_other_run_makes_no_run_better() -> None:
    comparison = compare([SINGLE, TEAM])
    (pair,) = comparison.blocks[0].pairs
    assert (pair.difference, pair.mcnemar_p) == pytest.approx((-0.09, 0.0079), abs=1e-4)
    assert pair.difference_high < 0
    assert (len(pair.wrong_to_right), len(pair.right_to_wrong)) == (30, 12)
    assert not pair.shows_difference(100)
    assert headline(comparison) == NO_DIFFERENCE


def test_a_test_for_the_other_run_gives_no_rank() -> None:
    assert rank_ranges([scores_of(SINGLE.rows), scores_of(TEAM.rows)]) == [(1, 2), (1, 2)]


def test_a_test_for_the_other_run_shows_no_control() -> None:
    control = compare_control(SINGLE, replace(TEAM, manifest={"options": {"peers": "noise"}}), {})
    assert significance_of([control]) == "No control differs significantly from the run."


def test_a_test_for_the_other_run_shows_no_policy() -> None:
    against = Difference(0.09, 0.027, 0.159, 0.0079, questions_better=12, questions_worse=30)
    assert not against.is_shown
    assert replace(against, questions_better=30, questions_worse=12).is_shown


def judged(question: int, epoch: int, first: str, decision: str) -> dict[str, Any]:
    opinions = [{"agent": f"e{n}", "round": 0, "answer": letter} for n, letter in enumerate(first)]
    return ours(f"q{question}", "A", decision, opinions=opinions, epoch=epoch)


def teams(helped: int, hurt: int, questions: int, epochs: int) -> RunOutput:
    """A team that helps at some questions in the first epoch, and hurts at others in all."""
    records = []
    for n in range(questions):
        for epoch in range(1, epochs + 1):
            is_helped, is_hurt = n < helped and epoch == 1, helped <= n < helped + hurt
            records.append(judged(n, epoch, "BBB" if is_helped else "AAA", "B" if is_hurt else "A"))
    return read_output(write(records))


def test_an_effect_by_questions_is_no_harm_by_answers() -> None:
    figures = audit(teams(30, 12, 100, 10))
    assert (figures.questions_better, figures.questions_worse) == (30, 12)
    assert figures.mcnemar_p == pytest.approx(0.0079, abs=1e-4)
    assert figures.net_high is not None
    assert figures.net_high < 0
    assert not figures.is_significant
    assert "No harm is shown." in verdict_of(figures)


@pytest.mark.parametrize("epochs", [5, 6], ids=["no net effect", "a net loss"])
def test_an_effect_by_questions_is_no_loss_of_answers(epochs: int) -> None:
    # Of questions, 10 are for the teams and 2 against (p = 0.0386); of answers, 10 and 2 × epochs.
    run = teams(10, 2, 40, epochs)
    changed = 10 + 2 * epochs
    assert run_verdict(make_report(run), {}, run.rows).sentence.endswith(
        f" right. The teams changed {changed} majorities, with no significant effect."
    )
