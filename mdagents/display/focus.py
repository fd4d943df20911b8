"""Which of the questions under way a live view shows in full: the focused one."""

from __future__ import annotations

from mdagents.display.under_way import OpenQuestion, UnderWay

PATIENCE = 5.0
"""Seconds without news after which the focus moves to a question that has some."""


class Focus:
    """Focuses on one of the questions under way.

    A question stays focused until it is decided or has no news for `PATIENCE`; then the one with
    the latest news follows. When no other is open, the one that ended last stays focused.

    Args:
        under_way: The questions.
    """

    def __init__(self, under_way: UnderWay) -> None:
        self._under_way = under_way
        self._focused: OpenQuestion | None = None

    def look(self, now: float) -> OpenQuestion | None:
        """Return the focused question at `now` (seconds); None before the first news."""
        self._under_way.look(now)
        focused = self._focused
        if focused is None or focused.ended or now - focused.heard_at >= PATIENCE:
            last = self._under_way.last_ended or focused
            self._focused = max(self._under_way, key=lambda one: one.heard_at, default=last)
        return self._focused
