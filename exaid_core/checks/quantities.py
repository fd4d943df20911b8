"""Parses the numbers and units in clinical text into a comparable form."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from operator import itemgetter

from exaid_core.checks.analytes import is_measured
from exaid_core.checks.markup import displayed
from exaid_core.checks.number_words import number_words
from exaid_core.checks.prescriptions import written_out
from exaid_core.checks.shorthand import shorthand
from exaid_core.checks.term_list import phrases
from exaid_core.checks.units import (
    NUMBER,
    UNITY,
    any_unit,
    canonical_number,
    canonical_unit,
    scale,
    spellings,
    unit_pattern,
)

_SUPERSCRIPTS = frozenset("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN_SPACES = frozenset("\u00a0\u2009\u202f")
_THREE_DIGITS = re.compile(r"[0-9]{3}(?![0-9])")
# İ is the only letter whose lower-case form is longer.
_LOOKALIKES = str.maketrans("−‐‑‒–—⁄×·’µİ٫٬،٪“”", '------/x.\'μI.,,%""')
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_OTHER_DIGIT = re.compile(r"\d")

# The patterns below run over the whole support of every summary. Each starts with the character
# that it searches for and looks behind afterwards, so that the engine can skip to it: ten times
# faster.

# Records: `"value": 7.2, "unit": "mmol/L"` of FHIR, `"dose_mg": 500`
_VALUE_AND_UNIT = re.compile(
    r"""(["'] ?: ?["']?[0-9.]+)["']?,\s{0,40}["'](?:units?|uom)["'] ?: ?["']([^"'\n]{1,20})["']"""
)
_UNIT_IN_KEY = re.compile(
    # not the second part of a unit: "dose_mg_per_kg", "level_ng_ml"
    r"(_(?<=[a-z0-9]_)(?<!per_)(?<!_[mnup]g_)(?<!_mcg_)(?<!_g_)(?<!_iu_)(?<!units_)(?<!mol_)(?<!meq_)"
    r"""(mg|mcg|g|kg|mL|cm|mm|mmHg|percent)["']? ?[:=] ?["']?[0-9]+(?:\.[0-9]+)?)"""
    r"(?![\w.%]|,[0-9]| ?[/–-] ?[0-9])",  # nor a thousand, a pressure or a range
    re.IGNORECASE,
)
_THOUSANDS = re.compile(
    r"[0-9](?<![0-9.,].)[0-9]{0,2}(?:(?:[,'][0-9]{3})+|(?: 000)+)(?![0-9]|,[0-9])"
)
_SEPARATORS = re.compile("[^0-9]")
# "**500** mg" in Markdown
_EMPHASIS = re.compile(
    r"(?:\*\*|__)(?:(?<=[0-9]..)(?![0-9])|(?<![0-9]..)(?=[0-9]))"  # not the power 10**9
    r"|`(?:(?<=[0-9]`)(?![0-9])|(?<![0-9]`)(?=[0-9]))"
)
_EVERY = re.compile(
    r"[qQ](?<!\w.) ?([0-9]+(?:-[0-9]+)?) ?"
    r"([hH](?:rs?)?|[hH]ours?|min(?:utes)?|d(?:ays)?|w(?:k|eeks)?|mo(?:nths)?)\b"
)
_EVERY_HOURS = re.compile(r"[qQ](?<![\w(;].) ?(4|6|8|12|24)(?![\w%]|[.,/-][0-9]| ?[aApP]\.?[mM]\b)")
# "x3 days", "BP90/60", "T38.5", "Na118", "Sat94%": a number that touches its name. A letter or two
# may be another name (T2, K1), unless the number is a usual value.
_TOUCHING = re.compile(
    r"[xX](?<![\w.].)(?=[0-9]{1,3} ?(?:h|hrs?|hours?|d|days?|wks?|weeks?|mos?|months?|doses?)\b)"
    r"|\b(?:(?:[SD]?BP|MAP|[SO]pO2|[Ss]ats?|LVEF|EF|[Ww]t|[Hh]t|HR|Temp|Hgb|Hct|INR|[Pp]lts?|WBC)"
    r"(?=[0-9]{2,3}(?![0-9])|[0-9]{1,2}\.[0-9])"
    r"|Na(?=1[0-9]{2}\b)|K(?=[1-9]\.[0-9]\b)|Cr(?=[0-9]{1,2}\.[0-9])|T(?=(?:3[3-9]|4[0-2])\.[0-9]))"
)
_POWER_OF_10 = re.compile(r"(?<=[0-9])(?: ?[xX*]? ?10[*eE]| 10\^)([0-9]{1,2})(?= ?/)")
# "32w4d", "32 4/7 weeks", "32+4 weeks", "32+4/40"
_GESTATION = re.compile(
    r"\b([1-4][0-9])(?: ?w ?([0-6]) ?d\b|(?: (?=./7)|\+)([0-6])(?:(?:/7)? ?(?:weeks?|wks?)|/40)\b)",
    re.IGNORECASE,
)
# "12.03.2024"
_DOTTED_DATE = re.compile(
    r"(?<![0-9.,])(0?[1-9]|[12][0-9]|3[01])\.(0?[1-9]|1[0-2])\.((?:19|20)[0-9]{2})(?![0-9]|\.[0-9])"
)
# The comma of "K 6,8" or of "pH 7,12", but not of "glucose 10,12"
_COMMA_OF_A_VALUE = re.compile(
    r",(?<=[0-9],)(?<![,.][0-9],)(?=[0-9](?:(?<![0-9][0-9],[0-9])[0-9])?(?![0-9]|[,.][0-9]))"
)
_LAST_DIGITS = re.compile(r"(?<![0-9.,])[0-9]{1,3}\Z")
_HEART_RATE = re.compile("HR[ :=]{0,2}[0-9]")  # no unit: "T 38.5 HR 110"
_BEFORE_NAME = re.compile("-[A-Z]{2}")
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# "3 (three) times", "one (1) tablet", "twice (2x)"
_IN_BRACKETS = re.compile(
    r"\((?:(?:(?<=[0-9]\()|(?<=[0-9] \())(?P<words>[a-zA-Z -]{3,30})"
    r"|(?:(?<=[a-zA-Z]\()|(?<=[a-zA-Z] \())(?P<digits>[0-9]{1,4}(?:\.[0-9]+)?)[xX]?)\) ?"
)
_LAST_NUMBER = re.compile(r"(?<![\w.,/-])(?:[0-9]+(?:\.[0-9]+)?|once|twice|thrice)(?= ?\Z)")
_TIMES = {"once": "1", "twice": "2", "thrice": "3"}
_LONGEST_NUMBER = 30
"""Characters of a number in words."""

_MEASURES = phrases(
    "kg, g, mg, ug, ng, pg, mol, mmol, umol, nmol, pmol, eq, meq, l, dl, ml, ul, m2, cm, mm, mmhg,"
    "kpa, °c, %"
)
"""Units before which a comma is decimal (`1,5 mg`), since it rarely separates a list there."""

_OVER = re.compile(r" ?/ ?| over | out of ")
_POWER = (
    r"(?: ?[x*] ?10 ?(?:\^ ?| )-?\d++| ?[x*] ?10(?:3|6|9|12)(?= ?/)|e-?\d++"
    r"|k(?![a-z])| (?:k|thou|th)(?= ?/)| ?mi?l?l?(?=/(?:[uμ]l|mcl|c?mm))"
    r"| (?:thousand|million|lakhs?)\b"
    r"| lacs?(?= ?/| per\b| cells\b)|(?<=\.\d) lacs?\b|(?<=\.\d\d) lacs?\b)?+"
)
_EXPONENTS = {"k": "e3", "t": "e3", "m": "e6", "l": "e5"}
"""Power of ten by the first letter of its word."""
_SIZE = re.compile(" ?(k|th|thou|thousand|mi?l?l?|million|lakhs?|lacs?)$")
_SIMPLE_FRACTIONS = {"1/2": "0.5", "1/4": "0.25", "3/4": "0.75"}
_LARGEST_EXPONENT = 15


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, a range or a fraction in a text, with its unit if it has one."""

    text: str
    """Quantity as written in the text."""
    start: int
    """Start index of the quantity in the text."""
    end: int
    """End index of the quantity in the text."""
    values: tuple[str, ...]
    """Number, or both ends of a range, without superfluous zeros: `0.5`, `120/80`."""
    unit: str | None
    """Canonical unit, such as `mg/kg`, without the `/day` of a daily dose; None without a unit."""
    certain: bool
    """Whether this is certainly a number; `a week` and, without a unit, `one` are not."""
    is_frequency: bool
    """Whether this is a number of times a day, such as `BID`, which has the value `12 h`."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The values in basic units, by which `500 mg` equals `0.5 g`."""
        return tuple(measure(value, self.unit) for value in self.values)


Measure = tuple[str | None, str]
"""Basic unit (None without a unit), and a value in it with ten significant digits."""


def measure(value: str, unit: str | None) -> Measure:
    """Return a value of a `Quantity` in the basic unit of its unit."""
    if unit is None:
        return None, value
    size = scale(unit)
    number = as_float(value)
    return size.dimension, value if number is None else f"{size.basic(number):.10g}"


def as_float(value: str) -> float | None:
    """Return a value of a `Quantity` as a number; None for a fraction or a ratio."""
    return None if "/" in value or ":" in value else float(value)


def as_share(percent: str) -> str:
    """Return a percentage as a share of 1: `0.4` for `40`."""
    return canonical_number(f"{float(percent) / 100:.6f}")


def plain(text: str) -> str:
    """Return `text` with a normalized spelling of numbers and signs.

    Characters are normalized (NFKC), except that exponents keep a `^`; dashes, fraction and
    multiplication signs and the digits of any script become ASCII; thousands separators are
    removed; a decimal comma becomes a point, and the points of a date slashes. A value of a record
    is followed by its unit. LaTeX, HTML and the Markdown of a number are as displayed. A number
    that touches its name is parted from it (`BP90/60`), and `q8h`, `8-hourly`, `5 mg BD`, `32w4d`
    and `10*3/uL` are written out. A number that repeats the one before it in brackets is removed
    (`3 (three) times`).
    """
    text = _EMPHASIS.sub("", displayed(text))
    text = _UNIT_IN_KEY.sub(r"\1 \2", _VALUE_AND_UNIT.sub(r"\1 \2", text))
    if not text.isascii():
        text = _NOT_ASCII.sub(_compatible, text)
    text = _THOUSANDS.sub(_joined, text)
    text = _decimal_comma().sub(".", text)
    text = _COMMA_OF_A_VALUE.sub(_point_in_a_value, text)
    text = _DOTTED_DATE.sub(r"\1/\2/\3", text)
    text = _IN_BRACKETS.sub(_unless_repeated, text)
    text = _TOUCHING.sub(r"\g<0> ", text)
    text = _POWER_OF_10.sub(r" x 10^\1", text)
    text = _GESTATION.sub(lambda weeks: f"{weeks[1]} weeks {weeks[2] or weeks[3]} days", text)
    text = _EVERY_HOURS.sub(r"every \1 hours", _EVERY.sub(r"every \1 \2", text))
    return written_out(text)


def quantities(text: InDigits) -> Iterator[Quantity]:
    """Yield the quantities in a text, in order.

    Digits that belong to a name (`SCA3`, `COVID-19`, `5-FU`) are not quantities. The sign of
    a number is ignored, because in clinical prose a dash before a number is rarely a minus.
    """
    for match in _pattern().finditer(text.digits.lower()):
        if _BEFORE_NAME.match(text.digits, match.end()):
            continue
        is_name = match["unit"] and _HEART_RATE.match(text.digits, match.start("unit"))
        unit = None if is_name else match["unit"] and canonical_unit(match["unit"])
        last = match.end("last" if match["last"] else "first") if is_name else match.end()
        start, end = text.span(match.start(), last)
        kind = text.kind(match.start())
        unit = None if unit == UNITY else unit
        values = [
            _canonical(value) for value in match.group("first", "middle", "side", "last") if value
        ]
        if unit:
            values = [_SIMPLE_FRACTIONS.get(value, value) for value in values]
        yield Quantity(
            text=text.original[start:end],
            start=start,
            end=end,
            values=tuple(values),
            unit=unit,
            certain=kind != "article" and (unit is not None or kind != "vague"),
            is_frequency=kind == "frequency",
        )


def numbers(text: str) -> set[str]:
    """Return the value of every run of digits, even within names: 3 in `SCA3`, 5 and 9 in `5e9`."""
    return set(map(canonical_number, _DIGITS.findall(text)))


class InDigits:
    """A text with its number words and shorthand in digits.

    Args:
        text: Text normalized by `plain`.
    """

    def __init__(self, text: str) -> None:
        self.original = text
        """The text as it was."""
        pieces: list[str] = []
        self._pieces: list[tuple[int, int, bool]] = []
        """Start of each piece in `digits` and in the original; whether it was replaced."""
        self._kinds: dict[int, str] = {}
        end = length = 0
        found = [*number_words(text), *shorthand(text)]
        for number in sorted(found, key=lambda number: (number.start, -number.end)):
            if number.start < end:
                continue
            self._pieces.append((length, end, False))
            length += number.start - end
            self._kinds[length] = number.kind
            self._pieces.append((length, number.start, True))
            length += len(number.digits)
            pieces += [text[end : number.start], number.digits]
            end = number.end
        self._pieces.append((length, end, False))
        self.digits = "".join([*pieces, text[end:]])
        """The text in digits."""

    def kind(self, start: int) -> str:
        """Return the kind (see `NumberWords`) of the number at an index of `digits`."""
        return self._kinds.get(start, "")

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text of a span in `digits`."""
        at, origin, replaced = self._pieces[self._piece(start)]
        first = origin if replaced else origin + start - at
        last = self._piece(end - 1)
        at, origin, replaced = self._pieces[last]
        return first, self._pieces[last + 1][1] if replaced else origin + end - at

    def _piece(self, place: int) -> int:
        return bisect_right(self._pieces, place, key=itemgetter(0)) - 1


def _compatible(match: re.Match[str]) -> str:
    # NFKC would merge these characters with the adjacent digits: 10⁹ would become 109, 1½ would
    # become 11/2, and the thin space in 1 000 would become an ordinary space.
    separator = ""
    if match.string[match.start() - 1 : match.start()].isdigit():
        if match[0][0] in _SUPERSCRIPTS:
            separator = "^"
        elif match[0] in _THIN_SPACES and _THREE_DIGITS.match(match.string, match.end()):
            return ","
        elif unicodedata.category(match[0][0]) == "No":
            separator = " "
    text = unicodedata.normalize("NFKC", match[0]).translate(_LOOKALIKES)
    return separator + _OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text)


def _joined(match: re.Match[str]) -> str:
    return _SEPARATORS.sub("", match[0])


def _point_in_a_value(comma: re.Match[str]) -> str:
    number = _LAST_DIGITS.search(comma.string, max(comma.start() - 4, 0), comma.start())
    return "." if number and is_measured(comma.string, number.start()) else ","


def _unless_repeated(match: re.Match[str]) -> str:
    """Return a number in brackets, or the space in its place if it repeats the number before it."""
    before = match.string[max(match.start() - _LONGEST_NUMBER, 0) : match.start()].lower()
    number = _LAST_NUMBER.search(InDigits(before).digits)
    repeat = match["digits"] or InDigits(match["words"].strip()).digits
    if not number or _TIMES.get(number[0], number[0]) != repeat:
        return match[0]
    return "" if before.endswith(" ") else " "


def _canonical(value: str) -> str:
    value = _OVER.sub("/", value)
    if "/" in value or ":" in value:
        return re.sub(NUMBER, lambda number: canonical_number(number[0]), value)
    value = _SIZE.sub(lambda size: _EXPONENTS[size[1][0]], value)
    mantissa, *exponents = re.split(r" ?[x*] ?10 ?\^? ?|e", re.sub(r"^10\^", "1e", value))
    number = canonical_number(mantissa)
    if not exponents:
        return number
    exponent = int(exponents[0])
    if abs(exponent) > _LARGEST_EXPONENT:
        return f"{number}e{exponent}"
    return canonical_number(f"{Decimal(number).scaleb(exponent):f}")


@cache
def _decimal_comma() -> re.Pattern[str]:
    # "0,5" and "1,5 mg", but not the list "1,2,3" or "1,5"
    return re.compile(
        r",(?<=[0-9],)(?<![,.][0-9],)(?:(?<=0,)(?<![0-9]0,)(?=[0-9])"
        rf"|(?=[0-9]{{1,2}} ?{any_unit(spellings(_MEASURES))}))",
        re.IGNORECASE,
    )


@cache
def _pattern() -> re.Pattern[str]:
    number = (
        r"(?:(?<=1)0\^-?\d++"
        rf"|(?:(?<=\d)\d*+(?:\.\d++)?+|(?<=\.)\d++)(?:(?:(?:{_OVER.pattern}|:){NUMBER})++|{_POWER}))"
    )
    return re.compile(
        # Not within a name: not after a letter, a digit and a point, or a letter and a hyphen. Not
        # a decade ("in the 120s").
        rf"(?!\d+0s\b)(?P<first>[\d.](?<![^\W_].)(?<!\d\..)(?<![a-z]-.){number})"
        rf"(?: ?x ?(?P<middle>{NUMBER})(?= ?x ?{NUMBER}[ -]?[cm]?m\b))?+"
        rf"(?: ?x ?(?P<side>{NUMBER})(?=[ -]?[cm]?m\b)"
        rf"| ?%? ?(?:-|\bto\b) ?(?P<last>{NUMBER}{_POWER}))?+"
        rf"(?:(?: {{0,2}}|-)(?P<unit>{unit_pattern()})|(?![a-z])|(?=(?:st|nd|rd|th)\b))",
        re.ASCII,
    )
