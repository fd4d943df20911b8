"""What the runs page says of the most accurate run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mdagents.live.runs import ListedRun, RunState
from mdagents.pages.leaderboard import Board, ranked
from mdagents.records.manifest import RunManifest, RunTotals
from mdagents.scoring.ranking import Scores

Right = Sequence[int]


def board(**right: Right) -> Board:
    """A board of runs; the runs of a data set, the name up to `_`, share their questions."""
    runs = [
        ListedRun(
            name,
            Path(name),
            RunManifest.model_construct(
                dataset=name.partition("_")[0],
                models={"expert": "openai/gpt-4o-mini"},
                options={"method": name},
                totals=RunTotals(questions=len(of_run), correct=sum(of_run)),
            ),
            RunState.FINISHED,
            None,
            0.0,
        )
        for name, of_run in right.items()
    ]
    scores = {
        name: Scores(name.partition("_")[0].encode(), tuple(of_run), (1,) * len(of_run))
        for name, of_run in right.items()
    }
    return Board(runs, ranked(scores))


@pytest.mark.parametrize(
    ("right", "who", "sure"),
    [
        (
            {"a_1": [1, 1, 0], "a_2": [0, 1, 0], "a_3": [0, 0, 1]},
            "3 of 3 runs of the same 3 questions of a share first place.",
            "Paired tests show no difference between them.",
        ),
        (
            {"a_1": [1] * 30 + [0] * 10, "a_2": [0] * 40},
            "gpt-4o-mini · a_1 is the most accurate of 2 runs of the same 40 questions of a.",
            "Paired tests show it to be better than each of the others.",
        ),
        (
            {"a_1": [1], "a_2": [1], "a_3": [0], "b_1": [1] * 20, "b_2": [1] * 19 + [0]},
            "2 of 2 runs of the same 20 questions of b share first place.",
            "Paired tests show no difference between them.",
        ),
        ({"a_1": [1, 0], "b_1": [1, 1]}, "", ""),
    ],
    ids=["tied", "better", "most questions", "alone"],
)
def test_the_lead_names_one_run_only_if_the_tests_do(
    right: dict[str, Right], who: str, sure: str
) -> None:
    assert board(**right).lead == (who, sure)
