"""Finds vital signs and laboratory values that alone indicate a danger to life.

The words around the numbers are English: `words/en/vital_signs.txt`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from exaid_core.checks.assertion import ARROW
from exaid_core.checks.cue_files import any_of, read_cues
from exaid_core.checks.cue_finder import CueFinder, Found
from exaid_core.checks.spoken_values import in_digits

_APART = r"[^\w,;:.!?\n]+"  # between words of a phrase
_LONGEST_GAP = 300
"""Maximum number of characters between a name and the first digit behind it."""

_NUMBER = r"\d{1,3}(?:\.\d+|,\d{1,2}(?!\d))?"
_UNIT = r"(?:%|mm ?hg|mmol/l|meq/l|bpm|/min)"
_OF_A_KEY = (  # "spo2_percent": 74, "gcs_total": 5, but not "respiratory_rate_score": 3
    r"(?:(?:(?:(?<=o2)|(?<=sat)|(?<=sats)|(?<=saturation))_(?:percent|pct)"
    r"|(?:(?<=gcs)|(?<=coma_scale)|(?<=coma_score))_(?:total|score)"
    r"|_(?:mm_?hg|bpm|rpm|per_min(?:ute)?|mmol_?l|meq_?l))(?!\w))"
)
# The number is a time, a dose, or part of a hazard ratio.
_NO_VALUE = (
    r"(?!\s?-?\s?(?:secs?|seconds?(?! degree)|min(?:s|utes?)? (?:later|ago|after|before|into)|hrs?"
    r"|hours?|days?|weeks?|months?|y(?:ea)?rs?|y/?o|mg|mcg|leads?|doses?)\b"
    r"|-\d\d?\s(?:hours|days|weeks|months|years)\b|\s?\(\d\d\s?% ?ci)"
)


_SPOKEN_REACH = 70
"""Number of characters after a name that are searched for spoken values."""

_DIGIT = re.compile(r"\d")
_LINE = re.compile(r"[^\n]+")
_ROW = r"[^|\t\n]*[|\t][^\n]*"  # of cells between bars or tabs
_Cell = tuple[int, int]  # its start and end in the text
_Row = Sequence[_Cell]
_TABLE = re.compile(rf"^(?P<header>{_ROW})\n(?P<rows>(?:{_ROW}(?:\n|\Z))+)", re.MULTILINE)
_PAIRED = re.compile(  # "Na/K 128/6.8"
    rf"(?<![\w/+])(?P<names>[a-z][\w+]{{0,20}}(?:\s?/\s?[a-z][\w+]{{0,20}}){{1,4}})\s?[:=]?\s?"
    rf"(?P<values>{_NUMBER}%?(?:\s?/\s?{_NUMBER}%?){{1,4}})(?!\s?/|[\d.]*\d)",
    re.IGNORECASE,
)
_VALUE_IN_HEADER = re.compile(r"\b\d")  # then it is no header
_OF_GRADES = re.compile(
    r"\b(?:severity|class|grade|stage|points?|m?news\d?|mews|pews|triggers?|thresholds?|criteri(?:a|on)"
    r"|limits?|alarms?|stop|hold)\b|(?:^|[|\t])[\s*_]*score\b|^[\s|*_]*(?:goals?|targets?)\b",
    re.IGNORECASE,
)
_OF_NO_PATIENT = re.compile(
    r"[\s|]*[*_]*(?:goals?|targets?|normal|ref\b|reference|limits?|range|alarms?|thresholds?)",
    re.IGNORECASE,
)
_PATIENTS = re.compile(
    r"[\s|*_]*(?:beds?|patients?|pts?|names?|rooms?|cases?|mrn|id)\b", re.IGNORECASE
)
_AIM = re.compile(r"\b(?:goals?|targets?)\b", re.IGNORECASE)
_CLOCK = re.compile(r"[\s*_]*(?P<hours>\d\d(?=\d\d(?![\d/.%]))|\d\d?(?=:)):?(?P<minutes>\d\d)")
_LIMIT = re.compile(r"[\s*_]*[<>≤≥]")
_RANGE = re.compile(r"[\s*_]*\d+\s?[–-]\s?\d")

_DOSE = r"(?:ml|l|mcg|mg|g|units?)\b"
# "10 puffs", "0.5 amp", but "SpO2 92 → 72 nebs given", "pH 7.4 → 6.9 amp of bicarbonate given"
_PIECES = r"(?<![2-9]\d)(?<![1-9]\.\d)\s?(?:puffs?|nebs?|amps?)\b"
_GIVEN = re.compile(  # oxygen or a dose, not the sign: "currently 40% FiO2"
    r"\s?%?\s?(?:(?:fi ?o2|o2(?! sat)|oxygen(?! sat)|venturi|venti|hfnc|(?:face ?)?mask)\b"
    r"(?!\W{0,2}\d)"
    rf"|{_DOSE})",
    re.IGNORECASE,
)

_DATE = r"[0-3]?\d/[0-3]?\d/(?:19|20)?\d\d(?!\d)"
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)\b"  # "Sat 22 Nov"


@dataclass(frozen=True, slots=True)
class _VitalSign:
    """A measurement that is dangerous in the half-open range from `least` to `bound`."""

    least: float
    bound: float
    too_low: bool = True
    """Whether the threshold is `bound` rather than `least`; the other limits plausible values."""
    tail: str = ""
    """Regular expression for the text after the value."""
    is_pair: bool = False
    """Whether the form of the value (`70/40`) alone tells that a number is one."""
    is_percentage: bool = False
    """Whether a value up to 1.0 is a fraction (`0.74`)."""

    def value(self, number: str) -> float:
        """Return the value of a number in the unit of the thresholds."""
        value = float(number.replace(",", "."))
        return 100 * value if self.is_percentage and "." in number and value <= 1 else value

    def is_dangerous(self, reading: re.Match[str]) -> bool:
        """Return whether the present value of a reading is dangerous."""
        if reading["more" if self.too_low else "less"]:
            return False
        value = self.value(reading["last"])
        is_change = reading["change"] or _words("from").search(reading["filler"])
        if reading["first"] and not is_change:
            value = (max if self.too_low else min)(value, self.value(reading["first"]))
        if self.too_low and value == self.bound:
            return reading["less"] not in (None, "≤")
        return self.least <= value < self.bound


# Keyed by the kind of the names in `vital_signs.txt`. The thresholds are more extreme than those of
# early warning scores, because such values are common in ordinary case reports.
_VITAL_SIGNS: Mapping[str, _VitalSign] = {
    "oxygen saturation": _VitalSign(
        20,
        85,
        tail=r"(?!\s?%?[\s(]{1,2}mixed\s+venous\b)"
        r"(?!\s?(?:mm|kpa|ml|mg|min|l\b|lit|years?|degrees?|/|per h|:\d|"
        rf"{_MONTH})){_NO_VALUE}",
        is_percentage=True,
    ),
    "systolic pressure": _VitalSign(
        20, 81, tail=rf"(?!\s?(?:%|percent|points|(?:mm ?hg )?diastolic)){_NO_VALUE}"
    ),
    "mean pressure": _VitalSign(15, 56, tail=rf"(?!\s?(?:cm|%)){_NO_VALUE}"),
    "blood pressure": _VitalSign(
        20,
        81,
        tail=r"(?:'?s)?\s?(?:(?:/|over)\s?(?:\d{2,3}(?!\d)|p(?:alp\w*)?\b|dop(?:pler)?\b)"
        r"|(?:mm ?hg )?(?:\(?systolic|(?:by )?\(?(?:palp\w*|dop(?:pler)?\b)))",
        is_pair=True,
    ),
    "coma scale": _VitalSign(3, 9, tail=_NO_VALUE),
    "heart rate": _VitalSign(10, 30, tail=rf"(?!\s?(?:%|points?|ms\b)){_NO_VALUE}"),
    # A relative risk is abbreviated RR as well, and has decimals.
    "respiratory rate": _VitalSign(
        1, 8, tail=r"(?<!\.\d)(?<!\.\d\d)(?!\s?(?:liters?|l\b|%|days?|hours?|times))"
    ),
    "potassium": _VitalSign(
        6.5,
        12,
        too_low=False,
        # not a dose, unless `_is_dose` denies it of the amount
        tail=r"(?!\s?(?:mg|g|ml|u|units?|amps?|hours?|days?|weeks?|months?|years?|%)\b(?!/))"
        r"(?!\s?m?eq (?:daily|[bt]id|qid|q\d|x ?\d|once|twice|every|tab\w*|of|kcl|bicarb\w*"
        r"|calcium)\b)"
        r"(?!\s?m?eq ?(?:/|per )(?!d?l(?:it(?:er|re))?s?\b(?! of)))"
        r"(?=(?P<amount>(?<!\.\d)(?<!\.\d\d)\s?m?eq\b(?! ?(?:/|per ))"
        r"|\s?m?eq (?:iv|po|oral)\b)?)",
    ),
    "blood ph": _VitalSign(
        6.51,
        7.0,
        tail=r"(?!\s(?:(?:in|on|of)\s(?:the\s)?(?:pleural|synovial|csf|urine|ascit|gastric)"
        r"|(?:pleural|synovial|ascitic|gastric)\s(?:fluid|aspirate)|csf\b))",
    ),
}

_NEWBORN_SYSTOLIC = 46
"""Lowest systolic pressure (mmHg) of 406 healthy term newborns on their first two days.

