"""Reads amounts of money as people of different countries write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise, takewhile

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
_CODE = (
    rf"(?:\b(?:{_CODES})(?![^\W\d])|\b(?:{_CLINICAL})(?=\s?[0-9][0-9,.']{{2,15}}[.,][0-9]{{2}}\b))"
)
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
_BRACKETS = re.compile(r"\([^()0-9]*[0-9][^()]*(?:\)|\Z)")
"""An amount in brackets, which explains the total or repeats it."""
_NOTES = re.compile(r"\([^()]*\)")
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
_TAXES = "vat|gst|hst|mwst|(?:sales )?tax(?:es)?"
_PARTS = (
    rf"{_TAXES}|savings?|saved|discounts?|rebates?|credits?|tips?|shipping|deductions?"
    "|adjustments?|allowances?|write-?offs?|withheld|withholdings?|earnings|payments"
    "|refund(?:s|ed)?|interest|deposits?"
)
"""What is a part of a bill or has been paid."""
_COUNTS = "cash|change|tendered|hours|days|minutes|weight|quantity|qty|items|units|pages"
"""What is counted, weighed or handed over next to a bill."""
_TOTAL = re.compile(
    rf"\b(?:(?:after|incl?|incl?\.|including|plus|post|pre|with)[ -](?:{_PARTS})[ -]"
    rf"|(?P<before>(?:sub|{_PARTS}|{_COUNTS}|minimum|page|prior|previous|last|past|line|ytd)[ -]"
    r"|sub))?"
    r"(?:(?P<due>grand total|(?:total )?(?:amount (?:due|owed|payable)|balance due)|total due"
    r"|net pay|(?<!if )you owe|patient balance|pay this amount)"
    r"|total|sum claimed|(?P<share>patient responsibility))\b"
    r"(?:(?P<low>\s(?:ex|excl?|excluding|before|paid|(?:current )?charges|billed|allowed"
    r"|net(?! (?:pay|(?:amount |balance )?(?:due|owed|payable))\b))\b\.?)"
    r"|(?P<of>(?:\s(?!after|before|ex|in[ck](?:l|\b)|less|minus|net|plus|with)[a-z]+){0,2}?"
    rf"\s(?:(?:{_PARTS})\b(?![\s-](?:inc|excl|invoice|card|due)))"
    rf"|\s(?:{_COUNTS}|includes|contains|last|previous|prior)\b))?",
    re.IGNORECASE,
)
"""A total, perhaps of a part only, or of less or more than what is due: `Total net`, `Total
charges`, the share of a patient."""
_INCLUDED = re.compile(
    r"\b(?:after|before|ex|excl|excluding|incl?|including|inclusive|inkl|less|minus|plus|with"
    rf"|without)\b\.?[ -](?:of )?(?:[0-9.,]{{1,6}}\s?%\s)?(?:{_PARTS})\b"
    rf"|\b(?:{_PARTS})[ -](?:in[ck]|excl)",
    re.IGNORECASE,
)
"""Words which say that a part is in a total, or is not."""
_OTHER = re.compile(
    rf"(?:[,;:|]|[0-9]%?)\s{{0,3}}(?:[^\W\d_]+\s){{0,2}}?(?:{_PARTS}|cash|change|fees?|paid|payment)\b"
    r"|(?:\A|[^\W\d_]{5})[.!?]\s+[^\W\d_]"
    r"|(?<![0-9.,/-])[0-9]+[.,][0-9]{2}(?![0-9.,/-]|\s?%)",
    re.IGNORECASE,
)
"""What separates a total from an amount of something else: the name of it, the end of a sentence,
or an amount without a currency."""
_RATE = re.compile(r"[0-9]\s?(?:@|[x×*]|at)\s*\Z", re.IGNORECASE), re.compile(r"\s?[x×*]\s?[0-9]+")
"""What stands before and after the price of one of many."""
_RANGE = re.compile(r"\s(?:to|or|and|of)\s", re.IGNORECASE)
"""What stands between two amounts of which either may be the total."""
_MORE = re.compile(
    rf"\b(?:(?:after|before|plus|with|without)\s(?:{_TAXES})|(?:ex|in)[ck]l(?:uding|\b)"
    r"|net|netto|gross|brutto|ttc|if paid)\b",
    re.IGNORECASE,
)
"""Words before a total that is larger than the one before them."""
_BROKEN = (
    re.compile(r"(?:\A|[^0-9])[0-9]{1,3}[.,]?\s{1,2}\Z"),
    re.compile(
        r"\s{1,2}[.,]?[0-9]{2}(?![0-9]*\s[^\W\d_]{3})|\s[.,]\s?[0-9]|[.,]\s{1,2}[0-9]{2}\s*\Z"
        r"|[.,]?\s{1,2}[.,]?[0-9]{1,3}(?:[ .,]{1,2}[0-9]{1,3})*[.,]\s?[0-9]"
    ),
)
"""Digits before and after a number that are parts of it, as some PDF files space them."""
_LABEL = re.compile(r"[^0-9]{1,60}")
"""A line that may be the label of an amount below it."""
_DATE = re.compile(r"\s+[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2}|\s+(?:19|20)[0-9]{2}(?![0-9.,])")
_CENTS = re.compile(r"[.,][0-9]{2}(?![0-9.,])")


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

    The total is the amount with a currency after the last `total`, `amount due` or `balance due`:
    the first one, or the last of a row of columns if it is the sum of the others. Nothing is added
    up: a document without such a line has no total, nor has one with a total of taxes, discounts,
    payments or hours only. Neither has a document whose amount is ambiguous (`1.234 EUR`, `CA$ 5`,
    `$12 50.00`), negative or in millions. Struck-out text does not count.
    """
    lines = [_STRUCK.sub("", line) for line in text.split("\n")]
    less = ""
    for at in reversed(range(len(lines))):
        rest, is_less = _after_total(lines[at])
        if not rest:
            rest, is_less = _on_next_line(lines, at), False
        if rest and not is_less:
            return _stated(rest)
        less = less or rest
    return _stated(less)


