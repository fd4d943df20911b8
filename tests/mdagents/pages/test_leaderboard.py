"""The rows of the runs page, and what it says of the most accurate run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mdagents.live.runs import ListedRun, RunState
from mdagents.pages.leaderboard import Board, ranked
from mdagents.records.manifest import RunManifest, RunTotals, Spent
from mdagents.scoring.ranking import Scores

Right = Sequence[int]


def listed(name: str, right: Right, *, finished: bool = True, **manifest: Any) -> ListedRun:
    known: dict[str, Any] = {
        "dataset": name.partition("_")[0],
        "models": {"expert": "openai/gpt-4o-mini"},
        "options": {"method": name},
        "item_ids": [str(n) for n in range(len(right))],
        "invocations": [],
        "spent": Spent(),
        "totals": RunTotals(questions=len(right), correct=sum(right)),
    }
    state = RunState.FINISHED if finished else RunState.INTERRUPTED
    made = RunManifest.model_construct(**(known | manifest))
    return ListedRun(name, Path(name), made, state, None, 0.0)


def board(**right: Right) -> Board:
    """A board of runs; the runs of a data set, the name up to `_`, share their questions."""
    runs = [listed(name, of_run) for name, of_run in right.items()]
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
            "Paired tests show no significant difference between them.",
        ),
        (
            {"a_1": [1] * 30 + [0] * 10, "a_2": [0] * 40},
            "gpt-4o-mini · a_1 is the most accurate of 2 runs of the same 40 questions of a.",
            "Paired tests show it to be better than each of the others.",
        ),
        (
            {"a_1": [1], "a_2": [1], "a_3": [0], "b_1": [1] * 20, "b_2": [1] * 19 + [0]},
            "2 of 2 runs of the same 20 questions of b share first place.",
            "Paired tests show no significant difference between them.",
        ),
        ({"a_1": [1, 0], "b_1": [1, 1]}, "", ""),
    ],
    ids=["tied", "better", "most questions", "alone"],
)
def test_the_lead_names_one_run_only_if_the_tests_do(
    right: dict[str, Right], who: str, sure: str
) -> None:
    assert board(**right).lead == (who, sure)


def cells(run: ListedRun, *, is_ranking: bool = False) -> dict[str, str]:
    """Heading -> text of each cell of a run's row, as the page shows it."""
    parts = Board([run], {}, is_ranking).parts()
    (row,) = [part.html() for part in parts if part.into == "rows"]
    found = re.findall(r'<td data-label="(.*?)".*?>(.*?)</td>', row)
    return {label: re.sub("<.*?>", "", text) for label, text in found}


def test_a_row_tells_questions_from_epochs_and_routers_from_each_other() -> None:
    run: dict[str, Any] = {"item_ids": [str(n) for n in range(20)], "options": {"epochs": 3}}
    assert cells(listed("a_1", [1] * 60, **run))["questions"] == "20 × 3"
    stopped = cells(listed("a_1", [1] * 45, finished=False, **run))
    assert stopped["questions"] == "45 of 20 × 3, interrupted"
    assert cells(listed("a_1", [1] * 20, **run | {"options": {}}))["questions"] == "20"
    options = {"method": "mdagents", "difficulty": "adaptive", "router": "disagreement"}
    shown = cells(listed("a_1", [1], options=options))
    assert shown["method"] == "adaptive · router disagreement"


def test_a_rank_that_is_being_computed_is_not_shown_as_missing() -> None:
    assert cells(listed("a_1", [1]))["rank"] == "–"
    assert cells(listed("a_1", [1]), is_ranking=True)["rank"] == "…"
    assert cells(listed("a_1", [1], finished=False), is_ranking=True)["rank"] == "–"


def test_below_ten_questions_a_row_shows_counts_and_no_interval() -> None:
    few, enough = listed("a_1", [1] * 8 + [0]), listed("a_2", [1] * 9 + [0])
    assert (cells(few)["accuracy"], cells(enough)["accuracy"]) == ("8 of 9", "90.0%")
    assert [row.interval is None for row in Board([few, enough], {}).rows] == [False, True]
    totals = RunTotals(questions=27, correct=24, epochs=3, right={"3/3": 8, "0/3": 1})
    assert cells(listed("a_3", [], totals=totals))["accuracy"] == "24 of 27"
