"""Fewer than ten questions: no significant difference, whatever the tests say.

The limit is that of docs/explanation/scoring.md. McNemar's exact p-value of six questions against
none is 2 / 2⁶ = 0.031, so that interval and test alone would claim a difference.
"""

from __future__ import annotations

from dataclasses import replace

from mdagents.mcp.results import runs_compared
from mdagents.scoring.audit.controls import compare_control
from mdagents.scoring.audit.text import significance_of
from mdagents.scoring.comparison import compare
from mdagents.scoring.ranking import rank_ranges, scores_of
from mdagents.scoring.rows import RunOutput
from tests.mdagents.scoring.made_up_runs import row, run_of


def all_answered(letter: str, questions: int) -> RunOutput:
    rows = [replace(row(letter, id_=f"q{n}"), content=n) for n in range(questions)]
    return replace(run_of(letter, rows), manifest={"options": {"peers": "noise"}})


def test_ranks_need_ten_questions() -> None:
    ranks = [
        rank_ranges([scores_of(all_answered(letter, questions).rows) for letter in "AB"])
        for questions in (9, 10)
    ]
    assert ranks == [[(1, 2), (1, 2)], [(1, 1), (2, 2)]]


def test_pairs_of_the_compare_tool_need_ten_questions() -> None:
    pairs = [
        runs_compared(compare([all_answered(letter, questions) for letter in "AB"])).pairs[0]
        for questions in (6, 10)
    ]
    assert [(pair.difference, pair.is_significant) for pair in pairs] == [(-1, False), (-1, True)]


def test_controls_need_ten_questions() -> None:
    few, enough = (
        compare_control(all_answered("A", questions), all_answered("B", questions), {})
        for questions in (6, 10)
    )
    assert few.mcnemar_p == 2 / 2**6
    assert significance_of([few]) == "No control differs significantly from the run."
    assert "noise −100.0 points" in significance_of([enough])
