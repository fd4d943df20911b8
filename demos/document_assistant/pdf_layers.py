"""Tells which layers (optional content) of a PDF are not shown."""

from __future__ import annotations

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
        return number is not None and (number in self._exceptions) != self._are_off


def _number(value: Any) -> int | None:
    """Return the number of an object."""
    reference = value if hasattr(value, "idnum") else getattr(value, "indirect_reference", None)
    return None if reference is None else int(reference.idnum)
