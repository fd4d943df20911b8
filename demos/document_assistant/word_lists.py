"""Numbers the paragraphs of the lists in a Word document, which stores no numbers."""

from __future__ import annotations

import re
from typing import Any

from demos.document_assistant.word_names import W
from demos.document_assistant.word_styles import Styles

_VAL = f"{W}val"
_ROMAN = (("m", 1000), ("cm", 900), ("d", 500), ("cd", 400), ("c", 100), ("xc", 90), ("l", 50),
          ("xl", 40), ("x", 10), ("ix", 9), ("v", 5), ("iv", 4), ("i", 1))  # fmt: skip
_MOST_ROMAN = 4_000
_NUMBER = re.compile("-?[0-9]{1,9}")


class ListNumbers:
    """Counts the paragraphs of each list, in the order of the document.

    Args:
        document: Document of python-docx.
        styles: Its styles.
    """

    def __init__(self, document: Any, styles: Styles) -> None:
        self._styles = styles
        self._forms: dict[str, Any] = {}  # w:abstractNum: levels that several lists may share
        self._lists: dict[str, Any] = {}
        for relation in document.part.rels.values():
            if relation.reltype.endswith("/numbering") and not relation.is_external:
                numbering = relation.target_part.element
                for form in numbering.iterchildren(f"{W}abstractNum"):
                    self._forms[form.get(f"{W}abstractNumId")] = form
                for one in numbering.iterchildren(f"{W}num"):
                    self._lists[one.get(f"{W}numId")] = one
        self._counts: dict[Any, dict[int, int]] = {}
        self._begun: set[str] = set()

    def label(self, paragraph: Any) -> str:
        """Count a paragraph and return its number, such as `2.` or `(a)`; empty without one."""
        list_id, style_of_list, stated = self._place(paragraph)
        one = self._lists.get(list_id)
        form = self._form(one)
        if one is None or form is None:
            return ""
        level = _level_of_style(form, style_of_list) if stated is None else stated
        count = self._counts.setdefault(form, {})
        if list_id not in self._begun:
            self._begun.add(list_id)
            for override in one.iterchildren(f"{W}lvlOverride"):
                if (first := _number(override, "startOverride")) is not None:
                    count[_level(override)] = first - 1
        levels = {**_levels(form), **_levels(one)}
        count[level] = count.get(level, _start(levels.get(level)) - 1) + 1
        for deeper in [one for one in count if one > level]:
            restart = _number(levels.get(deeper), "lvlRestart")
            if restart is None or level < restart:
                del count[deeper]
        return _label(levels, level, count)

    def _place(self, paragraph: Any) -> tuple[str, str, int | None]:
        """Return the list of a paragraph, the style that puts it there, and its level."""
        level = None
        for element in (paragraph, *self._styles.chain(paragraph.find(f"{W}pPr/{W}pStyle"))):
            place = element.find(f"{W}pPr/{W}numPr")
            level = _number(place, "ilvl") if level is None else level
            stated = None if place is None else place.find(f"{W}numId")
            if stated is not None:
                return stated.get(_VAL, ""), element.get(f"{W}styleId", ""), level
        return "", "", None

    def _form(self, one: Any) -> Any:
        """Return the levels of a list, which may stand in another list that a style names."""
        for _ in range(4):
            link = None if one is None else one.find(f"{W}abstractNumId")
            form = None if link is None else self._forms.get(link.get(_VAL))
            style = None if form is None else form.find(f"{W}numStyleLink")
            if style is None:
                return form
            places = (its.find(f"{W}pPr/{W}numPr/{W}numId") for its in self._styles.chain(style))
            named = next((place for place in places if place is not None), None)
            one = None if named is None else self._lists.get(named.get(_VAL))
        return None


def _levels(element: Any) -> dict[int, Any]:
    return {_level(one): one for one in element.iter(f"{W}lvl")}


def _level_of_style(form: Any, style: str) -> int:
    for level, element in _levels(form).items():
        named = element.find(f"{W}pStyle")
        if style and named is not None and named.get(_VAL) == style:
            return level
    return 0


def _label(levels: dict[int, Any], level: int, count: dict[int, int]) -> str:
    element = levels.get(level)
    if element is None or _format(element) in ("bullet", "none"):
        return ""
    text = element.find(f"{W}lvlText")
    is_decimal = element.find(f"{W}isLgl") is not None

    def numbered(found: re.Match[str]) -> str:
        one = int(found[1]) - 1
        number = count.get(one, _start(levels.get(one)))
        return _written(number, "decimal" if is_decimal else _format(levels.get(one)))

    return re.sub("%([1-9])", numbered, "" if text is None else text.get(_VAL, "")).strip()


def _written(number: int, form: str) -> str:
    """Return a number as the form says; in digits if the form is in another language or words."""
    if form == "none":
        return ""
    if form == "decimalZero":
        return f"{number:02}"
    text = str(number)
    if form.endswith("Letter") and 0 < number <= 26 * 9:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif form.endswith("Roman") and 0 < number < _MOST_ROMAN:
        text = ""
        for sign, value in _ROMAN:
            text += sign * (number // value)
            number %= value
    return text.upper() if form.startswith("upper") else text


def _format(level: Any) -> str:
    found = None if level is None else level.find(f"{W}numFmt")
    return "decimal" if found is None else str(found.get(_VAL, "decimal"))


def _start(level: Any) -> int:
    start = _number(level, "start")
    return 1 if start is None else start


def _number(element: Any, name: str) -> int | None:
    found = None if element is None else element.find(f"{W}{name}")
    value = "" if found is None else found.get(_VAL, "")
    return int(value) if _NUMBER.fullmatch(value) else None


def _level(element: Any) -> int:
    value = element.get(f"{W}ilvl", "")
    return int(value) if _NUMBER.fullmatch(value) else 0
