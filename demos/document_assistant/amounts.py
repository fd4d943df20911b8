"""Reads amounts of money as people of different countries write them."""

from __future__ import annotations

import re
from decimal import Decimal

_GROUPS = r"'’ \u00a0\u2009\u202f"
"""Marks between groups of three digits besides comma and point: apostrophes and spaces."""
NUMBER = (
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]{1,2})?"  # 1,250.00
    r"|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]{1,2}"  # 1.250,00
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,}"  # 1.250.000
    rf"|[0-9]{{1,3}}(?:[{_GROUPS}][0-9]{{3}})+(?:[.,][0-9]{{1,2}})?"  # 1'250.00, 1 250,00
    r"|[0-9]{1,30}(?:[.,][0-9]{1,2})?)"  # 1250, 1250.00, 1250,00
)
"""Pattern of a number. One point before three digits (`1.250`) is in none, as it is ambiguous."""
_GROUPED_BY_COMMA = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "₫": "VND"}
_CODE = r"USD|EUR|GBP|CHF|VND"
_BEFORE = r"(?<![-−0-9.,])(?<![0-9]['’])"
_MONEY = re.compile(
    rf"{_BEFORE}(?P<sign>[$€£₫]|\b(?:{_CODE})\b)?\s?"
    rf"{_BEFORE}(?P<number>{NUMBER})(?![,.'’]?[0-9])"
    rf"\s?(?P<code>[€£₫]|(?:{_CODE})\b)?"
)
_HAS_MONEY = re.compile(rf"[$€£₫]|\b(?:{_CODE})\b")
_LONGEST_LINE = 400  # characters after a total; a longer line is not part of a bill
_STRUCK = re.compile(r"\[struck out: (?:[^\[\]]++|\[[^\[\]]*+\])*+\]")
"""Struck-out text, perhaps with brackets in it. A start without an end takes no time: the next `[`
that has no end stops it."""
_TOTAL = re.compile(
    r"\b(?:grand total|total|amount due|balance due|total due|sum claimed)\b(?P<rest>.*)",
    re.IGNORECASE,
)


def decimal_of(number: str) -> Decimal:
    """Return the value of a text that matches `NUMBER`."""
    digits = re.sub(f"[{_GROUPS}]", "", number)
    is_grouped = _GROUPED_BY_COMMA.fullmatch(number) or digits.rfind(",") < digits.rfind(".")
    if is_grouped:
        digits = digits.replace(",", "")
    if "," in digits or digits.count(".") > 1:
        digits = digits.replace(".", "").replace(",", ".")
    return Decimal(digits)


def amount_of(text: str) -> tuple[Decimal | None, str]:
    """Return the total that a document states and its currency; None and "" if there is none.

    The total is the last amount with a currency after the last `total`, `amount due` or `balance
    due` in a line. Nothing is added up: a document without such a line has no total. Neither has a
    document whose amount is ambiguous (`1.234 EUR`) or negative. Struck-out text does not count.
    """
    for line in reversed(text.split("\n")):
        match = _TOTAL.search(_STRUCK.sub("", line))
        rest = match["rest"][:_LONGEST_LINE] if match else ""
        if _HAS_MONEY.search(rest) and any(character.isdecimal() for character in rest):
            found = [one for one in _MONEY.finditer(rest) if one["sign"] or one["code"]]
            if not found:
                break
            mark = found[-1]["sign"] or found[-1]["code"]
            return decimal_of(found[-1]["number"]), _CURRENCIES.get(mark, mark)
    return None, ""
