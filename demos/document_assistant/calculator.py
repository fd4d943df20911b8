"""Calculator for expressions that a model writes: exact arithmetic and nothing else.

Python's `ast` cannot be used: it parses 0.1 as a binary float and has no percent sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction

LONGEST = 400
"""Maximum characters of an expression."""
DIGITS = 15
"""Significant digits of a result without a finite decimal form, such as 1/3."""

_DEEPEST = 40  # maximum nesting depth of parentheses
_MOST_DIGITS = 30  # maximum digits of a number, and of a result before its decimal point
_TOKEN = re.compile(
    r" *(?:(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?![\d.,])"
    r"|(?P<sign>[-+*/()%]|of\b))",
    re.ASCII,
)
_ALLOWED = "numbers, + - * / ( ) and %"


class CalculationError(ValueError):
    """The expression is not valid or has no result; the message is one line."""


def calculated(expression: str) -> tuple[Decimal, bool]:
    """Return the value of an expression, and whether it is rounded.

    Numbers may have a decimal point and commas between thousands (`4,200.50`). `12%` always means
    0.12, so `100 + 10%` is 100.1 and `12% of 4200` is 504. A result with a finite decimal form is
    exact; any other has `DIGITS` significant digits.

    Args:
        expression: Numbers, `+ - * / ( )` and `%`, at most `LONGEST` characters in one line.

    Raises:
        CalculationError: The expression is not valid, divides by zero, or its result is too large.
    """
    exact = _Parser(expression).value()
    value = _as_decimal(exact)
    return value, value != exact


def shown(value: Decimal) -> str:
    """Return a number in plain notation, without an exponent."""
    return f"{value:f}"


def _as_decimal(value: Fraction) -> Decimal:
    if abs(value) >= 10**_MOST_DIGITS:
        raise CalculationError(f"the result has more than {_MOST_DIGITS} digits")
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest == 1 and places <= _MOST_DIGITS:
        digits = value.numerator * 10**places // value.denominator
        return Decimal(digits).scaleb(-places, Context(prec=3 * _MOST_DIGITS))
    rounded = Context(prec=DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(f"{rounded.normalize(Context(prec=DIGITS)):f}")


class _Parser:
    """Recursive descent parser of expressions.

    sum = product {(+|-) product}; product = factor {(*|/|of) factor};
    factor = {+|-} (number | "(" sum ")") [%]; "of" may only follow a "%"
    """

    def __init__(self, expression: str) -> None:
        if len(expression) > LONGEST:
            raise CalculationError(
                f"the expression has {len(expression):,} characters; at most {LONGEST} are read"
            )
        self._tokens = [*_tokens(expression), ""]
        self._next = 0
        self._depth = 0

    def value(self) -> Fraction:
        if self._tokens == [""]:
            raise CalculationError(f"there is no expression: give {_ALLOWED}")
        value = self._sum()
        if self._peek():
            raise CalculationError(f"an operator is missing before {self._peek()!r}")
        return value

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _sum(self) -> Fraction:
        value = self._product()
        while self._peek() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while self._peek() in ("*", "/", "of"):
            if self._peek() == "of" and self._tokens[self._next - 1] != "%":
                raise CalculationError("'of' only comes behind a per cent, such as 12% of 4200")
            if self._take() in ("*", "of"):
                value *= self._factor()
            elif (divisor := self._factor()) == 0:
                raise CalculationError("division by zero has no result")
            else:
                value /= divisor
        return value

    def _factor(self) -> Fraction:
        sign = 1
        while self._peek() in ("+", "-"):
            sign = -sign if self._take() == "-" else sign
        value = sign * self._operand()
        if self._peek() == "%":
            self._take()
            value /= 100
        return value

    def _operand(self) -> Fraction:
        token = self._take()
        if token == "(":
            self._depth += 1
            if self._depth > _DEEPEST:
                raise CalculationError(f"parentheses are nested more than {_DEEPEST} deep")
            value = self._sum()
            self._depth -= 1
            if self._take() != ")":
                raise CalculationError("a parenthesis is not closed")
            return value
        if not token or token in ("+", "-", "*", "/", "%", ")", "of"):
            raise CalculationError(
                f"a number is missing {f'before {token!r}' if token else 'at the end'}"
            )
        return Fraction(token.replace(",", ""))


def _tokens(expression: str) -> Iterator[str]:
    text = expression.rstrip(" ")
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            wrong = text[at:].lstrip(" ")[:10]
            if wrong[0].isascii() and (wrong[0].isdigit() or wrong[0] in ".,"):
                raise CalculationError(f"{wrong!a} is no number; write it as 1234.5 or 1,234.5")
            raise CalculationError(f"{wrong[0]!a} is not allowed: only {_ALLOWED}")
        number = match["number"]
        if number and len(number) > _MOST_DIGITS + 10:
            raise CalculationError(f"a number has more than {_MOST_DIGITS} digits")
        yield number or match["sign"]
        at = match.end()
