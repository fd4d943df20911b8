"""A form: how records of one program are recognised, and read as elements of our JSON array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

MISSING: tuple[object, ...] = (None, "", [], {})
"""Values that mean that a field is empty."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a program writes its results."""

    name: str
    """The name of the form in a report."""
    fields: frozenset[str]
    """A record that has all of them is of this form."""
    gold: str
    """The field with the right option, for messages."""
    elements: Callable[[Record], Sequence[Record]]
    """Elements as in docs/files.md, of which any field but `label` may be missing: one for each
    reply to the question."""
    reading: str = ""
    """A field that distinguishes several readings of the same replies: only those of the first one
    in a file count."""


def first_of(record: Record, *names: str) -> Any:
    """Return the first value that is present; None without one."""
    return next((record[name] for name in names if record.get(name) not in MISSING), None)
