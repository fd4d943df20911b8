"""Values that are lists: texts with commas, and pairs `name=value`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from mdagents_llm.terminal.did_you_mean import did_you_mean


def parts_of(value: object) -> tuple[str, ...]:
    """Return the parts of a comma-separated text, or of a list.

    Raises:
        ValueError: The value is neither.
    """
    if not isinstance(value, Iterable):
        raise ValueError("give a text with commas, or a list of texts")
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in map(str, parts) if part.strip())


def pairs_of(value: object) -> list[tuple[str, str, str]]:
    """Return (entry, name, value) for each item of a mapping or of a list of `name=value`.

    Raises:
        ValueError: The value is neither.
    """
    if isinstance(value, Mapping):
        pairs = {str(name): "" if of is None else str(of) for name, of in value.items()}
        return [(f"{name}={of}", name, of) for name, of in pairs.items()]
    if not isinstance(value, Iterable):
        raise ValueError("give NAME -> value, or a list of NAME=VALUE")
    entries = [value] if isinstance(value, str) else [str(entry) for entry in value]
    return [(entry, *entry.partition("=")[::2]) for entry in entries]


def meant(name: str, known: Collection[str]) -> str:
    """Return a suggestion for a name that is not known; empty for one that is."""
    return "" if name in known else did_you_mean(name, known)


def as_flag(value: object) -> object:
    """Return a value as the command line and `run.json` write it."""
    if isinstance(value, Mapping):
        return [f"{name}={of}" for name, of in value.items()]
    if isinstance(value, tuple):
        return ",".join(value)
    return value.value if isinstance(value, StrEnum) else value
