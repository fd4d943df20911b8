"""Tells which layers (optional content) of a PDF are not shown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from demos.document_assistant.pdf_objects import listed, resolved

_MOST_MEMBERS = 100
"""Maximum number of layers whose states decide about a content together."""


class Layers:
    """The layers of a document as they are when it is opened.

    Args:
        catalog: Root of the document.
    """

    def __init__(self, catalog: Any) -> None:
        properties = resolved(catalog.get("/OCProperties"))
        default: Any = resolved(properties.get("/D")) if hasattr(properties, "get") else None
        if not hasattr(default, "get"):
            default = {}
        self._are_off = default.get("/BaseState") == "/OFF"
        exceptions = listed(default.get("/ON" if self._are_off else "/OFF"))
        self._exceptions = {_number(one) for one in exceptions} - {None}
        self._are_off_in_view = dict(_states_in_view(default))

    def is_off(self, content: Any) -> bool:
        """Return whether the content of a layer, or of a membership in several, is not shown.

        Args:
            content: Value of `/OC`, or the property of marked content; None is shown.
        """
        group = resolved(content)
        if not hasattr(group, "get"):
            return False
        if group.get("/Type") != "/OCMD":
            return self._is_group_off(content)
        if "/VE" in group:
            return self._is_shown(group["/VE"], iter(range(_MOST_MEMBERS))) is False
        members = islice(listed(group.get("/OCGs")), _MOST_MEMBERS)
        off = [self._is_group_off(one) for one in members if resolved(one) is not None]
        shown = {
            "/AllOn": not any(off),
            "/AnyOff": any(off),
            "/AllOff": all(off),
        }.get(str(group.get("/P")), not all(off))
        return bool(off) and not shown

    def _is_group_off(self, group: Any) -> bool:
        number = _number(group)
        if number in self._are_off_in_view:
            return self._are_off_in_view[number]
        return number is not None and (number in self._exceptions) != self._are_off

    def _is_shown(self, expression: Any, budget: Iterator[int]) -> bool | None:
        """Return the value of a layer or of `[/And | /Or | /Not …]`; None if it is not known.

        Args:
            expression: Reference to a layer, or an operator with its operands.
            budget: Ends when enough operands were read.
        """
        if next(budget, None) is None:
            return None
        parts = resolved(expression)
        if hasattr(parts, "get"):
            return not self._is_group_off(expression)
        if not isinstance(parts, list) or not 1 < len(parts) <= _MOST_MEMBERS:
            return None
        values = [self._is_shown(one, budget) for one in parts[1:]]
        if None in values:
            return None
        if parts[0] == "/Not":
            return not values[0]
        return {"/And": all(values), "/Or": any(values)}.get(str(parts[0]))


def _states_in_view(default: Any) -> Iterator[tuple[int | None, bool]]:
    """Yield the layers whose usage says whether they are shown on a screen, and if they are off."""
    for one in listed(default.get("/AS")):
        usage = resolved(one)
        if not hasattr(usage, "get") or usage.get("/Event") != "/View":
            continue
        if "/View" not in listed(usage.get("/Category")):
            continue
        for group in listed(usage.get("/OCGs")):
            found = resolved(group)
            for key in ("/Usage", "/View", "/ViewState"):
                found = resolved(found.get(key)) if hasattr(found, "get") else None
            if found in ("/ON", "/OFF"):
                yield _number(group), found == "/OFF"


def _number(value: Any) -> int | None:
    """Return the number of an object."""
    reference = value if hasattr(value, "idnum") else getattr(value, "indirect_reference", None)
    return None if reference is None else int(reference.idnum)
