"""Reads what was filled into the fields of a PDF form."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from demos.document_assistant.pdf_objects import listed, resolved

_DEEPEST = 8
"""Maximum number of parents of a field."""
_MOST_WIDGETS, _MOST_OPTIONS = 100, 1_000
_PASSWORD, _PUSH_BUTTON = 1 << 13, 1 << 16  # bits of a field's flags
_INHERITED = ("/FT", "/V", "/Opt", "/I")


def filled_field(widget: Any) -> tuple[str, str]:
    """Return the whole name of a field, and its last name and its value; empty without a value.

    `[ ]` is no choice, and `[x]` a tick whose state has only a number.
    """
    names: list[str] = []
    entries: dict[str, Any] = {}
    widgets = [widget]  # those that show the same field
    flags, field = 0, widget
    for _ in range(_DEEPEST):  # the parts of a field may stand in its parents
        if not hasattr(field, "get"):
            break
        if "/T" in field:
            if not names and "/Kids" in field:
                widgets = listed(field["/Kids"])
            names.append(str(resolved(field["/T"])))
        for key in _INHERITED:
            if entries.get(key) is None:
                entries[key] = resolved(field.get(key))
        flags |= int(field.get("/Ff", 0))
        field = resolved(field.get("/Parent"))
    if flags & _PASSWORD:
        return "", ""
    options = [_option(one) for one in islice(listed(entries.get("/Opt")), _MOST_OPTIONS)]
    if entries.get("/FT") == "/Btn" and not flags & _PUSH_BUTTON:
        said = _ticked(widgets, entries["/V"], [shown for _, shown in options]) or "[ ]"
    else:
        said = _joined(_chosen(entries.get("/V"), entries.get("/I"), options))
    name = names[0] if names else "field"
    return (".".join(reversed(names)), f"{name}: {said}") if said else ("", "")


def _ticked(widgets: list[Any], value: Any, options: list[str]) -> str:
    """Return which buttons are on: what they show (`/AS`) counts more than the stored value.

    The options of a group are in the order of its buttons.
    """
    shown = dict[int, Any]()
    if len(widgets) <= _MOST_WIDGETS:
        buttons = enumerate(map(resolved, widgets))
        shown = {place: one.get("/AS") for place, one in buttons if hasattr(one, "get")}
    states = {place: _text(one) for place, one in shown.items() if one is not None}
    is_group = 1 < len(widgets) <= _MOST_WIDGETS
    texts: list[str] = []
    for place, state in states.items() or ((len(options), _text(one)) for one in listed(value)):
        number = len(options)
        if state.isdecimal():
            number = place if is_group else int(state[:9])
        if number < len(options):
            texts.append(options[number])
        elif state.isdecimal() and len(widgets) == 1:
            texts.append("[x]")
        elif state != "Off":
            texts.append(state)
    return _joined(dict.fromkeys(texts))


def _chosen(value: Any, places: Any, options: list[tuple[str, str]]) -> list[str]:
    """Return the values of a field, as its list of options shows them."""
    if value is None and options:
        numbers = [one for one in listed(places)[:_MOST_OPTIONS] if isinstance(one, int)]
        return [options[one][1] for one in numbers if 0 <= one < len(options)]
    shown = dict(reversed(options))
    return [shown.get(text, text) for text in map(_text, listed(value))]


def _option(option: Any) -> tuple[str, str]:
    """Return the stored value of an option and the text that the form shows for it."""
    texts = [_text(one) for one in listed(option)[:2]]
    return (texts[0], texts[-1]) if texts else ("", "")


def _text(value: Any) -> str:
    from pypdf.generic import NameObject

    value = resolved(value)
    if isinstance(value, NameObject):
        return value.removeprefix("/")
    return value if isinstance(value, str) else ""


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(filter(None, texts))
