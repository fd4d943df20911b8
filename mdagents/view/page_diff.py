"""Versioned state of a page, so that each browser is sent only what it lacks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from mdagents.pages.html_parts import Part

Operation = tuple[str, ...]
"""A change of a page.

`("put", id, into, html)` replaces the element with this id, or appends a new one to `into`.
`("add", id, text)` appends text to an element. `("drop", id)` removes an element.
`("keep", "", id, …)` removes all parts that it does not list.
"""


@dataclass(slots=True)
class _Shown:
    part: Part
    html: str
    version: int
    """Version at which the HTML last changed."""
    lengths: list[tuple[int, int]] = field(default_factory=list)
    """(version, characters) of each growth of an append-only text."""


class Stage:
    """The parts of one page, with their versions.

    A version is a number that grows with each change of the page. A browser with a version from
    before this stage, or from another server, is sent all parts.

    Args:
        version: First version.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self._first = version
        self._shown: dict[str, _Shown] = {}
        self._dropped: dict[str, int] = {}  # id -> version

    def update(self, parts: Iterable[Part], version: int) -> None:
        """Record the current parts of the page.

        Args:
            parts: All parts of the page, in order.
            version: Version of this state, at least the latest; the first may fill an empty page.
        """
        left, shown, is_new = self._shown, dict[str, _Shown](), False
        for part in parts:
            before = left.pop(part.id, None)
            after = _after(before, part, version)
            is_new |= after is not before or after.version == version
            is_new |= bool(after.lengths) and after.lengths[-1][0] == version
            shown[part.id] = after
            self._dropped.pop(part.id, None)
        self._dropped |= dict.fromkeys(left, version)
        self._shown = shown
        if is_new or left:
            self.version = version

    def since(self, version: int) -> list[Operation]:
        """Return the changes after a version, in the order of the page."""
        is_all = not self._first <= version <= self.version
        operations: list[Operation] = [
            ("drop", id_) for id_, dropped in self._dropped.items() if dropped > version
        ]
        if is_all:  # the content of such a page is unknown
            operations = [("keep", "", *self._shown)]
        for id_, shown in self._shown.items():
            part = shown.part
            if is_all or shown.version > version:
                html = shown.html if part.grows is None else part.html()
                operations.append(("put", id_, part.into, html))
            elif part.grows is not None:
                had = _length_at(shown.lengths, version)
                if had < len(part.grows):
                    operations.append(("add", f"{id_}-said", part.grows[had:]))
        return operations


def _after(before: _Shown | None, part: Part, version: int) -> _Shown:
    """Return the new state of a part, given the previous one."""
    # A question that is asked again may begin with the same words.
    has_grown = (part.grows or "").startswith((before and before.part.grows) or "")
    if before is None or not has_grown:
        lengths = [] if part.grows is None else [(version, len(part.grows))]
        return _Shown(part, part.html(), version, lengths)
    if before.part.key != part.key:
        html = part.html()
        if html != before.html:
            before.html, before.version = html, version
    if part.grows is not None and len(part.grows) > before.lengths[-1][1]:
        before.lengths.append((version, len(part.grows)))
    before.part = part
    return before


def _length_at(lengths: list[tuple[int, int]], version: int) -> int:
    place = bisect_right(lengths, version, key=lambda entry: entry[0])
    return lengths[place - 1][1] if place else 0