Kent et al. 2007, https://doi.org/10.1007/s00467-007-0480-8.
"""
_NEWBORN_MEAN = 30
"""Mean pressure (mmHg) below which a newborn is hypotensive; below the weeks of gestation if fewer.

Both definitions are in Gomella and Cunningham's Neonatology, chapter on hypotension,
https://accesspediatrics.mhmedical.com/content.aspx?bookid=2762&sectionid=234452384.
"""
_WEEKS = re.compile(r"\b(2[2-9]|3\d|4[0-2])[\s-]?(?:weeks?|wk)\b", re.IGNORECASE)


class Reading(NamedTuple):
    """A measured value of a text."""

    start: int
    """Start index of the reading in the text."""
    end: int
    """End index of the reading in the text."""
    name: str = ""
    """Name of the sign if it stands elsewhere, above the column of a table."""


def dangerous_readings(text: str) -> Iterator[Reading]:
    """Yield each dangerous reading.

    The thresholds are oxygen saturation below 85%, systolic pressure of 80 mmHg or less, mean
    arterial pressure of 55 mmHg or less, Glasgow coma scale 8 or less, fewer than 8 breaths or 30
    heartbeats per minute, potassium 6.5 mmol/L or more, and blood pH below 7.0; in a newborn,
    systolic pressure below 46 mmHg and mean pressure below 30 mmHg or the weeks of gestation. A
    text is about a newborn if it mentions one before any older person. An inequality counts as its
    value (`SpO2 < 80`) unless it points the other way (`SpO2 > 80`); a range counts as the end
    nearer to normal, and a change (`from 95 to 70`, `98 → 88 → 71`, `was 60/40, now 120/80`,
    `118/70 at triage, 68/40 in CT`) as its last value. In a table with a column for each sign, the
    latest row counts, or each row if they are of different patients.

    Args:
        text: English text normalized by `exaid_core.checks.cue_files.normal`.
    """
    names = list(_names().find(text))
    newborn = _signs_of_newborn(text) if names else {}
    columns = _paired(text) if names and "/" in text else {}
    if names and ("|" in text or "\t" in text):
        columns |= _columns(text, names)
    starts = [name.start for name in names]  # a value belongs to the nearest name before it
    for name in names:
        sign = _VITAL_SIGNS[name.cue.kind]
        if not _mother().search(text, max(name.start - 20, 0), name.start):
            sign = newborn.get(name.cue.kind, sign)
        if name.cue.kind == "coma scale" and (responses := _coma_responses().match(text, name.end)):
            if sum(map(_points, responses.group("eyes", "voice", "limbs"))) < sign.bound:
                yield Reading(name.start, responses.end())
            continue
        below = [_reading(sign.tail).match(text, *cell) for cell in columns.get(name.start, ())]
        if any(below):
            for in_cell in filter(None, below):
                if end := _end_of_danger(sign, in_cell, in_cell.endpos):
                    yield Reading(in_cell.start(), end, text[name.start : name.end])
        elif end := _end_of_stated_danger(sign, name, text, starts):
            yield Reading(name.start, end)


def _end_of_stated_danger(
    sign: _VitalSign, name: Found, text: str, starts: Sequence[int]
) -> int | None:
    """Return the end of the dangerous value that follows a name, or None.

    Args:
        sign: The vital sign.
        name: Its name in the text.
        text: The whole text.
        starts: Start indices of all names, in order.
    """
    other = _other_than_measured().search(text, max(name.start - 40, 0), name.start)
    if other and not other["goal"]:
        return None
    stop = _next(starts, name.end, text)
    reading = _reading(sign.tail).match(text, name.end)
    if reading and _is_dose(reading, text[max(name.start - 7, 0) : reading.start("last")]):
        return None
    is_goal = other or _goal().match(text, name.end)
    if is_goal or (reading and _is_bound(reading) and not sign.is_dangerous(reading)):
        now = _now().match(text, name.end, min(name.end + 60, stop))
        if now and (now["word"] or not other):
            reading = _reading(sign.tail).match(text, now.end())
            if reading and _GIVEN.match(text, reading.end()):
                return None
        elif is_goal:
            return None
    if not reading:
        return _end_of_spoken_danger(sign, text, name.end, stop)
    is_ph = text[name.start : name.end].lower() == "ph"  # and not "arterial pH"
    if is_ph and _of_specimen().search(text, max(name.start - 80, 0), name.start):
        return None
    return _end_of_danger(sign, reading, _next(starts, reading.end(), text))


def _next(starts: Sequence[int], index: int, text: str) -> int:
    """Return where the next name at or behind an index starts, or the end of the text."""
    position = bisect_left(starts, index)
    return starts[position] if position < len(starts) else len(text)


def _paired(text: str) -> dict[int, Sequence[_Cell]]:
    """Return the span of the value of each name in "Na/K 128/6.8", keyed by the name's start."""
    values: dict[int, Sequence[_Cell]] = {}
    for pair in _PAIRED.finditer(text):
        header, row = (_cells(text, *pair.span(part)) for part in ("names", "values"))
        if len(header) == len(row):
            values |= {name[0]: [value] for name, value in zip(header, row, strict=True)}
    return values


