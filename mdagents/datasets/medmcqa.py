"""Detects whether the field `cop` of a MedMCQA file numbers the options from 0 or from 1.

The authors' files count from 1, those of openlifescienceai/medmcqa from 0; both have the same
fields. A single record can be ambiguous, and so can a file without a 0 or a 4.

Source: https://github.com/medmcqa/medmcqa, https://huggingface.co/datasets/openlifescienceai/medmcqa
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdagents.datasets.source_note import NOTE, origin_of
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json

COLUMNS = ("opa", "opb", "opc", "opd")
"""Fields with the options, in order."""

WITHHELD = -1
"""Value of `cop` in splits with withheld answers."""


@dataclass(frozen=True, slots=True)
class Counting:
    """The option numbering of a file."""

    first: int
    """Value of `cop` for the first option: 0 or 1."""
    reason: str
    """Short explanation of how the numbering was determined."""

    def __str__(self) -> str:
        return f"field 'cop' counts the options from {self.first} ({self.reason})"


def counting_of(path: Path, lines: Iterable[tuple[int, bytes]]) -> Counting | None:
    """Return the option numbering of a file; None when no record has a number in the field `cop`.

    The origin noted in `SOURCE.json` takes precedence over the records.

    Args:
        path: Path of the file; a `SOURCE.json` next to it may state its origin.
        lines: Pairs (line number from 1, line) of the file.

    Raises:
        ConfigError: The records contradict each other, or the numbering is ambiguous.
    """
    has_number = False  # other than that of withheld answers
    shown_by: dict[int, str] = {}
    whole = hashlib.sha256()
    for number, line in lines:
        whole.update(line)
        if b'"cop"' not in line or b'"opa"' not in line:
            continue
        found = _NUMBER.search(line)  # four times as fast as parsing a file of 180,000 records
        option = int(found[1][:3]) if found else WITHHELD
        has_number |= option != WITHHELD
        if (shown := _shown(option, line, f"{path} line {number}")) is not None:
            shown_by.setdefault(shown[0], f"{shown[1]} on line {number}")
    if not has_number:
        return None
    origin = origin_of(path, whole.hexdigest())
    if origin is not None and origin.cop_from is not None:
        return Counting(origin.cop_from, f"as {NOTE} beside it says")
    if len(shown_by) > 1:
        raise ConfigError(
            f"{path}: field 'cop' counts from 0 (by {shown_by[0]}) and from 1 (by {shown_by[1]}); "
            "make a file of each kind"
        )
    if not shown_by:
        raise ConfigError(
            f"{path}: field 'cop' may count from 0 or from 1, as no record has a 0 or a 4; say "
            f"which: python -m mdagents data download medmcqa --from {path} --cop-from 1 (the "
            "authors' files) or 0 (openlifescienceai/medmcqa)"
        )
    ((first, reason),) = shown_by.items()
    return Counting(first, f"by {reason}")


def place_of(record: dict[str, Any]) -> object:
    """Return the field `cop`, with a number written as text, as in a table, converted to int.

    Beside an empty cell, pandas writes whole numbers as 2.0.
    """
    place = record["cop"]
    if isinstance(place, str | float) and (found := _PLACE.fullmatch(str(place))):
        return int(found[1])
    return None if isinstance(place, bool) else place


_PLACE = re.compile(r"\s*(-?[0-9])(?:\.0*)?\s*")
_NUMBER = re.compile(rb'"cop"\s*:\s*"?\s*(-?[0-9]+)')


def _shown(place: int, line: bytes, where: str) -> tuple[int, str] | None:
    """Return (value of `cop` for the first option, evidence) if the record is unambiguous."""
    if place in (0, len(COLUMNS)):
        return (0 if place == 0 else 1), f"a {place}"
    if b'"answer' not in line or not 0 < place < len(COLUMNS):
        return None
    try:
        record = load_json(line, where)
    except ConfigError:
        return None  # reported when the record is read
    if not isinstance(record, dict):
        return None
    texts = [record.get(column) for column in COLUMNS]
    for field, right in (
        ("answer_idx", _only_place(record.get("answer_idx"), [*"ABCD"])),
        ("answer", _only_place(record.get("answer"), texts)),
    ):
        if right is not None and place - right in (0, 1):
            return place - right, f"the field '{field}'"
    return None


def _only_place(text: object, among: list[Any]) -> int | None:
    """Return the index of the only item with the given text; None for no match or several."""
    if not isinstance(text, str) or not text.strip():
        return None
    same = [i for i, one in enumerate(among) if str(one).strip() == text.strip()]
    return same[0] if len(same) == 1 else None
