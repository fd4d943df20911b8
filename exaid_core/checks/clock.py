"""Reads times of day: `14:30`, `2:30 pm`, `at 1430`, `1430h`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TIME = re.compile(
    r"\b(?:(?P<hours>[01][0-9]|2[0-3])(?P<minutes>[0-5][0-9])(?: ?h(?:rs?|ours)?\b"
    r"|(?:(?<=at ....)|(?<=@ ....)|(?<=since ....)|(?<=until ....))\b(?! ?[mukg%]|[.,/-][0-9]))"
    r"|(?P<hour>2[0-3]|[01]?[0-9])(?P<minute>:[0-5][0-9]\b)?(?: ?(?P<half>[ap])\.?m\b)?)",
    re.IGNORECASE,
)


_CLOCK_FACE = range(1, 13)


class TimeOfDay(NamedTuple):
    """A time of day in a text."""

    start: int
    end: int
    minutes: int
    """Minutes since midnight."""
    is_certain: bool
    """Whether it is told which half of the day it is in."""

    @property
    def other_half(self) -> int:
        """Minutes since midnight of the same time in the other half of the day."""
        return (self.minutes + 12 * 60) % (24 * 60)


def times_of_day(text: str) -> Iterator[TimeOfDay]:
    """Yield the times of day in a text, in order."""
    for time in _TIME.finditer(text):
        half = (time["half"] or "").lower()
        if time["hours"]:
            hour, minute = int(time["hours"]), int(time["minutes"])
        elif time["minute"] or half:
            hour, minute = int(time["hour"]), int((time["minute"] or ":0")[1:])
        else:
            continue
        if half:
            hour = hour % 12 + (12 if half == "p" else 0)
        is_certain = bool(time["hours"] or half) or hour not in _CLOCK_FACE
        yield TimeOfDay(*time.span(), 60 * hour + minute, is_certain)
