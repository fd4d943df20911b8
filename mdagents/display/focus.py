"""Selection of the question in progress that a display shows in full."""

from __future__ import annotations

from mdagents.display.in_progress import OpenQuestion, UnderWay

PATIENCE = 5.0
"""Seconds without news after which the focus moves to a question with news."""


class Focus:
    """Selector of one question in progress.

    A question stays focused until it is decided or has no news for `PATIENCE`; then the one with
    the latest news follows. If no other is open, the one that ended last stays focused.

    Args:
        under_way: Questions in progress.
    """

    def __init__(self, under_way: UnderWay) -> None:
        self._under_way = under_way
        self._focused: OpenQuestion | None = None

    def look(self, now: float) -> OpenQuestion | None:
        """Return the focused question at `now` (seconds on the run's clock); None before news."""
        self._under_way.look(now)
        focused = self._focused
        if focused is None or focused.ended or now - focused.heard_at >= PATIENCE:
            last = self._under_way.last_ended or focused
            self._focused = max(self._under_way, key=lambda one: one.heard_at, default=last)
        return self._focused