def _after_total(line: str) -> tuple[str, bool]:
    """Return the text after the total of a line, and whether it is of less than all.

    Of several totals that an amount follows, it is one outside of brackets, best the whole one, and
    best what is due.
    """
    found: dict[tuple[bool, bool, bool], str] = {}
    if not _has_amount(line):
        return "", False
    end = len(line)
    for total in reversed(list(_TOTAL.finditer(line))):
        rest = line[total.end() : min(end, total.end() + _LONGEST_LINE)]
        end = total.start()
        if not (total["before"] or total["of"]) and _has_amount(rest):
            is_low = bool(total["low"] or total["share"])
            rank = (not _IN_BRACKETS.match(rest), not is_low, bool(total["due"]))
            found.setdefault(rank, rest)
    if not found:
        return "", False
    best = max(found)
    without = _BRACKETS.sub(" ", found[best])
    rest = without if _has_amount(without) else found[best]
    return _own_line(rest, is_row=" | " in line), not best[1]


def _on_next_line(lines: Sequence[str], at: int) -> str:
    """Return the text after a total that stands in a line of its own, with the amount below it.

    It is not clear whose the amounts are if there are two.
    """
    if not _LABEL.fullmatch(lines[at]):
        return ""
    below = [*filter(str.strip, lines[at + 1 : at + 6])][:2]
    amounts = [*takewhile(_is_amount, below)]
    total = _TOTAL.search(lines[at]) if amounts else None
    if not total or any(total.group("before", "of", "low", "share")):
        return ""
    return f"{lines[at][total.end() :]} {amounts[0]}" if len(amounts) == 1 else "?"


def _is_amount(line: str) -> bool:
    rest = re.sub(_CODE, "", line)
    is_money = rest != line or _HAS_MONEY.search(line) or _CENTS.search(line)
    return bool(is_money) and not any(map(str.isalpha, rest)) and any(map(str.isdecimal, rest))


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
    total = _chosen(rest, found) if found else _LABELED.match(rest)
    if total is None or _is_broken(rest, total):
        return None, ""
    before, behind = _NEGATIVE
    is_negative = total["after"] == ")" and bool(
        before.search(rest[: total.start()]) and behind.match(rest, total.end())
    )
    currency = _currency(total)
    if not currency or is_negative or total["after"] not in (None, ")"):
        return None, ""
    return decimal_of(total["number"]), currency


def _chosen(rest: str, found: Sequence[re.Match[str]]) -> re.Match[str] | None:
    """Return the amount of the total; None if it is not clear which it is."""
    if _OTHER.search(_INCLUDED.sub("", rest[: found[0].start()])):
        return None
    total = found[0]
    before, behind = _RATE
    times = behind.match(rest, total.end())
    is_rate = is_unclear = bool(times or before.search(rest[: total.start()]))
    row = [decimal_of(total["number"])]
    is_row = True
    for last, one in pairwise(found):
        between = rest[times.end() if times and last is total else last.end() : one.start()]
        value = decimal_of(one["number"])
        is_more = value > decimal_of(total["number"])
        if between.rstrip().endswith("=") or (is_more and _MORE.search(between)):
            total, is_unclear, row = one, False, [value]
        elif _RANGE.fullmatch(between):
            is_unclear = True
        elif any(map(str.isalpha, _NOTES.sub("", between))):
            is_row = False
            row.append(value)
        else:
            # The last of several columns is the whole if it is their sum, or that of all pieces.
            is_sum = value == sum(row) and (is_row or len(row) > 1)
            is_whole = is_sum or (is_rate and is_more)
            if is_row or is_sum:
                is_unclear = not is_whole or _currency(one) != _currency(total)
                total = one if is_whole else total
            row.append(value)
    return None if is_unclear else total


def _is_broken(rest: str, total: re.Match[str]) -> bool:
    """Return whether an amount is one piece of a number with spaces in it."""
    before, behind = _BROKEN
    number = total["number"]
    at = total.end("number")
    if not total["sign"] and before.search(rest[: total.start("number")]):
        return True
    if total["code"] or _DATE.match(rest, at):
        return False
    after = behind.match(rest, at)
    return after is not None and not (_CENTS.search(number) and after[0].strip().isdecimal())


def _currency(amount: re.Match[str]) -> str:
    """Return the currency of an amount; empty if it is not known, or if there are two."""
    marks = {amount["dollar"] or amount["sign"], amount["code"]} - {None, ""}
    if len(marks) > 1:
        marks.discard("$")
    names = {_CURRENCIES.get(mark, mark if mark.isalpha() else "") for mark in marks}
    return names.pop() if len(names) == 1 else ""
