"""Reads how often and when a dose is given: `BID`, `weekly`, `every Monday`, `with meals`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import NamedTuple

from exaid_core.checks.drugs import drugs
from exaid_core.checks.quantities import Quantity
from exaid_core.checks.units import scale
from mdagents_llm.text import in_lower_case

_REACH = 80
"""Characters before and behind a dose that are searched for its schedule."""
_TOLERANCE = 1.1
"""Ratio up to which intervals are the same: a month, four weeks and 30 days."""

_HOURS = {"h": 1.0, "d": 24.0, "w": 168.0, "f": 336.0, "m": 730.5, "y": 8766.0}
"""Hours of a unit of time by its first letter."""
_WORDS = {
    "hourly": 1.0, "qid": 6.0, "qds": 6.0, "qidac": 6.0, "achs": 6.0, "tid": 8.0, "tds": 8.0,
    "tidac": 8.0, "qac": 8.0, "bid": 12.0, "bds": 12.0, "bidac": 12.0,
    "daily": 24.0, "qd": 24.0, "qday": 24.0, "qod": 48.0, "qad": 48.0, "alternateday": 48.0,
    "alternatedays": 48.0, "tiw": 56.0, "mwf": 56.0, "biw": 84.0, "weekly": 168.0,
    "qw": 168.0, "qwk": 168.0, "qweek": 168.0, "fortnightly": 336.0, "monthly": 730.5,
    "qmonth": 730.5, "yearly": 8766.0, "annually": 8766.0,
}  # fmt: skip
"""Hours between doses by a word without signs and spaces. `biweekly` has two meanings."""
_COUNTS = {
    "once": 1, "one": 1, "twice": 2, "two": 2, "other": 2, "second": 2, "thrice": 3, "three": 3,
    "third": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12,
}  # fmt: skip

# The patterns of schedules are for text in lower case.
_COUNT = rf"(?:[1-9][0-9]{{0,2}}|{'|'.join(_COUNTS)})"
_RANGE = rf"(?P<least>{_COUNT})(?:(?:-| to | or )(?P<most>{_COUNT}))?"
# "twice daily", "3 times a week", "2-3x/day"
_TIMES = re.compile(
    rf"(?<![\w.]){_RANGE}(?:[ -]times?| ?x|(?<=once)|(?<=twice)|(?<=thrice))[ -]?"
    r"(?:(?:an?|per|each|every) |/ ?)?(?P<unit>da(?:y|ily)|week(?:ly)?|month(?:ly)?|year(?:ly)?)\b"
)
_NOT_AGO = r"(?! (?:ago|earlier|later|before|prior|after)\b)"
# "1 day per week"
_DAYS_A_WEEK = re.compile(
    rf"(?<![\w.-]){_RANGE} days? ?(?:(?:an?|per|each|every|(?:of|in) (?:the|a)) |/ ?)week\b"
    rf"{_NOT_AGO}"
)
# "every 8 hours", "every other day"
_EVERY = re.compile(
    rf"\b(?:every|each) (?:{_RANGE}[ -]?)?(?P<unit>hours?|h|days?|d|weeks?|wk?"
    r"|fortnight|months?|mo|years?)\b"
)
_WORD = re.compile(
    r"(?<![\w.])(?:hourly|daily|weekly|fortnightly|monthly|yearly|annually|alternate[ -]days?"
    r"|[qtb]\.?i\.?d(?:ac)?|qac|achs|m/?w/?f|[qtb]ds|tiw|biw"
    r"|q\.?[oa]\.?d|q\.? ?(?:d|day|w|wk|week|month))\b"
)
# "a week", "/day"
_PER_UNIT = re.compile(
    r"(?:\b(?:an?|per) |/ ?)(?P<unit>day|d|week|wk?|month)\b"
    rf"{_NOT_AGO}"
)
_AND = r"(?:,? (?:and|&) |, ?|/|&)"
_PARTS = {
    "am": "m", "morning": "m", "breakfast": "m", "mane": "m", "noon": "n", "midday": "n",
    "lunch": "n", "afternoon": "ne", "pm": "ne", "dinner": "ne", "evening": "e", "supper": "e",
    "night": "e", "hs": "e", "h.s": "e", "bed": "e", "bedtime": "e", "nightly": "e", "nocte": "e",
}  # fmt: skip
"""Morning, noon or evening by a word; some words mean the time between two."""
_PART_OF_DAY = (
    r"(?:am|pm|hs|h\.s|morning|noon|midday|afternoon|evening|night|bed(?:time)?|breakfast|lunch"
    r"|dinner|supper)\b"
)
_AT_A_PART = r"(?:in the|at|before|after|with) (?:the )?"
# "every morning and at night", "qHS"; "at bedtime", "before breakfast and dinner", "20 units AM"
_PARTS_OF_DAY = re.compile(
    rf"\b(?:(?:(?P<each>every |each |q\.? ?)|{_AT_A_PART}|(?<!\d )(?=(?:am|pm|hs|noon|midday)\b))"
    rf"(?P<parts>{_PART_OF_DAY}(?:{_AND}(?:{_AT_A_PART}|(?:every|each) |q)?{_PART_OF_DAY})*)"
    r"|(?P<word>nightly|nocte|mane)\b)"
)
# "with meals", "before each meal"
_MEALS = re.compile(
    r"\b(?:with|w/|before|after|at|each|every|per)(?: (?:each|every|all|the|main))* "
    r"(?:meals?|mealtimes?)\b"
)
_WITH_MEALS = (6.0, 12.0)
"""Hours between two to four meals a day."""
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?\b"
_AND_DAY = rf"(?:{_AND}| )"
# "every Monday", "on Tuesdays and Fridays", "Mon/Wed/Fri", "Mon Wed Fri"
_WEEKDAYS = re.compile(
    rf"\b(?:(?:every|each) |(?:on )?(?=[a-z]+days\b)|(?={_WEEKDAY}{_AND_DAY}{_WEEKDAY}))"
    rf"{_WEEKDAY}(?:{_AND_DAY}{_WEEKDAY})*"
)
# "15 mg Fri", but not "15 mg Fri 3 May" or "2 L, sat 94%"
_ONE_WEEKDAY = re.compile(
    r"\b(?:(?:mon|tues?|wed|thu(?:rs)?|fri)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"(?! ?[\d-]| (?:to|through|at|am|pm|morning|afternoon|evening|night)\b)"
)
_JOINS = re.compile(r"[,(]? ?")
"""Text between two parts of one schedule: `daily at bedtime`, `BID, with meals`."""

_ROUTE = (
    r"po|orally|oral|by mouth|iv|im|sc|sq|subq|subcut\w*|intra[mv]\w+|inhaled|topically|tablets?"
    r"|tabs?|capsules?|caps?|pills?|er|xr|sr|xl|cr|push|infusion"
)
# Text between a dose and its schedule, without the names of drugs
_BETWEEN = re.compile(
    r"\s?(?:\([^()]{1,40}\)\s?)?[,:-]?\s?"
    rf"(?:(?:of|given|taken|once|twice|doses?|dosing|dosed|at|prn|low-dose|{_ROUTE})\b\s?)*[,(-]?\s?"
)
# Apart from its dose, what a noun follows is no schedule: "15 mg, weekly blood counts".
_APART = re.compile(r"[,(-]\s?$|\n")
_SEPARATES = re.compile(r"[,(\n]")
_NOUN = re.compile(
    r" (?!(?:for|until|till|with|then|as|at|by|and|but|or|in|on|from|after|before|only|not"
    rf"|{_ROUTE})\b)[a-z]",
    re.IGNORECASE,
)
_ENDS_SENTENCE = re.compile(r"[.!?](?=\s+[^\sa-z0-9])|;|\n(?=\s*[\n*•-])")
_AROUND = re.compile(r"\W*(?:on\b)?\W*(?:only\b)?\W*", re.IGNORECASE)
_CHANGED = re.compile(r"\bto (?:an? )?$", re.IGNORECASE)


class Schedule(NamedTuple):
    """How often a dose is given."""

    least: float
    """Shortest interval in hours."""
    most: float
    """Longest interval in hours."""
    part_of_day: str = ""
    """Parts of the day at which a daily dose may be given, of `m`orning, `n`oon and `e`vening."""
    with_meals: bool = False
    """Whether each dose is given with a meal."""

    def is_same(self, other: Schedule) -> bool:
        """Return whether the intervals are the same, or overlap, at the same part of the day."""
        if self.with_meals and other.with_meals:
            return True
        if self.part_of_day and other.part_of_day and not self._is_at_part_of(other):
            return False
        return self.least <= other.most * _TOLERANCE and other.least <= self.most * _TOLERANCE

    def _is_at_part_of(self, other: Schedule) -> bool:
        return not set(self.part_of_day).isdisjoint(other.part_of_day)


class DoseSchedule(NamedTuple):
    """A dose in a text, with how often it is given."""

    dose: Quantity
    """Quantity with any unit but one of time."""
    stated: Schedule | None
    """Schedule of the dose; None if that is not clear, as of `15 mg Monday`."""
    possible: Sequence[Schedule]
    """The stated schedule; without a clear one, others before the next dose, too."""


class _Found(NamedTuple):
    start: int
    end: int
    schedule: Schedule
    may_be_event: bool = False
    """Whether this is no schedule elsewhere than behind a dose: `vomited after dinner`."""


def dose_schedules(text: str, measured: Iterable[Quantity]) -> Iterator[DoseSchedule]:
    """Yield the doses in a text with their schedules.

    A schedule belongs to the dose in front of it (`15 mg PO weekly`) or, if there is none, to the
    dose behind it (`weekly methotrexate 15 mg`).

    Args:
        text: Text normalized by `plain`.
        measured: Quantities in the text, as `quantities` yields them.
    """
    doses = [each for each in measured if each.unit and not _is_of_time(each.unit)]
    found = _found(text) if doses else []
    taken = 0
    for dose, following in zip_longest(doses, doses[1:]):
        sentence = _ENDS_SENTENCE.search(text, dose.end, dose.end + _REACH)
        stop = sentence.start() if sentence else dose.end + _REACH
        first = bisect_left(found, dose.start, key=attrgetter("start"))
        behind = found[first : bisect_left(found, stop, key=attrgetter("start"))]
        before = found[first - 1] if first else None
        if before and (
            before.start < taken or before.may_be_event or not _precedes(text, before, dose)
        ):
            before = None
        until = following.start if following else dose.end + _REACH
        others = [each for each in behind[1:] if each.start < until]
        if behind and _follows(text, dose, behind[0]):
            stated = behind[0]
        elif before:
            stated, others = before, []
        else:
            possible = [*behind[:1], *others] if behind and behind[0].start < until else others
            yield DoseSchedule(
                dose, None, [each.schedule for each in possible if not each.may_be_event]
            )
            continue
        taken = stated.end
        if stated.may_be_event:
            # "once-daily 1 g with meals", "1 g at night. Continue BID"
            if not stated.schedule.with_meals:
                last = min(until, dose.end + _REACH)
                end = bisect_left(found, last, key=attrgetter("start"))
                others = list(found[first + 1 : end])
            others += [before] if before else []
        elif stated.schedule.part_of_day:
            # "every morning, again in the evening"
            others = [each for each in others if each.schedule.part_of_day]
        else:
            others = []
        is_day = stated.may_be_event and stated.schedule.least == _HOURS["w"]
        yield DoseSchedule(
            dose,
            None if is_day else stated.schedule,
            [each.schedule for each in (stated, *others)],
        )


def new_schedules(text: str) -> set[Schedule]:
    """Return the schedules that a text changes a dose to, wherever it is told: `increase to BID`.

    Args:
        text: Text normalized by `plain`.
    """
    return {
        found.schedule
        for found in _found(text)
        if _CHANGED.search(text, max(found.start - 8, 0), found.start)
    }


def tells_schedule(text: str, *, of_a_dose: bool) -> bool:
    """Return whether a text tells how often or when something is done.

    Args:
        text: Text normalized by `plain`.
        of_a_dose: Whether the text is known to be about a dose, so that `with meals` is a schedule.
    """
    return any(of_a_dose or not found.may_be_event for found in _found(text))


def is_schedule(text: str) -> bool:
    """Return whether a text normalized by `plain` is a schedule alone: `Mondays only`."""
    found = _found(text)
    return bool(found and _AROUND.fullmatch(text[: found[0].start] + text[found[-1].end :]))


def with_parts_of_day(schedules: set[Schedule]) -> set[Schedule]:
    """Return schedules of a dose and, if it is given at several parts of the day, how often."""
    times = len({schedule.part_of_day for schedule in schedules} - {""})
    hours = _HOURS["d"] / max(times, 1)
    return schedules | {Schedule(hours, hours)} if times > 1 else schedules


def _found(text: str) -> Sequence[_Found]:
    text = in_lower_case(text).replace("\n", " ")
    found: list[_Found] = []
    for each in sorted(_schedules(text), key=lambda each: (each.start, -each.end)):
        if found and each.start < found[-1].end:
            continue
        if found and (whole := _joined(text, found[-1], each)):
            found[-1] = whole
        else:
            found.append(each)
    return found


def _joined(text: str, one: _Found, other: _Found) -> _Found | None:
    """Return two neighbors as one schedule, if one tells the time of the other."""
    if not _JOINS.fullmatch(text, one.end, other.start):
        return None
    first, second = one.schedule, other.schedule
    if first.with_meals != second.with_meals:
        main = other if first.with_meals else one
        whole = main.schedule._replace(with_meals=True)
    elif bool(first.part_of_day) != bool(second.part_of_day):
        main = one if second.part_of_day else other
        rarer = main.schedule.least > _HOURS["d"] and not text[one.end : other.start].strip()
        if first[:2] != second[:2] and not rarer:  # "before breakfast once a week"
            return None
        whole = main.schedule._replace(part_of_day=first.part_of_day or second.part_of_day)
    else:
        return None
    return _Found(one.start, other.end, whole, main.may_be_event)


def _is_of_time(unit: str) -> bool:
    """Return whether a unit is one of time, possibly per another: `d`, `d/wk`."""
    return scale(unit).dimension.split("/")[0] == "s"


def _follows(text: str, dose: Quantity, found: _Found) -> bool:
    if found.start < dose.end:  # the "/day" of a unit
        return True
    between = text[dose.end : found.start]
    if _APART.search(between) and _NOUN.match(text, found.end):
        return False
    return _is_between(between)


def _precedes(text: str, found: _Found, dose: Quantity) -> bool:
    if dose.start - found.end > _REACH:
        return False
    between = text[found.end : dose.start]
    return not _SEPARATES.search(between) and _is_between(between)


def _is_between(text: str) -> bool:
    """Return whether a text can be between a dose and its schedule."""
    for start, end, _ in reversed(list(drugs(text))):
        text = text[:start] + text[end:].lstrip()
    return _BETWEEN.fullmatch(text.lower()) is not None


def _schedules(text: str) -> Iterator[_Found]:
    for match in _TIMES.finditer(text):
        hours, (least, most) = _HOURS[match["unit"][0]], _counts(match)
        yield _Found(*match.span(), Schedule(hours / most, hours / least))
    for match in _DAYS_A_WEEK.finditer(text):
        hours, (least, most) = _HOURS["w"], _counts(match)
        yield _Found(*match.span(), Schedule(hours / most, hours / least))
    for match in _EVERY.finditer(text):
        hours, (least, most) = _HOURS[match["unit"][0]], _counts(match)
        yield _Found(*match.span(), Schedule(hours * least, hours * most))
    for match in _PER_UNIT.finditer(text):
        hours = _HOURS[match["unit"][0]]
        yield _Found(*match.span(), Schedule(hours, hours))
    for match in _WORD.finditer(text):
        hours = _WORDS[re.sub("[^a-z]", "", match[0])]
        may_be_event = hours == _HOURS["y"]  # "10 mg and a yearly eye examination"
        yield _Found(*match.span(), Schedule(hours, hours), may_be_event)
    for match in _PARTS_OF_DAY.finditer(text):
        parts = re.findall(_PART_OF_DAY, match["parts"]) if match["parts"] else [match["word"]]
        hours = _HOURS["d"] / len(parts)
        part = _PARTS[parts[0]] if len(parts) == 1 else ""
        may_be_event = not (match["each"] or match["word"])
        yield _Found(*match.span(), Schedule(hours, hours, part), may_be_event)
    for match in _MEALS.finditer(text):
        yield _Found(*match.span(), Schedule(*_WITH_MEALS, with_meals=True), may_be_event=True)
    for match in _ONE_WEEKDAY.finditer(text):
        yield _Found(*match.span(), Schedule(_HOURS["w"], _HOURS["w"]), may_be_event=True)
    for match in _WEEKDAYS.finditer(text):
        hours = _HOURS["w"] / len(re.findall(_WEEKDAY, match[0]))
        yield _Found(*match.span(), Schedule(hours, hours))


def _counts(match: re.Match[str]) -> tuple[int, int]:
    least = match["least"] or "1"
    first, last = (_COUNTS.get(count) or int(count) for count in (least, match["most"] or least))
    return min(first, last), max(first, last)
