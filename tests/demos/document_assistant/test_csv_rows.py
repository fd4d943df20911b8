"""Rows of CSV files as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from demos.document_assistant.csv_rows import csv_rows
from demos.document_assistant.figures import unfounded
from demos.document_assistant.uploads import Limits, UploadError
from tests.demos.document_assistant.conftest import read_now


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("month,visits\nJan,120\n", "month | visits\nJan | 120"),
        ("a;b\r\nx;1,50\r\ny;2,50", "a | b\nx | 1,50\ny | 2,50"),
        ("a\tb\nx, y\t1", "a | b\nx, y | 1"),
        ("a|b\nx|1,50", "a | b\nx | 1,50"),
        ("sep=;\na;b\n1;2", "a | b\n1 | 2"),
        ("a,b\rx,1", "a | b\nx | 1"),
        ('name,note\n"Doe, Ann","5"" tube\nat night"', 'name | note\nDoe, Ann | 5" tube; at night'),
        ('item,price\n5" tube,3\n"x,4', 'item | price\n5" tube | 3\n"x | 4'),
        ("a,b,\n,,\nx|y,1,", "a | b\n\nx\\|y | 1"),
        ("Visits in 2026\n\nmonth,visits\nJan,3", "Visits in 2026\n\nmonth | visits\nJan | 3"),
        # cpython#119123
        (
            "id;a;cost\n1;['345'];62\n4;['112', '112'];46",
            "id | a | cost\n1 | ['345'] | 62\n4 | ['112', '112'] | 46",
        ),
        ("Preis\n1,50\n2,50", "Preis\n1,50\n2,50"),
        ("1,250\n3,450", "1,250\n3,450"),
        ("item,price\nBed,7\nTotal,1,250.00 USD", "item | price\nBed | 7\nTotal,1,250.00 USD"),
        ('Due,$1,250.00\nBy,"June 5, 2026"', "Due,$1,250.00\nBy | June 5, 2026"),
        ("who,2025,2026\nAnn,120,350", "who | 2025 | 2026\nAnn | 120 | 350"),
        ('a,b\n"1,250",300,7', 'a | b\n"1,250",300,7'),
        ("Pain, nausea, fever.\n5 mg, then 10 mg.", "Pain, nausea, fever.\n5 mg, then 10 mg."),
        ("Overview", "Overview"),
        ("", ""),
        ("x," + "y" * 140_000, "x," + "y" * 140_000),
    ],
)
def test_the_rows_of_a_csv_file(text: str, rows: str) -> None:
    assert csv_rows(text) == rows


def test_numbers_in_neighboring_cells_are_known(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("month,visits,admissions\nJan,120,350\nFeb,3,450\n")
    read = read_now(tmp_path / "visits.csv", scope="s")
    assert read.text == "month | visits | admissions\nJan | 120 | 350\nFeb | 3 | 450"
    assert unfounded("120+350+450", [read.text]) == []


def test_the_total_of_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "bill.csv").write_text('item,price\nBed,"$1,000.00"\nTotal,"$1,250.00"\n')
    assert read_now(tmp_path / "bill.csv", scope="s").amount == 1250


@pytest.mark.parametrize(
    "text",
    ["item,price\nTotal,1,250.00 USD", "Sum, below\nTotal 1,25,000 USD", "a,b\nTotal,12,50 €"],
)
def test_no_total_from_a_number_that_a_comma_may_divide(tmp_path: Path, text: str) -> None:
    (tmp_path / "bill.csv").write_text(text)
    assert read_now(tmp_path / "bill.csv", scope="s").amount is None


def test_a_csv_file_is_as_long_as_its_text(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a,b,c,d,e\n")
    assert read_now(tmp_path / "long.csv", limits=Limits(characters=10), scope="s").text == (
        "a | b | c | d | e"
    )
    (tmp_path / "empty.csv").write_text(",,\n")
    with pytest.raises(UploadError, match="has no text"):
        read_now(tmp_path / "empty.csv", scope="s")
