"""Checks the numbers, doses and drugs in a summary against the text that it was made from."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from exaid_core.checks.analytes import as_score, in_customary_units
from exaid_core.checks.clock import TimeOfDay, times_of_day
from exaid_core.checks.doses import drug_doses
from exaid_core.checks.drugs import NamedDrugs, drugs
from exaid_core.checks.labels import Label, labels
from exaid_core.checks.language import is_english
from exaid_core.checks.prescriptions import unread_hours
from exaid_core.checks.quantities import (
    InDigits,
    Measure,
    Quantity,
    as_float,
    as_share,
    measure,
    numbers,
    plain,
    quantities,
)
from exaid_core.checks.schedules import (
    Schedule,
    dose_schedules,
    new_schedules,
    with_parts_of_day,
)
from exaid_core.checks.units import canonical_number, is_rounded, scale

# Units of vital signs and ages, which are often omitted.
_OFTEN_UNWRITTEN = frozenset({"mmhg", "1/min", "%", "°c", "°f", "year"})

_PER_LITER = "1/l"
_CUSTOMARY_COUNTS = (1e6, 1e9, 1e12)
"""Cells per liter that a count without a unit means: `WBC 8100` or `8.1`, `RBC 4.5`."""

_THIRDS = {"1/3": ("33", "33.3"), "2/3": ("66", "66.7", "67")}
"""Percentages that a third is also told as."""
_OF_A_WHOLE = re.compile(
    " of (?!this |(?:jan|feb|mar|apr|may|ju[nl]|aug|sep|oct|nov|dec))", re.IGNORECASE
)
_AS_A_SHARE = re.compile(
    r"\b(?:reduced|decreased|increased|fell|rose|down|up) (?:to|by) \Z", re.IGNORECASE
)

# Converted values are rounded: 2296 g is 2.3 kg, and 12 weeks are 3 months.
_ROUNDED, _ROUNDED_ON_CALENDAR = 0.03, 0.09

# "3/52 history of cough", "review in 6/52", "29+4/40": weeks, days or months in British notes
_OF_A_PERIOD = {"24": "h", "7": "d", "52": "wk", "40": "wk", "12": "mo"}
_PERIOD = re.compile(r"/(24|7|52|40|12)(?![\d/]|[.,]\d)")
_BEFORE_A_PERIOD = re.compile(
    r"(?:\b(?:in|for|over|after|within|every|about|x|age[ds]?|r/v|[btq]\.?i\.?d|[tq]ds|daily|hourly"
    r"|every \d+ hours|every morning|nightly|nocte|mane|(?:a|per) day)|~)[ :]?\Z",
    re.IGNORECASE,
)
_SYMPTOM = (
    r"(?:pain|ache|cough|fever|vomiting|diarrh\w+|headache|nausea|rash|dyspn\w+|SOB|swelling|bleed\w*"
    r"|dysuria|constipation|lethargy|malaise|weakness|numbness|jaundice|itch\w*|sore throat|D&V)\b"
)
# Before "10/7" or "10/12", these words tell a date or a count.
_BEFORE_WEEKS = re.compile(
    r"\b(?:past|last|next|at|since|until|review|follow-?up|f/u|repeat|recheck"
    rf"|{_SYMPTOM})[ :]?\Z",
    re.IGNORECASE,
)
_AFTER_A_PERIOD = re.compile(
    r" ?(?:of (?!the\b|\d)|history|hx|course|old|ago|later|post|pregnan|gest|infant|baby|boy|girl"
    rf"|duration|supply|(?:\w+ )?{_SYMPTOM})",
    re.IGNORECASE,
)
# "VA 6/12", "20/40 OD"
_VISION = re.compile(
    r"\b(?:BC?VA|VA|visus|snellen|visual|vision|acuity|eyes?|O[DSU]|[LR]E|20/\d+)\b", re.IGNORECASE
)
# "in 5/12 patients", "about 5/7 of them", "5/12 (42%)"
_COUNTED = re.compile(
    r" ?\(\d| of (?:all|them|these|those)\b| (?:of (?:the )?)?(?!weeks|days|months|hours)[a-z]+s\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"([1-9]\d?)/([1-9]\d?)/(?:19|20)\d\d")
# "on 12.03.", but "creatinine 12.03", "pain of 8/10"
_BEFORE_A_DAY = re.compile(
    r"\b(?:on|since|until|till|before|after|by|dated?|as of)[ :]?\Z", re.IGNORECASE
)
# "nodes positive in 3/12", "mutation found in 5/7", but "to be seen in 3/12"
_COUNTED_BEFORE = re.compile(
    r"\b(?:positive|negative|present|absent|involved|(?<!\bbe )(?:seen|found|detected|identified))"
    r" in[ :]?\Z",
    re.IGNORECASE,
)
# "G2P1 29+4 with PPROM"
_DAYS_OF_GESTATION = re.compile(
    r"\+([0-6])(?![\d/+]|[.,]\d| ?(?!(?:with|and|by|at|on|in|today|now|pregnan\w*|gest\w*|twin\w*"
    r"|singleton|p?reterm|who|presents?|presenting)\b)[a-z%])"
)
_WEEKS_OF_GESTATION = range(10, 45)
_OBSTETRIC = re.compile(
    r"\bG\d|\b(?:gestation|pregnan|antenatal|fet(?:al|us)|foet(?:al|us)|neonat|p?reterm|labou?r"
    r"|deliver|born|P?P?ROM|GA|EDD|LMP|para|primi|multi|obstetric|twin|caesarean|cesarean)",
    re.IGNORECASE,
)

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_ORDINAL = re.compile(rf"\b(?:{'|'.join(_ORDINALS)})\b", re.IGNORECASE)

_STRENGTHS = frozenset({"mg", "g"})
# Oxygen is told with and without the minute: `2 L` and `2 L/min`.
_SAME_FLOW = {"l": "l/min", "l/min": "l"}
_WEEKLY = "/wk"  # `15 mg/week` is also told as `15 mg weekly`
_OF_A_VOLUME = re.compile(r"(?P<amount>.+)/(?P<volume>[0-9.]+)(?P<unit>m?l)")
"""A strength per volume of more than one unit (`1 g/50 mL`), which is also an amount to give."""
_CONCENTRATION = ("100", "ml")  # `80 mg/100 mL` is 80 mg/dL
_VOLUME = re.compile(
    r"(?:[0-9] ?(?:m?l|cc|tsp|tbsp)|\b(?:tea|table)spoon(?:ful)?s?)\b(?! ?/)", re.IGNORECASE
)
# "systolic BP of", "DBP"
_HALF_OF_A_PRESSURE = re.compile(
    r"\b(?:(?P<systolic>SBP|systolic)|DBP|diastolic)"
    r"(?:[ :=(<>~]|\b(?:BP|(?:arterial )?(?:blood )?pressure|reading|of|is|was|at|to|now)\b)*\Z",
    re.IGNORECASE,
)
_BLOOD_PRESSURE = re.compile(r"\b(?:BP|pressures?|arterial|vitals?|vital signs)\b", re.IGNORECASE)
_NO_PRESSURE = re.compile(
    r"[.;\n](?!\d)|\b(?:vision|acuity|lens|eyes?|[LR]E|O[DSU])\b", re.IGNORECASE
)
_SYSTOLIC = re.compile(
    r"\b(?:SBP|systolic (?:blood )?pressure|systolic (?:of )?(?=[0-9]))\b", re.IGNORECASE
)

_REACH = 60
"""Characters before a number that are searched for its name."""

# Counts of agents who hold a view are the summary's own; the agents do not state them.
_COUNTED_AGENTS = re.compile(
    r"\s(?:(?:out )?of (?:the )?\w+ )?(?:experts?|agents?|doctors?|specialists?|clinicians?"
    r"|physicians?|teams?|members?|opinions?|views?|answers?|votes?)\b",
    re.IGNORECASE,
)


def unsupported_terms(summary_texts: Iterable[str], support: str) -> tuple[str, ...]:
    """Return the numbers, doses and drugs in a summary that its support does not contain.

    Numbers are compared by value and unit: `1500 mg` equals `1.5 g`, `14 days` equals `2 weeks`,
    `54M` equals `54-year-old`, `half a` equals `0.5`, and 5 mg/kg supports neither 5 mg nor 5 g. A
    number without a unit is supported by any number of that value, a drug by any of its names. A
    laboratory value without a unit also supports its customary one (`Na 118`, 118 mmol/L). A
    number that is part of a name (`IL-6`, `grade 3`) is returned if the support has that name only
    with other numbers. A dose next to a drug (`metoprolol 10 mg`) counts as swapped, and is
    returned, if the support gives that drug only with other doses and that dose only with other
    drugs. So is a time of day (`2 am`) that the support gives only in the other half of the day
    (`2 pm`). If the support is not in English, only the values of numbers in digits are compared.

    Args:
        summary_texts: Fields of the summary.
        support: All text that the summary was made from.

    Returns:
        The unsupported terms as written in the summary, in order and without duplicates.
    """
    evidence = _Evidence(plain(support))
    terms: dict[_Meaning, str] = {}
    for text in summary_texts:
        for meaning, term in evidence.missing(plain(text)):
            terms.setdefault(meaning, term)
    return tuple(terms.values())


def without_support(terms: Iterable[str], support: str) -> list[str]:
    """Return the terms that have no support when each is checked alone."""
    evidence = _Evidence(plain(support))
    return [term for term in terms if evidence.missing(plain(term))]


_Meaning: TypeAlias = str | tuple[str | None, tuple[object, ...]]
"""Identity of a term: the name of a drug, or the drug of a dose (None for other numbers) and the
measures of the quantity."""
_Span: TypeAlias = tuple[int, int]


class _Evidence:
    def __init__(self, support: str) -> None:
        self._support = support
        self._in_english = is_english(support)
        self._quantities, labeled = _measured(support)
        self._measures: set[Measure] = set()
        self._measures.update(measure(hours, "h") for hours in unread_hours(support))
        self._days: set[str] = set()
        """Days and months of dates."""
        self._pressures: set[tuple[str, ...]] = set()
        """Systolic and diastolic value of each blood pressure."""
        self._numbers = numbers(support)
        ordinals = map(str.lower, _ORDINAL.findall(support))
        self._numbers.update(str(_ORDINALS.index(ordinal) + 1) for ordinal in ordinals)
        basic: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for quantity in self._quantities:
            self._measures.update(quantity.measures)
            self._measures.update(_implied(quantity, support))
            self._numbers.update(quantity.values)
            self._numbers.update(_scores(quantity, support))
            self._days.update(_days_of_dates(quantity))
            self._pressures.update(_pressures(quantity, support))
            for value, unit in _in_units(quantity, support):
                number = as_float(value)
                if number is None:
                    continue
                self._measures.add(measure(value, unit))
                size = scale(unit)
                basic[size.dimension][unit].append(size.basic(number))
                if unit == "%":
                    self._numbers.add(as_share(value))
                elif quantity.unit and size.dimension == _PER_LITER:
                    customary = (size.basic(number) / each for each in _CUSTOMARY_COUNTS)
                    self._numbers.update(canonical_number(f"{count:.4f}") for count in customary)
        self._basic = {
            dimension: {unit: sorted(values) for unit, values in by_unit.items()}
            for dimension, by_unit in basic.items()
        }
        """Values in the basic unit by basic unit and unit, in ascending order."""
        self._labels: defaultdict[str, set[str]] = defaultdict(set)
        for label in labeled.values():
            self._labels[label.name].update(label.numbers)
            self._numbers.update(label.numbers)
        times = tuple(times_of_day(support))
        self._times = {time.minutes for time in times}
        self._certain_times = {time.minutes for time in times if time.is_certain}
        self._tells_systolic = _SYSTOLIC.search(support) is not None
        self._tells_frequency = any(quantity.is_frequency for quantity in self._quantities)
        self._drugs = NamedDrugs(support)

    def missing(self, text: str) -> list[tuple[_Meaning, str]]:
        """Return the meaning and wording of each term of `text` without support, in order."""
        measured, labeled = _measured(text)
        covered = set(chain.from_iterable(range(*span) for span in labeled))
        found: list[tuple[int, _Meaning, str]] = [
            (start, (None, (term.lower(),)), term)
            for (start, end), label in labeled.items()
            if not self._has_label(label)
            for term in [text[start:end]]
        ]
        times = tuple(times_of_day(text))
        told = {time.start for time in times if time.minutes in self._times}
        found += [
            (claim.start, (None, claim.measures), claim.text)
            for claim in _claims(text, measured)
            if claim.start not in covered
            and not (claim.start in told and claim.unit in (None, "h") and len(claim.values) == 1)
            and (self._tells_frequency or not claim.is_frequency)
            and not all(self._has(value, claim.unit) for value in claim.values)
            and not self._has_half_of_a_pressure(text, claim)
            and not self._has_period(text, claim)
            and not self._has_day(text, claim)
        ]
        reported = {start for start, _, _ in found}
        found += [
            (time.start, (None, (time.minutes,)), text[time.start : time.end])
            for time in times
            if time.start not in reported and self._is_in_the_other_half(time)
        ]
        found += [
            (dose.start, (None, dose.measures), dose.text)
            for dose in self._with_another_schedule(text, measured)
            if dose.certain
        ]
        if self._in_english:
            found += [
                (start, name, text[start:end])
                for start, end, name in drugs(text)
                if name not in self._drugs
            ]
            for given in drug_doses(text, measured):
                if given.drug and self._is_swapped(given.drug.name, given.dose):
                    start, end, name = given.drug
                    meaning = (name, given.dose.measures)
                    found.append((start, meaning, f"{text[start:end]} {given.dose.text}"))
        return [(meaning, term) for _, meaning, term in sorted(found, key=itemgetter(0))]

    def _has_label(self, label: Label) -> bool:
        if label.name in self._labels and label.is_certain:
            return label.number in self._labels[label.name]
        return not label.is_word or label.number in self._numbers

    def _with_another_schedule(self, text: str, measured: Sequence[Quantity]) -> Iterator[Quantity]:
        """Yield the doses of a text that the support gives more often or less often."""
        drug_of = {given.dose.start: given.drug for given in drug_doses(text, measured)}
        claims = [claim for claim in dose_schedules(text, measured) if claim.stated]
        stated: defaultdict[tuple[Measure, ...], set[Schedule]] = defaultdict(set)
        for claim in claims:
            stated[claim.dose.measures].update(claim.possible)
        for claim in claims:
            drug = drug_of.get(claim.dose.start)
            told = {
                schedule
                for dose in _of_a_dose(claim.dose)
                for candidates, schedule in self._schedules.get(dose, ())
                if drug is None or candidates is None or drug.name in candidates
            }
            known = with_parts_of_day(told) | self._new_schedules
            claimed = set(claim.possible)
            if any(schedule.part_of_day for schedule in claimed):
                claimed = with_parts_of_day(stated[claim.dose.measures])
            if told and not any(one.is_same(other) for one in claimed for other in known):
                yield claim.dose

    def _has(self, value: str, unit: str | None) -> bool:
        if self._tells_systolic and unit in (None, "mmhg") and "/" in value:
            return self._numbers.issuperset(value.split("/"))
        if unit is None or not self._in_english:
            return value in self._numbers
        if any(measure(value, told) in self._measures for told in (unit, _told_as(unit))):
            return True
        if self._is_converted(value, unit):
            return True
        if unit in _STRENGTHS and value.count("/") == 1:
            # Of one tablet: "875-125 mg" and "875 mg/125 mg" are also told as "875/125 mg".
            pair = rf"(?: ?{unit})? ?[-–/+] ?".join(map(re.escape, value.split("/")))
            if re.search(rf"(?<![\d.,]){pair}(?![.,]?\d)", self._support):
                return True
        is_single = as_float(value) is not None
        if unit == "%" and is_single and (None, as_share(value)) in self._measures:
            return True
        # A single digit without a unit is more often a label ("Expert 2", "2.").
        is_measurement = len(value.partition(".")[0]) > 1
        return is_measurement and unit in _OFTEN_UNWRITTEN and (None, value) in self._measures

    def _is_in_the_other_half(self, time: TimeOfDay) -> bool:
        """Return whether the support has a time only 12 hours earlier or later."""
        return (
            time.is_certain
            and time.minutes not in self._times
            and time.other_half in self._certain_times
        )

    def _has_half_of_a_pressure(self, text: str, claim: Quantity) -> bool:
        before = text[max(claim.start - _REACH, 0) : claim.start]
        half = _HALF_OF_A_PRESSURE.search(before) if claim.unit == "mmhg" else None
        if half is None:
            return False
        told = {pressure[0 if half["systolic"] else 1] for pressure in self._pressures}
        return told.issuperset(claim.values)

    def _has_period(self, text: str, claim: Quantity) -> bool:
        """Return whether the support has in words a time that is claimed as `3/52`."""
        periods = set() if claim.unit else set(_british(claim, *_around(claim, text)))
        return bool(periods) and self._measures.issuperset(periods)

    def _has_day(self, text: str, claim: Quantity) -> bool:
        """Return whether the support has a date of whose year nothing is claimed."""
        is_day = claim.unit is None and _BEFORE_A_DAY.search(_around(claim, text)[0])
        return bool(is_day) and self._days.issuperset(claim.values)

    def _is_converted(self, value: str, unit: str) -> bool:
        """Return whether the support has a value in another unit, apart from rounding."""
        number = as_float(value)
        if number is None:
            return False
        size = scale(unit)
        exact = size.basic(number)
        last_place = 10.0 ** -len(value.partition(".")[2])
        for other, values in self._basic.get(size.dimension, {}).items():
            if other == unit:
                continue
            if is_rounded(unit, other):
                margin = _ROUNDED_ON_CALENDAR * exact
            else:
                margin = min(_ROUNDED * exact, 0.5 * last_place * size.factor)
            nearest = bisect_left(values, exact - margin)
            if nearest < len(values) and values[nearest] <= exact + margin:
                return True
        return False

    def _is_swapped(self, drug: str, dose: Quantity) -> bool:
        if drug not in self._drugs or not self._measures.issuperset(dose.measures):
            return False
        dosed = self._dosed.values()
        has_doses = any(drug in (drugs or ()) for drugs in chain.from_iterable(dosed))
        return has_doses and any(
            given and all(drugs is not None and drug not in drugs for drugs in given)
            for measured in dose.measures
            if (given := self._dosed.get(measured))
        )

    @cached_property
    def _schedules(self) -> Mapping[Measure, set[tuple[frozenset[str] | None, Schedule]]]:
        """Candidate drugs and possible schedules of each dose in the support."""
        given = {each.dose.start: each for each in drug_doses(self._support, self._quantities)}
        told: defaultdict[Measure, set[tuple[frozenset[str] | None, Schedule]]] = defaultdict(set)
        for each in dose_schedules(self._support, self._quantities):
            drug_dose = given.get(each.dose.start)
            candidates = drug_dose.candidates if drug_dose else None
            for dose in _of_a_dose(each.dose):
                told[dose].update((candidates, schedule) for schedule in each.possible)
        return told

    @cached_property
    def _new_schedules(self) -> set[Schedule]:
        return new_schedules(self._support)

    @cached_property
    def _dosed(self) -> Mapping[Measure, Sequence[frozenset[str] | None]]:
        """Candidate drugs of each occurrence of a dose in the support."""
        dosed = defaultdict(list)
        for given in drug_doses(self._support, self._quantities):
            for measured in given.dose.measures:
                dosed[measured].append(given.candidates)
        return dosed


@lru_cache(maxsize=64)  # a field of a summary is checked against several texts
def _measured(text: str) -> tuple[tuple[Quantity, ...], Mapping[_Span, Label]]:
    """Return the quantities in a text, and the names with a number that has no unit."""
    written = InDigits(text)
    measured = tuple(quantities(written))
    with_unit = {quantity.start for quantity in measured if quantity.unit}
    labeled = {written.span(label.start, label.end): label for label in labels(written.digits)}
    return measured, {span: label for span, label in labeled.items() if span[0] not in with_unit}


def _in_units(quantity: Quantity, text: str) -> Iterator[tuple[str, str]]:
    """Yield each value of a quantity with its unit, or with its customary one."""
    for value in quantity.values:
        if quantity.unit:
            yield value, quantity.unit
        else:
            yield from in_customary_units(text, quantity.start, value)


def _implied(quantity: Quantity, text: str) -> Iterator[Measure]:
    """Yield an amount and its volume (`1 g/50 mL`), the percentages of a third, and times."""
    before, after = _around(quantity, text)
    if quantity.unit is None and (
        "/" not in quantity.text or _OF_A_WHOLE.match(after) or _AS_A_SHARE.search(before)
    ):
        percents = chain.from_iterable(_THIRDS.get(value, ()) for value in quantity.values)
        yield from (measure(percent, "%") for percent in percents)
    if quantity.unit is None:
        yield from _british(quantity, before, after)
    strength = _OF_A_VOLUME.fullmatch(quantity.unit or "")
    if (
        strength
        and float(strength["volume"]) > 1
        and strength.group("volume", "unit") != _CONCENTRATION
        and any(drugs(before))
        # The amount of another volume is another one: "250 mg/5 mL, give 10 mL".
        and not (_VOLUME.search(before) or _VOLUME.search(after))
    ):
        yield measure(strength["volume"], strength["unit"])
        for value in quantity.values:
            yield measure(value, strength["amount"])


def _around(quantity: Quantity, text: str) -> tuple[str, str]:
    """Return the text before and behind a quantity, as far as `_REACH`."""
    before = text[max(quantity.start - _REACH, 0) : quantity.start]
    return before, text[quantity.end : quantity.end + _REACH]


def _british(quantity: Quantity, before: str, after: str) -> Iterator[Measure]:
    """Yield the time that is meant by `3/52` or `29+4` in British notes."""
    written = _PERIOD.search(quantity.text) or _PERIOD.match(after)
    after_it = after.removeprefix(written[0]) if written else ""
    if (
        written
        and (
            _BEFORE_A_PERIOD.search(before)
            or _AFTER_A_PERIOD.match(after_it)
            or (_OF_A_PERIOD[written[1]] == "wk" and _BEFORE_WEEKS.search(before))
        )
        and not _COUNTED.match(after_it)
        and not _COUNTED_BEFORE.search(before)
        and not any(map(_VISION.search, (before, quantity.text, after_it)))
    ):
        for value in quantity.values:
            yield measure(value.partition("/")[0], _OF_A_PERIOD[written[1]])
    days = _DAYS_OF_GESTATION.match(after)
    weeks = quantity.values[-1]
    if (
        days
        and weeks.isdecimal()
        and int(weeks) in _WEEKS_OF_GESTATION
        and (_OBSTETRIC.search(before) or _OBSTETRIC.search(after))
    ):
        yield from (measure(weeks, "wk"), measure(days[1], "d"))


def _scores(quantity: Quantity, text: str) -> Iterator[str]:
    """Yield the values of a score with its highest one: `6/15` for `GCS 6`."""
    if quantity.unit is None:
        for value in quantity.values:
            if score := as_score(text, quantity.start, value):
                yield score


def _days_of_dates(quantity: Quantity) -> Iterator[str]:
    """Yield the day and month of a date, with a slash and with a point."""
    for value in quantity.values:
        if date := _DATE.fullmatch(value):
            day, month = date.groups()
            yield f"{day}/{month}"
            yield canonical_number(f"{day}.{month:0>2}")


def _pressures(quantity: Quantity, text: str) -> Iterator[tuple[str, ...]]:
    """Yield the values of a blood pressure such as `BP 120/80`."""
    if quantity.unit is None:
        begin = max(quantity.start - _REACH, 0)
        names = list(_BLOOD_PRESSURE.finditer(text, begin, quantity.start))
        between = text[names[-1].end() : quantity.start] if names else ""
        if not names or _NO_PRESSURE.search(between) or any(drugs(between)):
            return
    if quantity.unit in (None, "mmhg"):
        pairs = (tuple(value.split("/")) for value in quantity.values)
        yield from (pair for pair in pairs if len(pair) == 2)


def _of_a_dose(quantity: Quantity) -> Iterator[Measure]:
    """Yield the measures of a quantity without its period."""
    unit = quantity.unit.removesuffix(_WEEKLY) if quantity.unit else None
    for value in quantity.values:
        yield measure(value, unit)


def _told_as(unit: str) -> str:
    """Return the unit by which a quantity is also told."""
    if unit in _SAME_FLOW:
        return _SAME_FLOW[unit]
    return unit.removesuffix(_WEEKLY) if unit.endswith(_WEEKLY) else unit + _WEEKLY


def _claims(text: str, measured: Iterable[Quantity]) -> Iterator[Quantity]:
    for quantity in measured:
        counts_agents = quantity.unit is None and _COUNTED_AGENTS.match(text, quantity.end)
        if quantity.certain and not counts_agents:
            yield quantity
