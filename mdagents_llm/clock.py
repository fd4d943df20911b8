"""An injectable clock, so that a test or a replay can supply its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_ms() -> int:
    """Return the current time in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000


def timestamp_of(ms: int) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds, such as `2025-12-21T10:30:01.234Z`.

    Args:
        ms: Milliseconds since 1970 UTC, up to the year 9999.
    """
    return _text(_EPOCH + timedelta(milliseconds=ms))


def ms_of(timestamp: str) -> int:
    """Return an ISO 8601 time as milliseconds since 1970 UTC, the inverse of `timestamp_of`.

    Raises:
        ValueError: The text is not an ISO 8601 time, or has no time zone.
    """
    instant = datetime.fromisoformat(timestamp)
    if instant.tzinfo is None:
        raise ValueError(f"{timestamp} has no time zone")
    return round(1000 * instant.timestamp())


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """A wall clock for records and a monotonic clock for durations."""

    now: Callable[[], datetime] = _utc_now
    """Function that returns the date and time in UTC."""
    monotonic: Callable[[], float] = time.perf_counter
    """Function that returns seconds since an arbitrary start."""

    def timestamp(self) -> str:
        """Return the current date and time as ISO 8601 in UTC with milliseconds."""
        return _text(self.now())
