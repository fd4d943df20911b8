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
_CURRENCIES = {"$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "₫": "VND"}
_CODES = "BRL|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|JPY|KRW|MXN|NZD|PLN|SEK|SGD|TWD|USD|VND|ZAR"
_CLINICAL = "AUD|CAD|INR|NOK|THB"
"""Codes that are also clinical abbreviations (`INR 2.5`, `CAD 3 vessels`)."""
_CODE = rf"(?:\b(?:{_CODES})\b|\b(?:{_CLINICAL})(?=\s?[0-9][0-9,.']{{2,15}}[.,][0-9]{{2}}\b))"
_DOLLARS = "US|AU|BZ|CA|HK|MX|NT|NZ|RD|SG|TT|A|B|C|J|R|S"
_SIGN = rf"(?:(?:(?<![A-Za-z])(?:{_DOLLARS}|(?P<dollar>{_CODES}|{_CLINICAL})\s?))?\$|[€£₫]|{_CODE})"
"""Sign or code of a currency; letters before a dollar sign make it another dollar (`CA$`)."""
_BEFORE = r"(?<![-−0-9.,])(?<![0-9]['’])"
_NUMBER = rf"{_BEFORE}(?P<number>{NUMBER})(?![,.'’]?[0-9])"
_AFTER = (
    r"(?P<after>[-−–)]|(?:[kKmM]|\s?(?:CR|[mb]n|(?:thousand|million|billion|Mio|Mrd)\.?))(?!\w))?"
)
"""What makes an amount negative or a multiple."""
_MONEY = re.compile(
    rf"{_BEFORE}(?P<sign>{_SIGN})?\s?{_NUMBER}"
    # The sign of the next amount is not that of this one.
    rf"(?:\s?(?P<code>[$€£₫](?![0-9])|(?:{_CODES})\b|(?(sign)(?:{_CLINICAL})\b|(?!)))"
    rf"(?(sign)(?!\s?[0-9])))?{_AFTER}"
)
_LABELED = re.compile(
    rf"[^0-9]{{0,40}}?(?P<sign>{_SIGN})[\s:|)]{{1,4}}{_NUMBER}(?P<code>){_AFTER}[^0-9]*\Z"
)
"""The only number after a currency that stands in a label or in a cell of its own."""
_REMARK = re.compile(r"\b(?:of which|thereof|incl)", re.IGNORECASE)
"""What separates the total from an amount that is part of it."""
_BRACKETS = re.compile(r"\([^()0-9]*[0-9][^()]*(?:\)|\Z)")
"""An amount in brackets, which explains the total or repeats it."""
_NEGATIVE = re.compile(r"[:|\t]\s*\(\Z"), re.compile(r"\s*(?:[|\t]|\Z)")
"""What stands before and after an amount that is alone in brackets."""
_IN_BRACKETS = re.compile(r"[^()]*\)")
_HAS_MONEY = re.compile(rf"[$€£₫]|{_CODE}")
_NEXT_LINE = re.compile(
    rf"; (?=[^\W\d_])(?!{_CODE}|(?:incl?|including|with|gross|brutto)\b)", re.IGNORECASE
)
"""End of a line in a cell (see `table_rows`) before a line with a label of its own."""
_LONGEST_LINE = 400  # characters after a total; a longer line is not part of a bill
_STRUCK = re.compile(r"\[struck out: (?:[^\[\]]++|\[[^\[\]]*+\])*+\]")
"""Struck-out text, perhaps with brackets in it. A start without an end takes no time: the next `[`
that has no end stops it."""
_PARTS = (
    "vat|gst|hst|mwst|(?:sales )?tax(?:es)?|savings?|saved|discounts?|rebates?|credits?|tips?"
    "|shipping"
)
_TOTAL = re.compile(
    rf"\b(?:(?:after|incl?|incl?\.|including|plus|post|pre|with)[ -](?:{_PARTS})[ -]"
    rf"|(?P<before>sub[ -]|(?:{_PARTS})[ -]))?"
    r"(?:grand total|total due|total|amount due|balance due|sum claimed)\b"
    rf"(?P<of>\s(?:{_PARTS})\b(?![\s-](?:inc|excl|invoice|card|due)))?",
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
        if rest := _after_total(_STRUCK.sub("", line)):
            return _stated(rest)
    return None, ""


def _after_total(line: str) -> str:
    """Return the text after the last total that an amount follows, best outside of brackets."""
    found = ""
    end = len(line)
    for total in reversed(list(_TOTAL.finditer(line))):
        rest = line[total.end() : min(end, total.end() + _LONGEST_LINE)]
        end = total.start()
        if not (total["before"] or total["of"]) and _has_amount(rest):
            found = found or rest
            if not _IN_BRACKETS.match(rest):
                found = rest
                break
    without = _BRACKETS.sub(" ", found)
    return _own_line(without if _has_amount(without) else found, is_row=" | " in line)


def _has_amount(text: str) -> bool:
    return bool(_HAS_MONEY.search(text)) and any(one.isdecimal() for one in text)


def _own_line(rest: str, *, is_row: bool) -> str:
    """Return what follows a total without the next lines of a cell."""
    for end in re.finditer("; ", rest):
        is_end = is_row or _NEXT_LINE.match(rest, end.start())
        if is_end and _has_amount(rest[: end.start()]):
            return rest[: end.start()]
    return rest


def _stated(rest: str) -> tuple[Decimal | None, str]:
    """Return the amount after a total and its currency; None and "" if it is not clear."""
    found = [one for one in _MONEY.finditer(rest) if one["sign"] or one["code"]]
    total = found[0] if found else _LABELED.match(rest)
    if total is None:
        return None, ""
    for one in found[1:]:
        is_part = decimal_of(one["number"]) <= decimal_of(total["number"])
        if is_part and _REMARK.search(rest, total.end(), one.start()):
            break
        total = one
    before, behind = _NEGATIVE
    is_negative = total["after"] == ")" and bool(
        before.search(rest[: total.start()]) and behind.match(rest, total.end())
    )
    currency = _currency(total)
    if not currency or is_negative or total["after"] not in (None, ")"):
        return None, ""
    return decimal_of(total["number"]), currency


def _currency(amount: re.Match[str]) -> str:
    """Return the currency of an amount; empty if it is not known, or if there are two."""
    marks = {amount["dollar"] or amount["sign"], amount["code"]} - {None, ""}
    if len(marks) > 1:
        marks.discard("$")
    names = {_CURRENCIES.get(mark, mark if mark.isalpha() else "") for mark in marks}
    return names.pop() if len(names) == 1 else ""
