"""Cells of spreadsheets, read as the sheet shows them, with all digits."""

from __future__ import annotations

import datetime
import io
import re
from decimal import Decimal
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font
from openpyxl.worksheet.formula import ArrayFormula

from demos.document_assistant.amounts import amount_of
from demos.document_assistant.calculator import calculated
from demos.document_assistant.figures import unfounded
from demos.document_assistant.number_formats import shown_number
from demos.document_assistant.sheet_rows import cell_text, sheet_rows

ACCOUNTING = '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)'


def rows_of(book: openpyxl.Workbook) -> list[str]:
    content = io.BytesIO()
    book.save(content)
    return [*sheet_rows(content, 9)]


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.475, "0.0%", "47.5%"),
        (0.475, "0%", "47.5%"),
        (0.07, "0.00%", "7.00%"),
        (1, "0%", "100%"),
        (-0.05, "0.0%;[Red]-0.0%", "-5.0%"),
        (47.5, '0.0"%"', "47.5%"),
        (1234.5, '#,##0.00 "€"', "1234.50 €"),
        (1234.567, "[$€-407] #,##0.00", "€ 1234.567"),
        (1200, "[$-409]#,##0", "1200"),
        (1234.5, ACCOUNTING, "$1234.50"),
        (-1234.5, ACCOUNTING, "-$1234.50"),
        (0, ACCOUNTING, "$0"),
        (-5, "#,##0;(#,##0)", "-5"),
        (0, '0;-0;"none"', "0"),
        (5, r"0\ mg", "5 mg"),
        (2_500_000, '0.0,,"M"', "2500000"),
        (123, "000000", "000123"),
        (0.00004, "General", "0.00004"),
        (0.00004, "0.00E+00", "0.00004"),
        (1e21, "General", "1000000000000000000000"),
        (3.2e-45, "General", "3.2 × 10^-45"),
        (3.2e-45, "0.0%", "3.2 × 10^-43%"),
        (0.1 + 0.2, "General", "0.3"),
        (100.0, "General", "100"),
        (0.5, "# ?/?", "0.5"),
        (5_551_234, "000-0000", "5551234"),
        (0.3, "[<1]0.0%;0", "0.3"),
        (0.3, "[<1]0.0%;0%", "30.0%"),
        (123456789012345678, "General", "123456789012345678"),
        (5, "@", "5"),
        (-500.25, "[$US$-409]#,##0.00", "US$-500.25"),
        (-500.25, '[$$-409]#,##0.00 "USD"', "$-500.25 USD"),
        (-5, '[Red]"credit of "0 "EUR"', "credit of -5 EUR"),
        (-5, '"loss" 0 €', "loss -5 €"),
        (-5, '0 "EUR";[Red]"credit of "0 "EUR"', "-5 EUR"),
        (-3, '0 "days";"minus "0 "days"', "-3 days"),
        (-0.05, "▲ 0.0%;▼ 0.0%", "-5.0%"),
        (-5, '"over "0;"under "0;"even"', "-5"),
        (0, '"over "0;"under "0;"even"', "0"),
        (0, '"over "0;"under "0;"even at "0', "even at 0"),
        (0, "▲ 0.0%;▼ 0.0%;–", "0.0%"),
        (-5, "+$0;-$0", "-$5"),
    ],
)
def test_numbers(value: float, number_format: str, text: str) -> None:
    assert shown_number(value, number_format) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.datetime(2026, 3, 5), "2026-03-05"),  # noqa: DTZ001 - as openpyxl reads it
        (datetime.datetime(2026, 3, 5, 13, 30), "2026-03-05 13:30:00"),  # noqa: DTZ001
        (datetime.time(0, 0), "00:00:00"),
        (datetime.timedelta(hours=26, minutes=5), "26:05:00"),
        (datetime.timedelta(seconds=-90), "-0:01:30"),
        (True, "True"),
        ("000123", "000123"),
        ("Meeting 2026-01-01 00:00:00", "Meeting 2026-01-01 00:00:00"),
    ],
)
def test_what_is_no_number(value: object, text: str) -> None:
    assert cell_text(value, None) == text