def _columns(text: str, names: Sequence[Found]) -> Mapping[int, Sequence[_Cell]]:
    """Return the spans of the cells that count below each sign in the header of a table.

    These are the cells of all rows if each is of another patient, else of the latest row.

    Args:
        text: Any text.
        names: Names of signs in the text, in order.

    Returns:
        Start index of the first name in a cell of the header -> spans of the cells below.
    """
    columns: dict[int, Sequence[_Cell]] = {}
    starts = [name.start for name in names]
    for table in _TABLE.finditer(text):
        if _VALUE_IN_HEADER.search(table["header"]) or _OF_GRADES.search(table["header"]):
            continue
        header = _cells(text, *table.span("header"))
        lines = (_cells(text, *row.span()) for row in _LINE.finditer(text, *table.span("rows")))
        full = [row for row in lines if len(row) == len(header) and not _is_of_goals(text, row)]
        are_patients = _PATIENTS.match(table["header"]) is not None
        rows = full if are_patients else _latest_first(text, full)
        ends = [end for _, end in header]
        in_header = slice(*(bisect_left(starts, index) for index in table.span("header")))
        first_names = {bisect_left(ends, name.end): name for name in reversed(names[in_header])}
        for column, name in first_names.items():
            cells = [row[column] for row in rows if _DIGIT.search(text, *row[column])]
            is_of_limits = any(_LIMIT.match(text, *cell) for cell in cells) or (
                len(cells) > 1 and all(_RANGE.match(text, *cell) for cell in cells)
            )
            if not is_of_limits and not _AIM.search(text, *header[column]):
                columns[name.start] = cells if are_patients else cells[:1]
    return columns


