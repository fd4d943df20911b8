"""Reads what was chosen in the check boxes and drop-down lists of a Word form."""

from __future__ import annotations

from typing import Any

from demos.document_assistant.word_names import W14, W

_TICKED, _NOT_TICKED = "[x]", "[ ]"


def field_choice(field: Any) -> str:
    """Return the state of a check box or the entry of a drop-down list; empty for other fields.

    Args:
        field: Element `w:fldChar` that begins a field.
    """
    box = field.find(f"{W}ffData/{W}checkBox")
    if box is not None:
        state = box.find(f"{W}checked")
        state = box.find(f"{W}default") if state is None else state
        return _TICKED if is_on(state) else _NOT_TICKED
    choices = field.find(f"{W}ffData/{W}ddList")
    if choices is None:
        return ""
    chosen = choices.find(f"{W}result")
    chosen = choices.find(f"{W}default") if chosen is None else chosen
    number = "0" if chosen is None else chosen.get(f"{W}val", "0")
    entries = [str(one.get(f"{W}val", "")) for one in choices.iterchildren(f"{W}listEntry")]
    return {str(at): entry for at, entry in enumerate(entries)}.get(number, "")


def control_state(control: Any) -> str:
    """Return the state of a content control `w:sdt` that is a check box; empty for others."""
    box = control.find(f"{W}sdtPr/{W14}checkbox")
    if box is None:
        return ""
    return _TICKED if is_on(box.find(f"{W14}checked")) else _NOT_TICKED


def is_on(element: Any) -> bool:
    """Return whether a property is on; one without a value is, one that is missing is not."""
    if element is None:
        return False
    value = element.get(f"{W}val", element.get(f"{W14}val", "1"))
    return value not in ("0", "false", "off", "none")
