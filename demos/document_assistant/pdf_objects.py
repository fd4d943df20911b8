"""Follows the references between the objects of a PDF."""

from __future__ import annotations

from typing import Any


def resolved(value: Any) -> Any:
    """Return an object of a PDF that a reference points to."""
    return value.get_object() if hasattr(value, "get_object") else value


def listed(value: Any) -> list[Any]:
    """Return the members of an array; another object is its only member, and None has none."""
    value = resolved(value)
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
