"""Numbers as people read them: rounded once, with a true minus, and without a negative zero."""

from __future__ import annotations

import pytest

from mdagents.pages.charts import Difference, forest_figure
from mdagents.scoring.comparison import compare
from mdagents.scoring.formatting import Table, chance_in_words, points
from mdagents.scoring.table_formats import as_latex, unknown_to_pdflatex
from tests.mdagents.scoring.made_up_runs import made_up


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        # Rounded by hand; by way of one decimal, the first three were 0, 2 and 46.
        (0.0055, ".0f", "1"), (0.0145, ".0f", "1"), (0.45455, ".0f", "45"), (0.615, ".1f", "61.5"),
        (-0.0004, ".1f", "0.0"), (-0.0004, "+.1f", "+0.0"), (-0.0006, "+.1f", "−0.1"),
        (0.0004, "+.1f", "+0.0"), (0.2, ".3g", "20"), (1 / 3, ".3g", "33.3"),
    ],
)  # fmt: skip
def test_points_are_rounded_once(value: float, form: str, text: str) -> None:
    assert points(value, form) == text


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.25, "25%"), (1 / 3, "33.3%"), (1 / 12, "8.3%"), (0.1, "10%"), (0.02, "2%")],
)
def test_chance_has_the_decimal_of_the_accuracy_beside_it(chance: float, text: str) -> None:
    assert chance_in_words(chance) == f"chance {text}"


def test_a_forest_plot_shows_no_negative_zero() -> None:
    # One of 4,000 questions differs: −0.025 points.
    comparison = compare([made_up("one", "A" * 4000), made_up("two", "A" * 3999 + "B")])
    (pair,) = comparison.blocks[0].pairs
    assert pair.difference == pytest.approx(-1 / 4000)
    drawn = forest_figure("one", [Difference("two", pair, 1, is_significant=False)]).drawings()
    assert "+0.0 points (95% interval −0.1 to +0.1)" in drawn


def test_latex_rows_that_begin_with_a_bracket_or_a_star_are_no_arguments() -> None:
    table = Table(["[n]", "a"], [["[a] one", "[1]"], ["* best", "*"], ["plain", "[2]"]], title="T")
    assert as_latex(table).splitlines()[4:10] == [
        r"\toprule", r"{}[n] & a \\", r"\midrule",
        r"{}[a] one & [1] \\", r"{}* best & * \\", r"plain & [2] \\",
    ]  # fmt: skip


def test_a_latex_row_that_begins_with_a_blank_and_a_bracket_is_no_argument() -> None:
    table = Table(["n", "a"], [[" [a] one", "1"], ["\n* best", "2"], ["", "[3]"]], title="T")
    assert as_latex(table).splitlines()[7] == r"{} [a] one & 1 \\"
    assert r"{}" + "\n" + r"* best & 2 \\" in as_latex(table)
    assert as_latex(table).splitlines()[10] == r" & [3] \\"


@pytest.mark.parametrize(
    ("text", "latex", "unknown"),
    [
        ("≥65 years, ≤ 5 μg", r"$\geq$65 years, $\leq$ 5 $\mu$g", ""),  # jgm/pandoc#8183
        ("β-blocker, 5 µg", r"$\beta$-blocker, 5 µg", ""),
        ("CO₂, Ca²⁺, 10⁻⁹", r"CO$_2$, Ca²$^+$, 10$^-$$^9$", ""),
        ("cafe\u0301 Đỗ «ą» “x” 5 °C", "café Đỗ «ą» “x” 5 °C", "ỗ"),
        ("1\u202f000", r"1\,000", ""),
        ("5′ end", "5$'$ end", ""),  # https://tex.stackexchange.com/questions/538395
        ("Ħamrun, 模型 2, 模", "Ħamrun, 模型 2, 模", "Ħ型模"),
    ],
)
def test_latex_has_commands_for_what_pdflatex_does_not_know(
    text: str, latex: str, unknown: str
) -> None:
    written = as_latex(Table([text, "a"], [[text, "1"]], title=text)).splitlines()
    assert written[2] == rf"\caption{{{latex}}}"
    assert written[5] == rf"{latex} & a \\"
    assert written[7] == rf"{latex} & 1 \\"
    assert unknown_to_pdflatex("\n".join(written)) == unknown