def _is_of_goals(text: str, row: _Row) -> bool:
    return _OF_NO_PATIENT.match(text, row[0][0], row[-1][1]) is not None


def _latest_first(text: str, rows: Sequence[_Row]) -> Sequence[_Row]:
    """Return rows with the latest first; the last row is the latest unless their times fall."""
    firsts = (next((cell for cell in row if text[slice(*cell)].strip()), row[0]) for row in rows)
    clocks = [clock for cell in firsts if (clock := _CLOCK.match(text, *cell))]
    minutes = [60 * int(clock["hours"]) + int(clock["minutes"]) for clock in clocks]
    # Over midnight a time rises, so steps are within half a day.
    falls = [0 < (before - after) % 1440 < 720 for before, after in pairwise(minutes)]
    return rows if falls and all(falls) else rows[::-1]


def _cells(text: str, start: int, end: int) -> _Row:
    """Return the spans of the cells of a table's row or of a list with slashes, without spaces."""
    bar = next((bar for bar in "|\t" if bar in text[start:end]), "/")
    spans = []
    for cell in text[start:end].split(bar):
        stop = start + len(cell)
        spans.append((stop - len(cell.lstrip()), stop))
        start = stop + 1
    return spans


def _is_dose(reading: re.Match[str], before: str) -> bool:
    """Return whether a value is a dose, unless the text before it says that it was measured."""
    amount = reading.groupdict().get("amount")
    return amount is not None and not _words("measured").search(before)