@pytest.mark.parametrize(
    ("value", "number_format", "expression"),
    [
        (0.475, "0.0%", "47.5% * 2"),
        (0.475, "0.0%", "0.475 * 2"),
        (0.00004, "General", "0.00004 * 2"),
        (1234.5, '#,##0.00 "€"', "1,234.50 * 2"),
        (1234.5, ACCOUNTING, "1234.5 * 2"),
        (0.0000001, "0E+00", "0.0000001 * 2"),
    ],
)
def test_a_number_can_be_calculated_with(value: float, number_format: str, expression: str) -> None:
    text = cell_text(value, None, number_format)
    assert unfounded(expression, [f"Rate | {text}", "twice: 2"]) == []
    assert calculated(expression)[0] == Decimal(str(value)) * 2


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["General", "0.00", "0%", "#,##0.00 €", "000", ACCOUNTING, "# ?/?"]),
)
def test_a_number_keeps_its_sign_and_has_no_exponent(value: float, number_format: str) -> None:
    text = shown_number(value, number_format)
    assert text.startswith("-") == (value < 0)
    assert "e" not in text.lower()


@given(st.text('0#?.,;%"[]$€_*- @E/', max_size=20))
def test_no_format_hides_a_number(number_format: str) -> None:
    assert re.search("0.?5|50", shown_number(0.5, number_format))


def test_the_total_of_a_spreadsheet_has_its_currency() -> None:
    total = cell_text(1234.5, None, '#,##0.00 "€"')
    assert amount_of(f"Total | {total}") == (Decimal("1234.50"), "EUR")


@pytest.mark.parametrize(
    "number_format",
    ["[$US$-409]#,##0.00", '"A$"0', '[$$-409]#,##0.00 "USD"', '[Red]"credit of "0 "EUR"',
     '"loss" 0 €', '0 €;[Red]"credit of "0 €', "[$€-407] #,##0.00", "$0;($0)"],
)  # fmt: skip
def test_a_negative_cell_is_no_total(number_format: str) -> None:
    assert amount_of(f"Total | {cell_text(-500.25, None, number_format)}") == (None, "")


def test_hidden_and_struck_cells() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Rent", 900, 999, None])
    sheet["B1"].font = Font(strike=True)
    sheet["C1"].number_format = sheet["D1"].number_format = ";;;"
    assert rows_of(book)[1:] == ["Rent | [struck out: 900] | (hidden text, which is not read)"]


def test_raised_lowered_and_struck_parts_of_a_cell() -> None:
    def part(text: str, **looks: Any) -> TextBlock:
        return TextBlock(InlineFont(**looks), text)

    high, low = {"vertAlign": "superscript"}, {"vertAlign": "subscript"}
    half = CellRichText("every 5", part("1", **high), "/", part("2", **low), " hours")
    assert cell_text(half, None) == "every 5 1/2 hours"
    price = CellRichText("Price ", part("100", strike=True), " 80")
    assert cell_text(price, None) == "Price [struck out: 100] 80"


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        (["Warfarin", "5 mg\n10 mg", "night"], "Warfarin | 5 mg; 10 mg | night"),  # lobehub#19635
        (["a\n\nb", "c | d"], r"a; b | c \| d"),
        (["5 _x00B5_g", "_x005F_x000D_", "_x00b5"], "5 µg | _x000D_ | _x00b5"),  # calamine#469
        (["first_x000D_\nsecond", "a_x000B_b_x0001_"], "first; second | ab"),
        (["_xD83D__xDE00_"], "\ud83d\ude00"),  # JSON joins the halves
    ],
)
def test_a_row_is_a_line_of_cells(cells: list[str], row: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(cells)
    assert rows_of(book)[1:] == [row]


def test_cells_in_a_font_of_signs() -> None:
    assert cell_text("þ", None, font="Wingdings") == "☑"
    assert cell_text(5, None, font="Wingdings") == "5"
    micro = CellRichText("50 ", TextBlock(InlineFont(rFont="Symbol"), "m"), "g")
    assert cell_text(micro, None, font="Arial") == "50 μg"
    assert cell_text(CellRichText("m", TextBlock(InlineFont(), "g")), None, font="Symbol") == "μg"


def test_an_array_formula_without_a_result_is_named() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = "rent"
    sheet["B1"] = ArrayFormula("B1", "=SUM(C1:C2)")
    assert "rent | (no stored result of =SUM(C1:C2))" in rows_of(book)


def test_an_exponent_in_a_cell_stays_one() -> None:
    raised = TextBlock(InlineFont(vertAlign="superscript"), "9")
    assert cell_text(CellRichText("150 x 10", raised, "/L"), None) == "150 x 10^9/L"
    lowered = TextBlock(InlineFont(vertAlign="subscript"), "2")
    assert cell_text(CellRichText("CO", lowered), None) == "CO2"


def test_a_spreadsheet_with_a_sheet_that_is_a_chart() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Gauze", 1250])
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1))
    book.create_chartsheet("Chart").add_chart(chart)
    assert rows_of(book) == ["\n# Sheet\n", "Gauze | 1250"]
