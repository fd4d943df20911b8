"""Checks the numbers, doses and drugs in a summary against the text that it was made from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from exaid_core.checks.doses import drug_doses
from exaid_core.checks.drugs import NamedDrugs, drugs
from exaid_core.checks.quantities import Quantity, numbers, plain, quantities

# Units of vital signs and ages, which are often omitted.
_OFTEN_UNWRITTEN = frozenset({"mmhg", "1/min", "%", "°c", "°f", "year"})

# Counts of agents who hold a view are the summary's own; the agents do not state them.
_COUNTED_AGENTS = re.compile(
    r"\s(?:(?:out )?of (?:the )?\w+ )?(?:experts?|agents?|doctors?|specialists?|clinicians?"
    r"|physicians?|teams?|members?|opinions?|views?|answers?|votes?)\b",
    re.IGNORECASE,
)


def unsupported_terms(summary_texts: Iterable[str], support: str) -> tuple[str, ...]:
    """Return the numbers, doses and drugs in a summary that its support does not contain.

    Numbers are compared by value and unit: `5mg` equals `5 mg`, `0.50` equals `0.5`, `two` equals
    `2`, and 5 mg/kg supports neither 5 mg nor 5 g. A number without a unit is supported by any
    number of that value, a drug by any of its names. A dose next to a drug (`metoprolol 10 mg`)
    counts as swapped, and is returned, if the support gives that drug only with other doses and
    that dose only with other drugs.

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


_Meaning: TypeAlias = str | tuple[str | None, tuple[str, ...], str | None]
"""Identity of a term: the name of a drug, or the values and unit of a quantity preceded by the drug
of a dose (None for other quantities)."""


class _Evidence:
    def __init__(self, support: str) -> None:
        self._support = support
        self._numbers = numbers(support)
        self._measured: set[tuple[str, str | None]] = set()
        self._quantities = tuple(quantities(support))
        for quantity in self._quantities:
            self._numbers.update(quantity.values)
            self._measured.update((value, quantity.unit) for value in quantity.values)
        self._drugs = NamedDrugs(support)

    def missing(self, text: str) -> list[tuple[_Meaning, str]]:
        """Return the meaning and wording of each term of `text` without support, in order."""
        measured = tuple(quantities(text))
        found: list[tuple[int, _Meaning, str]] = [
            (claim.start, (None, claim.values, claim.unit), claim.text)
            for claim in _claims(text, measured)
            if not all(self._has(value, claim.unit) for value in claim.values)
        ]
        found += [
            (start, name, text[start:end])
            for start, end, name in drugs(text)
            if name not in self._drugs
        ]
        for given in drug_doses(text, measured):
            if given.drug and self._is_swapped(given.drug.name, given.dose):
                start, end, name = given.drug
                meaning = (name, given.dose.values, given.dose.unit)
                found.append((start, meaning, f"{text[start:end]} {given.dose.text}"))
        return [(meaning, term) for _, meaning, term in sorted(found, key=itemgetter(0))]

    def _has(self, value: str, unit: str | None) -> bool:
        if unit is None:
            return value in self._numbers
        if (value, unit) in self._measured:
            return True
        # A single digit without a unit is more often a label ("Expert 2", "2.").
        is_measurement = len(value.partition(".")[0]) > 1
        return is_measurement and unit in _OFTEN_UNWRITTEN and (value, None) in self._measured

    def _is_swapped(self, drug: str, dose: Quantity) -> bool:
        measured = ((value, dose.unit) in self._measured for value in dose.values)
        if drug not in self._drugs or not all(measured):
            return False
        dosed = self._dosed.values()
        has_doses = any(drug in (drugs or ()) for drugs in chain.from_iterable(dosed))
        return has_doses and any(
            given and all(drugs is not None and drug not in drugs for drugs in given)
            for value in dose.values
            if (given := self._dosed.get((value, dose.unit)))
        )

    @cached_property
    def _dosed(self) -> Mapping[tuple[str, str | None], Sequence[frozenset[str] | None]]:
        """Candidate drugs of each occurrence of a dose in the support, by value and unit."""
        dosed = defaultdict(list)
        for given in drug_doses(self._support, self._quantities):
            for value in given.dose.values:
                dosed[value, given.dose.unit].append(given.candidates)
        return dosed


def _claims(text: str, measured: Iterable[Quantity]) -> Iterator[Quantity]:
    for quantity in measured:
        counts_agents = quantity.unit is None and _COUNTED_AGENTS.match(text, quantity.end)
        if quantity.certain and not counts_agents:
            yield quantity