def _is_bound(reading: re.Match[str]) -> bool:
    return bool(reading["less"] or reading["more"])


def _signs_of_newborn(text: str) -> Mapping[str, _VitalSign]:
    """Return the signs that have other thresholds in a newborn, if a text is about one."""
    patient = _patient().search(text)
    if not patient or not patient["newborn"]:
        return {}
    weeks = _WEEKS.search(text)
    mean = min(float(weeks[1]) if weeks else _NEWBORN_MEAN, _NEWBORN_MEAN)
    bounds = {
        "systolic pressure": _NEWBORN_SYSTOLIC,
        "blood pressure": _NEWBORN_SYSTOLIC,
        "mean pressure": mean,
    }
    return {kind: replace(_VITAL_SIGNS[kind], bound=bound) for kind, bound in bounds.items()}


def _end_of_danger(sign: _VitalSign, reading: re.Match[str], stop: int) -> int | None:
    """Return the end of the last value of a sign if it is dangerous, else None.

    Args:
        sign: The vital sign.
        reading: Match of `_reading`, the first value of the sign.
        stop: Index at which the text about the sign ends.
    """
    is_dangerous = sign.is_dangerous(reading)
    if reading["less"] and not is_dangerous:
        return None
    text, end = reading.string, reading.end()
    while further := _next_value(sign.tail, sign.is_pair).match(text, end, stop):
        value = sign.value(further["last"])
        if value < sign.least if sign.too_low else value >= sign.bound:
            break  # not plausible: a number of something else
        if _is_dose(further, text[end : further.start("last")]):
            break
        is_dangerous = sign.least <= value < sign.bound
        end = further.end()
    if not is_dangerous:
        return None
    later = _later().match(text, end, min(end + 60, stop))
    if later:
        return end if sign.least <= sign.value(later["last"]) < sign.bound else None
    return None if _invalid().match(text, end, min(end + 45, stop)) else end


def _end_of_spoken_danger(sign: _VitalSign, text: str, start: int, stop: int) -> int | None:
    """Return the end of the last value of a sign if it is dangerous and in words, else None."""
    digits, origins = in_digits(text[start : min(start + _SPOKEN_REACH, stop)])
    reading = _reading(sign.tail).match(digits)
    end = _end_of_danger(sign, reading, len(digits)) if reading else None
    return start + origins[end] if end else None


