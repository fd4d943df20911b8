"""Pairs the doses in a text with their drugs."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from exaid_core.checks.drugs import drugs, international_name
from exaid_core.checks.quantities import Quantity
from exaid_core.checks.term_list import phrases

_DOSE_UNITS = phrases("g, mg, ug, ng, u, mu, ku, ml, l, mmol, meq")
_PER = phrases("kg, m2, s, min, h, d, wk, dose")  # no volumes: mg/dL is a laboratory unit

_INSULINS = phrases("glargine, lispro, aspart, detemir, degludec, glulisine")
_KIND_OF = dict.fromkeys(_INSULINS, "insulin")

_ENDS_SENTENCE = re.compile(r"[.!?](?=\s+[^\sa-z0-9])|[;\n]")
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)

_CONJUNCTION = r"\b(?:and|or|but|plus|with|then|while|than|instead|versus|vs|not|no|without)\b"
# Text between a drug and its dose: "metoprolol (25 mg)", "metoprolol was raised to 25 mg".
_DIRECT = re.compile(r"[^\w,;+]{0,4}")
_CLOSE = re.compile(rf"(?:(?!{_CONJUNCTION})[^,;|]){{0,40}}|\s?,\s?", re.IGNORECASE)
# Text between a dose and its drug: "25 mg metoprolol", "25 mg IV metoprolol",
# "25 mg of metoprolol", "25 mg daily of metoprolol"
_DIRECT_OR_ROUTE = re.compile(
    r"[^\w,;+]{0,4}(?:(?:iv|im|io|po|sc|sq|oral|intravenous|intramuscular|subcutaneous|inhaled"
    r"|nebuli[sz]ed|bolus|tablets?|capsules?) )?",
    re.IGNORECASE,
)
_OF = re.compile(
    r"[^,;:()|]{0,20}?\bof (?<!instead of )(?<!because of )(?<!place of )(?<!lieu of )(?:the )?",
    re.IGNORECASE,
)
# Text between two doses of a drug: "from 25 mg to 50 mg"
_ONWARD = re.compile(r"\W*(?:\b(?:then|or|up to|to)\b)?\W*", re.IGNORECASE)
# Text between two drugs of one dose: "metoprolol and lisinopril"
_COORDINATES = re.compile(rf"[\s,/+-]*(?:{_CONJUNCTION})?[\s,/+-]*", re.IGNORECASE)


class DrugMention(NamedTuple):
    """A mention of a drug in a text."""

    start: int
    """Start index of the drug's name."""
    end: int
    """End index of the drug's name."""
    name: str
    """International nonproprietary name of the drug."""

    @property
    def names(self) -> frozenset[str]:
        """Names that a dose of the drug counts for: a dose of glargine is also one of insulin."""
        return frozenset({self.name, _KIND_OF.get(self.name, self.name)})


@dataclass(frozen=True, slots=True)
class DrugDose:
    """A dose in a text, with the drug that it belongs to."""

    dose: Quantity
    """Quantity of the dose: a mass, volume or number of units, possibly per kilogram or time."""
    drug: DrugMention | None
    """Drug next to the dose; None if that is not clear."""
    candidates: frozenset[str] | None
    """Names of the drugs that the dose may belong to; None if it may be any drug."""


_Items = Sequence[DrugMention | Quantity]


def drug_doses(text: str, measured: Iterable[Quantity]) -> Iterator[DrugDose]:
    """Yield the doses in a text with their drugs.

    A dose belongs to the drug next to it in the same sentence, or to the drug of the preceding dose
    (`25 mg, then 50 mg`). Next to several drugs (`metoprolol and lisinopril 10 mg`), it may belong
    to any of them. Without an adjacent drug, or with other words in between, it may belong to any
    drug, including one that is not on the list.

    Args:
        text: Text normalized by `plain`.
        measured: Quantities in the text, as `quantities` yields them.
    """
    bounds = [end.end() for end in _ENDS_SENTENCE.finditer(text)]
    doses = filter(_is_dose, measured)
    for sentence, of_sentence in groupby(doses, key=lambda dose: bisect(bounds, dose.start)):
        start = bounds[sentence - 1] if sentence else 0
        end = bounds[sentence] if sentence < len(bounds) else len(text)
        mentions = [
            DrugMention(start + first, start + last, international_name(name))
            for first, last, name in drugs(text[start:end])
        ]
        items: _Items = sorted([*of_sentence, *mentions], key=attrgetter("start"))
        yield from _Sentence(text, items, end).doses()


def _is_dose(quantity: Quantity) -> bool:
    unit, *divisors = (quantity.unit or "").split("/")
    return unit in _DOSE_UNITS and all(part.lstrip("0123456789.") in _PER for part in divisors)


class _Sentence:
    def __init__(self, text: str, items: _Items, end: int) -> None:
        self._text = text
        self._items = items
        self._end = end
        self._given: set[int] = set()
        """Indices of the drugs whose dose precedes them."""

    def doses(self) -> Iterator[DrugDose]:
        mentions = [item for item in self._items if isinstance(item, DrugMention)]
        doses = [item for item in self._items if isinstance(item, Quantity)]
        if _RESPECTIVELY.search(self._text, self._items[0].start, self._end) and mentions:
            if len(mentions) == len(doses):
                for dose, drug in zip(doses, mentions, strict=True):
                    yield DrugDose(dose, drug, drug.names)
            else:
                names = frozenset[str]().union(*(drug.names for drug in mentions))
                yield from (DrugDose(dose, None, names) for dose in doses)
            return
        previous: DrugDose | None = None
        for index, item in enumerate(self._items):
            if isinstance(item, Quantity):
                previous = self._of(index, item, previous)
                yield previous

    def _of(self, index: int, dose: Quantity, previous: DrugDose | None) -> DrugDose:
        before = self._drug(index - 1) if index - 1 not in self._given else None
        after = self._drug(index + 1)
        left, right = self._gap(index - 1), self._gap(index)
        if after and (
            _OF.fullmatch(right)
            or (_DIRECT_OR_ROUTE.fullmatch(right) and not (before and _DIRECT.fullmatch(left)))
        ):
            self._given.add(index + 1)
            if before and _CLOSE.fullmatch(left) and not _OF.fullmatch(right):
                return DrugDose(dose, None, self._run(index - 1, -1) | self._run(index + 1, 1))
            return DrugDose(dose, after, self._run(index + 1, 1))
        if before and (_DIRECT.fullmatch(left) or _CLOSE.fullmatch(left)):
            return DrugDose(dose, before, self._run(index - 1, -1))
        follows_dose = index and isinstance(self._items[index - 1], Quantity)
        if previous and follows_dose and _ONWARD.fullmatch(left):
            return DrugDose(dose, previous.drug, previous.candidates)
        return DrugDose(dose, None, None)

    def _run(self, index: int, step: int) -> frozenset[str]:
        """Return the names of the drug at `index` and of the drugs coordinated with it."""
        names: set[str] = set()
        drug = self._drug(index)
        while drug and index not in self._given - {index}:
            names |= drug.names
            if not _COORDINATES.fullmatch(self._gap(min(index, index + step))):
                break
            index += step
            drug = self._drug(index)
        return frozenset(names)

    def _drug(self, index: int) -> DrugMention | None:
        item = self._items[index] if 0 <= index < len(self._items) else None
        return item if isinstance(item, DrugMention) else None

    def _gap(self, index: int) -> str:
        """Return the text between an item and the next."""
        if 0 <= index < len(self._items) - 1:
            return self._text[self._items[index].end : self._items[index + 1].start]
        return ""
