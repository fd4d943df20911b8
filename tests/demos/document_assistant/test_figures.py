"""Numbers in texts, and which of them a calculation may use."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.document_assistant.figures import figures, only_figures_of, unfounded


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It cost $1,238,450 in March.", ["1238450"]),
        ("12 % of 4,200, or 12.5 percent", ["12", "0.12", "4200", "12.5", "0.125"]),
        ("2 million and 3k", ["2", "2000000", "3", "3000"]),
        ("1 234 567.5 pieces", ["1234567.5"]),
        ("CHF 1'250.00, then 1 250,50 or 1.250,75", ["1250.00", "1250.50", "1250.75"]),
        (".5 and 0.50", ["0.5"]),
        ("version v2 of doc_42", []),
        ("no numbers, not even ３ or ½", []),
    ],
)
def test_the_numbers_of_a_text(text: str, found: list[str]) -> None:
    assert figures(text) >= {Decimal(one) for one in found}
    if not found:
        assert figures(text) == set()


def test_numbers_that_nobody_gave() -> None:
    given_texts = ["revenue is 4,200 and fixed costs 1200", "plus 12% of revenue"]
    assert unfounded("4200 - (1200 + 0.12*4200)", given_texts) == []
    assert unfounded("4,200 - 1200 - 12% * 4200", given_texts) == []
    assert unfounded("4200 - 1300", given_texts) == ["1300"]
    assert unfounded("4200 * 12 / 100", given_texts) == [], "months, and per cent"
    assert unfounded("(4200 + 1200 + 4200) / 3", given_texts) == [], "the mean of three"
    assert unfounded("(4200 + 1200) / 3", given_texts) == ["3"]


def test_a_formula_has_no_number_of_its_own() -> None:
    assert only_figures_of("margin = revenue - cost", [])
    assert only_figures_of("4,200 less 504", ["4200 - 504", "3696"])
    assert not only_figures_of("4,200 less 505", ["4200 - 504", "3696"])


@given(st.text())
def test_any_text_has_numbers_that_are_finite(text: str) -> None:
    assert all(number.is_finite() and number >= 0 for number in figures(text))


@given(st.decimals(min_value=0, max_value=10**12, places=2))
def test_a_number_is_found_as_it_is_usually_written(number: Decimal) -> None:
    for text in (f"{number:f}", f"{number:,}", f"USD {number:,} in all"):
        assert number in figures(text)