@cache
def _names() -> CueFinder:
    names = [cue for cue in read_cues("vital_signs") if cue.kind in _VITAL_SIGNS]
    return CueFinder(names, before_a_digit=True)


@cache
def _words(*kinds: str) -> re.Pattern[str]:
    return re.compile(any_of(read_cues("vital_signs"), *kinds), re.IGNORECASE)


@cache
def _patient() -> re.Pattern[str]:
    newborn = _words("newborn").pattern
    return re.compile(rf"(?P<newborn>{newborn})|{_words('older').pattern}", re.IGNORECASE)


@cache
def _mother() -> re.Pattern[str]:
    return re.compile(rf"{_words('mother').pattern}\s+$", re.IGNORECASE)


@cache
def _reading(tail: str) -> re.Pattern[str]:
    """Return a pattern for readings after a name: "70-75", "fell from 95/60 to 70/40"."""
    filler = (
        rf"(?:[\s:=(),*_~|\"↓↑→-]|;(?=\s?value\b)|->|\(!\)|'s\b|{_words('filler', 'from').pattern})"
    )
    own = rf"(?!{_words('another', 'not of', 'goal').pattern})"
    amount = r"\d{1,4}(?:\.\d)?\s?(?:l|liters?|ml)\b"
    # "on admission was", "on high-flow nasal cannula:", "after 2 L crystalloid:"
    phrase = (
        rf"{_words('phrase').pattern}(?:\s{own}(?:[^\W\d][\w'-]*|{amount})){{1,5}}?"
        rf"(?:\s{_words('is').pattern}|\s?[:=])"
    )
    # behind an arrow: "72% -> 100% NRB", but not "95% -> 72% NRB"
    pure = rf"(?<=100)(?:{_GIVEN.pattern}|\s?%?\s?(?:nrb|non-?rebreather)\b)"
    given = rf"(?:{pure}|\s?%?\s?{_DOSE}|{_PIECES})"
    return re.compile(
        rf"(?=\D{{0,{_LONGEST_GAP}}}\d)"  # for speed
        rf"(?P<filler>{_OF_A_KEY}?\)?(?:\s?[(\[][^()\[\]\d]{{1,12}}[)\]])?"
        rf"(?:{filler}{{0,8}}?{phrase})?{filler}{{0,24}}?)"
        rf"(?:(?P<less>[<≤]|{_words('less').pattern})|(?P<more>(?<!-)[>≥]|{_words('more').pattern}))?=?\s?"
        rf"(?:(?P<first>{_NUMBER})(?:\s?/\s?\d{{2,3}}(?!\d))?\s?(?:%|mm ?hg)?\s?"
        rf"(?:(?P<change>{ARROW}|{_words('change').pattern})|[–~-]|\bto\b)\s?"
        rf"(?:{_NUMBER}(?:\s?/\s?\d{{2,3}}(?!\d)|\s?%)?\sto\s){{0,3}})?"
        rf"(?!{_DATE})(?P<last>{_NUMBER})(?![\d.]*\d|:\d)(?!\s?%?\s?{_words('or more').pattern})"
        rf"(?(change)(?!{given})){tail}",
        re.IGNORECASE,
    )


@cache
def _coma_responses() -> re.Pattern[str]:
    """Return a pattern for the Glasgow coma scale as points of three responses: "E1V1M1"."""
    return re.compile(
        rf"(?:[\s:=(),-]|{_words('filler', 'from').pattern}){{0,8}}?"
        r"E(?:yes?)?:? ?(?P<eyes>[1-4])[\s,+]{0,2}V(?:erbal)?:? ?(?P<voice>[1-5T])[\s,+]{0,2}"
        r"M(?:otor)?:? ?(?P<limbs>[1-6])\b",
        re.IGNORECASE,
    )


