"""Forms: recognize a program's records and convert them to elements of our JSON array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.scoring.fields import MISSING

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """The result format of a program."""

    name: str
    """Name of the form in reports."""
    fields: frozenset[str]
    """Fields that identify the form: a record with all of them has this form."""
    gold: str
    """Name of the field with the right option, for messages."""
    elements: Callable[[Record], Sequence[Record]]
    """Converter to elements as in docs/reference/files.md, one for each reply to the question; any
    field but `label` may be missing."""
    reading: str = ""
    """Field that distinguishes several readings of the same replies; only the first reading of a
    question counts."""
    question: tuple[str, ...] = ()
    """Fields that tell which question a reading is of."""


def first_of(record: Record, *names: str) -> Any:
    """Return the first nonempty value among the named fields; None without one."""
    return next((record[name] for name in names if record.get(name) not in MISSING), None)
