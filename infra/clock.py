"""Time, passed in, so that a test or a replay can supply its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """Two clocks: date and time for records, and one that never jumps for durations."""

    now: Callable[[], datetime] = _utc_now
    """Date and time in UTC."""
    monotonic: Callable[[], float] = time.perf_counter
    """Seconds from an arbitrary start."""

    def timestamp(self) -> str:
        """Return the date and time now, ISO 8601 in UTC with milliseconds."""
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