def _points(response: str) -> int:
    """Return the points of a response; T, for a tube that prevents speaking, counts as one."""
    return 1 if response in "Tt" else int(response)


@cache
def _other_than_measured() -> re.Pattern[str]:
    """Return a pattern for what makes the next number a `goal` or of another measurement."""
    return re.compile(
        rf"(?:{_words('not of').pattern}|(?P<goal>{_words('goal').pattern}))"
        rf"{_APART}(?:\w+{_APART}){{0,2}}$",
        re.IGNORECASE,
    )


@cache
def _goal() -> re.Pattern[str]:
    return re.compile(rf"[\s:(\[,-]{{1,3}}{_words('goal').pattern}", re.IGNORECASE)


@cache
def _now() -> re.Pattern[str]:
    """Return a pattern for the text up to the present value: "goal 65, currently 48"."""
    own = rf"(?!{_words('another').pattern})"
    return re.compile(
        rf"(?:{own}[^\n])*?\b(?P<word>{_words('now').pattern})|\s?[(\[][^()\n]*?[)\]]",
        re.IGNORECASE,
    )


@cache
def _of_specimen() -> re.Pattern[str]:
    """Return a pattern for an analysis before its pH: "Urine: color yellow, pH"."""
    item = rf"[^.,;:\n]*?{_words('analysis').pattern}(?:[^.,;:\n]|\.\d)*,"
    return re.compile(rf"{_words('specimen').pattern}\s*:\s*(?:{item}\s*){{0,6}}$", re.IGNORECASE)


@cache
def _next_value(tail: str, is_pair: bool) -> re.Pattern[str]:
    """Return a pattern for a further value: "GCS 14 on arrival, now 6", "GCS 15 at scene, 6 on …".

    Without a word like "now", the number must be a pair, end a chain of arrows ("K 5 → 6 → 7.2"),
    or be followed by its time or place.
    """
    own = rf"(?!{_words('another').pattern})"
    # An arrow leads to a value, but also to a measure: "→ 100% NRB".
    behind_arrow = rf"(?:{_words('occasion', 'cause').pattern}|[^\w\s]|\n|\Z)"
    occasion = (
        rf"(?(now)|(?:\s?{_UNIT})?+\s?"
        rf"(?(arrow){behind_arrow}|{_words('occasion').pattern}))"
    )
    pair = r"(?![123]\d\D)"  # rather a score: "25/30 points"
    return re.compile(
        rf"(?:(?P<now>(?:{own}(?:[^.;\n]|\.\d)){{0,30}}?\b{_words('worse').pattern}\W{{0,3}}"
        rf"(?:(?:it )?is |only )?)"
        rf"|(?:{own}(?:[^.,;\n]|\.\d)){{0,40}}?(?:[,;]|(?P<arrow>{ARROW})|\band\b)\s?(?:and )?)"
        rf"{pair if is_pair else ''}(?P<last>{_NUMBER})(?![\d.]*\d){_NO_VALUE}(?!\s?h\b(?!/)){tail}"
        rf"{'' if is_pair else f'(?={occasion})'}"
        rf"(?![^,;.\n]{{0,20}}?{_words('not later').pattern})",
        re.IGNORECASE,
    )


@cache
def _later() -> re.Pattern[str]:
    own = rf"(?!{_words('another').pattern})"
    return re.compile(
        rf"(?:{own}[^.\n]){{0,25}}?{_words('later').pattern}"
        rf"(?:{own}[^.;\d\n]){{0,20}}(?P<last>{_NUMBER})",
        re.IGNORECASE,
    )


@cache
def _invalid() -> re.Pattern[str]:
    """Return a pattern for what makes the value before it invalid: "7.2 (specimen hemolyzed)"."""
    return re.compile(
        rf"\s?%?(?:\s?m[em]\w+(?:/l)?)?[\s,(:-]{{0,3}}(?:(?:was|is|grossly)\s){{0,3}}"
        rf"{_words('invalid').pattern}(?![^.;\n]{{0,60}}?{_words('sign of it').pattern})",
        re.IGNORECASE,
    )
