"""The time of day, which never goes back, and an injectable clock for tests and replays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_FOLLOWED_NS = 1_000_000_000  # clocks are stepped by less when they are corrected while in use


class EvenTime:
    """The time of day in ns since 1970 UTC, as even as a monotonic clock.

    Records, spans and timers compare times: a call must not start before its turn. So corrections
    of the system's clock below a second are not followed, and neither is one that turns it back,
    until the program starts again. Leaps ahead are: a suspended machine, or a clock that was wrong
    at boot.

    Args:
        wall_ns: Function that returns the system's time in ns since 1970 UTC.
        monotonic_ns: Function that returns ns since an arbitrary start, never less than before.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._wall_ns, self._monotonic_ns = wall_ns, monotonic_ns
        self._start_ns = wall_ns() - monotonic_ns()

    def __call__(self) -> int:
        """Return the current time in ns since 1970 UTC."""
        wall = self._wall_ns()
        now = self._monotonic_ns()  # read last: a pause between the two must not look like a leap
        if wall - now - self._start_ns > _FOLLOWED_NS:
            self._start_ns = wall - now
        return self._start_ns + now


epoch_ns = EvenTime()
"""Function that returns the current time in ns since 1970 UTC."""


def epoch_ms() -> int:
    """Return the current time in ms since 1970 UTC."""
    return epoch_ns() // 1_000_000


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


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of day for records and a monotonic clock for durations."""

    time_ns: Callable[[], int] = epoch_ns
    """Function that returns the time of day in ns since 1970 UTC, never less than before."""
    monotonic: Callable[[], float] = time.perf_counter
    """Function that returns seconds since an arbitrary start."""

    def ms(self) -> int:
        """Return the current time in ms since 1970 UTC."""
        return self.time_ns() // 1_000_000

    def now(self) -> datetime:
        """Return the current date and time in UTC."""
        return _EPOCH + timedelta(microseconds=self.time_ns() // 1000)

    def timestamp(self) -> str:
        """Return the current date and time as ISO 8601 in UTC with milliseconds."""
        return _text(self.now())

    def of_system(self) -> Clock:
        """Return a clock with the system's time of day, to be compared with other machines'."""
        return replace(self, time_ns=time.time_ns)
