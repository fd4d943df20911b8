"""The calculator is exact, and whatever else it is given ends in a line."""

from __future__ import annotations

import random
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.document_assistant.calculator import DIGITS, CalculationError, calculated, shown

HOSTILE = [
    *("", " ", "\n", "1\n+1", "1\t+1", "1\r", "1;2", "\0", "1\0+1", "1 # one", "...", "\ud800"),
    *("9**9**9", "2**3", "2^10", "7//2", "7@2", "1<2", "1==1", "~1", "1|1", "1&1", "not 1"),
    *(
        "-" * 3000 + "1",
        "(" * 3000 + "1" + ")" * 3000,
        "1+" * 3000 + "1",
        "1/" * 300 + "0",
        "9" * 100_000,
    ),
    *(
        "(" * 100 + "1" + ")" * 100,
        "9" * 50,
        "*".join(["9" * 30] * 10),
        "1/" + "9" * 380,
        "1e999999",
    ),
    *(
        "1e5",
        "1E-5",
        "0x10",
        "0b1",
        "0o7",
        "1_000",
        "1j",
        "nan",
        "inf",
        "-Infinity",
        "NaN",
        "1.2.3",
    ),
    *("1.", "1..2", ".", "1,23", "1,000,00", "1,2,3", "1 2", "1 000", "(1)(2)", "2(3)", "(1", "1)"),
    *("()", ")", "1+", "*1", "1+*2", "%", "%5", "5%5", "50%%", "1/0", "0/0", "1/(1-1)", "1%/0%"),
    *(
        "１２",
        "٣+٤",
        "½",
        "²",
        "5−3",
        "3×4",
        "8÷2",
        "$5",
        "5€",
        "5 of 3",
        "12% off",
        "12% of",
        "of 12%",
        "12%*2 of 3",
        "1\u200b+1",
        "１+１",
    ),
    *(
        "__import__('os')",
        "().__class__",
        "abs(-1)",
        "lambda: 1",
        "(x:=5)",
        "f'{1}'",
        "[1]",
        "'a'*9",
    ),
    *("True", "None", "a", "a" * 100_000, "1 if 1 else 2", "print(1)", "{1}", "1,", ",1", "(1,2)"),
]


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_what_is_no_arithmetic_ends_in_a_line(expression: str) -> None:
    tracemalloc.start()
    with pytest.raises(CalculationError) as failure:
        calculated(expression)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    told = str(failure.value)
    assert 0 < len(told) < 120
    assert told.isascii()
    assert told.isprintable()
    assert most < 1_000_000, "bytes"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("4200 - (1200 + 0.12*4200)", "2496"),
        ("0.1 + 0.2", "0.3"),
        ("4,200 * 12%", "504"),
        ("12% of 4,200", "504"),
        ("1 + (2 + 10)% of 50%of 100", "7"),
        ("1,238,450.50", "1238450.5"),
        ("100 + 12%", "100.12"),
        ("(40 + 60)%", "1"),
        ("-5%", "-0.05"),
        ("--1", "1"),
        ("+-+1", "-1"),
        ("2 - -3", "5"),
        ("-0", "0"),
        ("1/8", "0.125"),
        ("10 / 2", "5"),
        (".5*4", "2"),
        ("1/3", "0.333333333333333"),
        ("200/3", "66.6666666666667"),
        ("1/3*3", "1"),
        ("1/1000000007", "0.000000000999999993"),
        ("2-2-2", "-2"),
        ("2/2/2", "0.5"),
        ("999999999999999999999999999999", "999999999999999999999999999999"),
        ("99999999999999.99 * 100", "9999999999999999"),
    ],
)
def test_results(expression: str, value: str) -> None:
    assert shown(calculated(expression)[0]) == value


def expression_of(chance: random.Random, depth: int) -> tuple[str, Fraction]:
    """Return a random expression and its value."""
    if depth == 0 or chance.random() < 0.25:
        whole, places = chance.randrange(10_000), chance.randrange(4)
        text = f"{whole:,}" if chance.random() < 0.3 else str(whole)
        if places:
            text += f".{chance.randrange(10**places):0{places}}"
        value = Fraction(text.replace(",", ""))
        return (f"{text}%", value / 100) if chance.random() < 0.1 else (text, value)
    sign = chance.choice("+-*/u")
    left, one = expression_of(chance, depth - 1)
    if sign == "u":
        return f"-({left})", -one
    right, other = expression_of(chance, depth - 1)
    if sign == "/" and other == 0:
        sign = "+"
    space = chance.choice(("", " "))
    values = {"+": one + other, "-": one - other, "*": one * other}
    value = values[sign] if sign in values else one / other
    return f"({left}){space}{sign}{space}({right})", value


@pytest.mark.sweep
def test_a_thousand_random_expressions_are_exact() -> None:
    chance = random.Random(19)
    done = exact = 0
    while done < 1000:
        text, value = expression_of(chance, 4)
        if len(text) > 400 or abs(value) >= 10**30:
            continue
        result = calculated(text)[0]
        done += 1
        if Fraction(result) == value:
            exact += 1
        else:
            assert abs(Fraction(result) - value) <= abs(value) * Fraction(1, 10 ** (DIGITS - 1))
            assert value.denominator.bit_count() > 1, "it has no end in decimals"
        assert "E" not in shown(result)
        assert Decimal(shown(result)) == result
    assert exact > 400


def _check_result_or_line(text: str) -> None:
    try:
        value = calculated(text)[0]
    except CalculationError as error:
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert value.is_finite()


@pytest.mark.sweep
@given(st.text(max_size=60))
def test_any_text_has_a_result_or_a_line(text: str) -> None:
    _check_result_or_line(text)


@given(st.text(alphabet="0123456789+-*/()%., ", max_size=60))
def test_any_arithmetic_has_a_result_or_a_line(text: str) -> None:
    _check_result_or_line(text)
