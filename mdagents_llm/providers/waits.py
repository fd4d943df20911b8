"""How long an endpoint asks to wait: in headers, in fields of a body, or in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

TOO_MANY_REQUESTS = 429
"""HTTP status of a rate limit."""
SHORTEST_OF_QUOTA = 120
"""Seconds; a limit that is over sooner is that of a rate."""

_FIRST_TIME = 1_000_000_000.0  # seconds since 1970; a smaller number is a duration
_TIME = (
    r"(?:\d{1,7}(?:\.\d{1,9})?\s?"
    r"(?:ms|milliseconds?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:econds?|ecs?)?)(?![a-z])"
    r"(?:,?\sand\s|,?\s)?){1,4}"
)
_DURATION = re.compile(f"(?ai){_TIME}")
_WAIT = re.compile(
    r"(?ai)\b(?:(?:try(?:ing)? again|retry|wait|reset)\w*\s(?:in|after)|wait(?:\sfor)?)\s"
    rf"(?P<time>{_TIME})"
)
_PART = re.compile(r"(?ai)(?P<number>\d{1,7}(?:\.\d{1,9})?)\s?(?P<unit>ms|milli|h|m|s)")
_SECONDS_OF = {"ms": 0.001, "milli": 0.001, "h": 3600.0, "m": 60.0, "s": 1.0}


def retry_after_seconds(headers: Mapping[str, str], status: int | None = None) -> float | None:
    """Return the seconds that headers ask to wait, or None.

    The headers are `retry-after-ms`, `Retry-After`, and for status 429 `X-RateLimit-Reset`.

    Args:
        headers: Headers, by their names in lower case.
        status: HTTP status; None if it is unknown.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after")
    if value is None:
        return _reset_seconds(headers) if status == TOO_MANY_REQUESTS else None
    seconds = _seconds_until(value)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def told_to_retry(headers: Mapping[str, str]) -> bool | None:
    """Return whether the header `x-should-retry` asks for a retry; None without a clear word.

    Args:
        headers: Headers, by their names in lower case.
    """
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _reset_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a rate limit is reset; None if another limit was reached.

    Without the number of requests that remain, only a short time can be that of this limit.
    """
    remaining = headers.get("x-ratelimit-remaining")
    if remaining is not None and _number(remaining) != 0:
        return None
    seconds = _seconds_until(headers.get("x-ratelimit-reset"))
    is_long = seconds is not None and seconds >= SHORTEST_OF_QUOTA
    return None if remaining is None and is_long else seconds


def _seconds_until(value: object) -> float | None:
    """Return the seconds until a time, or None.

    Args:
        value: Duration, or a time in seconds or milliseconds since 1970.
    """
    seconds = seconds_of_duration(value)
    if seconds is None or seconds < _FIRST_TIME:
        return None if seconds is None else max(0.0, seconds)
    time = seconds if seconds < _FIRST_TIME * 1000 else seconds / 1000
    return max(0.0, time - datetime.now(UTC).timestamp())


def seconds_in_words(message: str) -> float | None:
    """Return the seconds that a message asks to wait, as in `try again in 7m12s`, or None."""
    asked = _WAIT.search(message)
    return None if asked is None else _sum_of_parts(asked["time"])


def seconds_of_duration(value: object) -> float | None:
    """Return the seconds of a number or of a duration such as `34.07s` or `1m30s`, or None."""
    seconds = _number(value)
    if seconds is None and _DURATION.fullmatch(str(value)):
        return _sum_of_parts(str(value))
    return seconds


def _sum_of_parts(time: str) -> float:
    parts = _PART.finditer(time)
    return sum(float(part["number"]) * _SECONDS_OF[part["unit"].lower()] for part in parts)


def _number(value: object) -> float | None:
    """Return a value as a finite number; None if it is not one."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
