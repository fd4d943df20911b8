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
_CURRENCIES = {"$": "USD", "US$": "USD", "USD$": "USD", "€": "EUR", "£": "GBP", "₫": "VND"}
_CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|SEK|SGD|THB|TWD|USD|VND"
    "|ZAR"
)
_SIGN = rf"(?:(?<!\w)(?:[A-Za-z]{{1,3}}|(?P<dollar>{_CODES})\s)?\$|[€£₫]|\b(?:{_CODES})\b)"
"""Sign or code of a currency; letters before a dollar sign make it another dollar (`CA$`)."""
_BEFORE = r"(?<![-−0-9.,])(?<![0-9]['’])"
_NUMBER = rf"{_BEFORE}(?P<number>{NUMBER})(?![,.'’]?[0-9])"
_AFTER = r"(?P<after>[-−–)]|\s?(?:CR|[kKmM]|[mb]n|(?:thousand|million|billion|Mio|Mrd)\.?)(?!\w))?"
"""What makes an amount negative or a multiple."""
_MONEY = re.compile(
    rf"{_BEFORE}(?P<sign>{_SIGN})?\s?{_NUMBER}"
    # The sign of the next amount is not that of this one.
    rf"(?:\s?(?P<code>[$€£₫](?![0-9])|(?:{_CODES})\b)(?(sign)(?!\s?[0-9])))?{_AFTER}"
)
_LABELED = re.compile(
    rf"[^0-9]{{0,40}}?(?P<sign>{_SIGN})[\s:|)]{{1,4}}{_NUMBER}(?P<code>){_AFTER}[^0-9]*\Z"
)
"""The only number after a currency that stands in a label or in a cell of its own."""
_REMARK = re.compile(r"\(|\b(?:of which|thereof|incl)", re.IGNORECASE)
"""What separates the total from an amount that is part of it."""
_HAS_MONEY = re.compile(rf"[$€£₫]|\b(?:{_CODES})\b")
_LONGEST_LINE = 400  # characters after a total; a longer line is not part of a bill
_STRUCK = re.compile(r"\[struck out: (?:[^\[\]]++|\[[^\[\]]*+\])*+\]")
"""Struck-out text, perhaps with brackets in it. A start without an end takes no time: the next `[`
that has no end stops it."""
_PARTS = (
    "vat|gst|hst|mwst|(?:sales )?tax(?:es)?|savings?|saved|discounts?|rebates?|credits?|tips?"
    "|shipping"
)
_TOTAL = re.compile(
    rf"\b(?P<before>sub[ -]|(?<!after.)(?<!incl..)(?:{_PARTS})[ -])?"
    r"(?:grand total|total due|total|amount due|balance due|sum claimed)\b"
    rf"(?P<of>\s(?:{_PARTS})\b(?!\s(?:incl|excl)))?",
    re.IGNORECASE,
)
"""A total, perhaps of a part only."""


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
    due` in a line, without amounts that it includes. Nothing is added up: a document without such a
    line has no total, nor has one with a total of taxes or discounts only. Neither has a document
    whose amount is ambiguous (`1.234 EUR`, `CA$ 5`), negative or in millions. Struck-out text does
    not count.
    """
    for line in reversed(text.split("\n")):
        rest = _after_total(_STRUCK.sub("", line))
        if _HAS_MONEY.search(rest) and any(character.isdecimal() for character in rest):
            return _stated(rest)
    return None, ""


def _after_total(line: str) -> str:
    for total in _TOTAL.finditer(line):
        if not (total["before"] or total["of"]):
            return line[total.end() : total.end() + _LONGEST_LINE]
    return ""


def _stated(rest: str) -> tuple[Decimal | None, str]:
    """Return the amount after a total and its currency; None and "" if it is not clear."""
    found = [one for one in _MONEY.finditer(rest) if one["sign"] or one["code"]]
    total = found[0] if found else _LABELED.match(rest)
    for one in found[1:]:
        if _REMARK.search(rest, found[0].end(), one.start()):
            break
        total = one
    if total is None or not (currency := _currency(total)):
        return None, ""
    is_in_brackets = total["after"] == ")" and rest[: total.start()].endswith("(")
    if is_in_brackets or total["after"] not in (None, ")"):
        return None, ""
    return decimal_of(total["number"]), currency


def _currency(amount: re.Match[str]) -> str:
    """Return the currency of an amount; empty if it is not known, or if there are two."""
    marks = {amount["dollar"] or amount["sign"], amount["code"]} - {None, ""}
    if len(marks) > 1:
        marks.discard("$")
    names = {_CURRENCIES.get(mark, mark if mark.isalpha() else "") for mark in marks}
    return names.pop() if len(names) == 1 else ""
