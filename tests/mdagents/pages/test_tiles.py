"""The four tiles of a run say the same as its ledger and its records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mdagents.pages.tiles import tiles_of_run
from mdagents.scoring.report import make_report
from tests.mdagents.scoring.made_up_runs import made_up, row, run_of


@pytest.mark.parametrize(
    ("paid", "note"),
    [
        (None, ""),
        (0, ""),  # all replies came from the cache
        (1284, ""),
        (1500, " · paid for 1,500"),
        (2_500_000, " · paid for 2.50 M"),
    ],
)
def test_tokens_that_were_paid_are_named_where_they_differ(paid: int | None, note: str) -> None:
    spent = {} if paid is None else {"input_tokens": paid, "output_tokens": 0}
    run = replace(made_up("run", "A" * 12, tokens=100), manifest={"spent": spent})
    (tile,) = (tile for tile in tiles_of_run(make_report(run), run) if tile.label == "Tokens")
    assert (tile.value, tile.note) == ("1,284", f"teams 1,200 · EXAID 84{note}")


def test_tokens_of_a_part_of_the_answers_are_no_sum() -> None:
    run = run_of("run", [row(id_=f"q{n}", tokens=100 if n % 2 else None) for n in range(20)])
    (tile,) = (tile for tile in tiles_of_run(make_report(run), run) if tile.label == "Tokens")
    assert (tile.value, tile.note) == ("-", "not recorded for 10 of 20 answers")


def test_a_file_without_a_cost_is_not_said_to_lack_a_price() -> None:
    run = replace(made_up("run", "A" * 12), manifest={})
    (tile,) = (tile for tile in tiles_of_run(make_report(run), run) if tile.label == "Paid")
    assert (tile.value, tile.note) == ("-", "not recorded")
