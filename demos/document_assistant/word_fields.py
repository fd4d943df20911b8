"""Finds the codes of fields in a Word document, of which Word shows only the results."""

from __future__ import annotations

from typing import Any

from demos.document_assistant.word_names import W

_MARK = f"{W}fldChar"
_SHOWN = ("t", "sym", "tab", "ptab", "br", "cr", "noBreakHyphen", "drawing", "pict", "object")


def in_codes(story: Any) -> set[Any]:
    """Return the elements in the codes of fields, from a `begin` to its `separate` or `end`.

    Fields nest in codes and in results. A field without an end hides nothing.

    Args:
        story: Body, header or footer.
    """
    found = set[Any]()
    fields: list[list[Any]] = []  # of each field that has begun, what is in its code
    codes: list[list[Any]] = []  # those of them whose code has not ended
    for element in story.iter(_MARK, *(f"{W}{tag}" for tag in _SHOWN)):
        kind = element.get(f"{W}fldCharType")
        if kind in ("separate", "end"):
            if codes and codes[-1] is fields[-1]:
                codes.pop()
            if kind == "end" and fields:
                found.update(fields.pop())
            continue
        if codes:
            codes[-1].append(element)
        if kind == "begin":
            fields.append([])
            codes.append(fields[-1])
    return found
