"""Reads times of day: `14:30`, `2:30 pm`, `at 1430`."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TIME = re.compile(
    r"\b(?:(?:(?<=at )|(?<=@ )|(?<=by )|(?<=since )|(?<=until )|(?<=from ))"
    r"(?P<hours>[01][0-9]|2[0-3])(?P<minutes>[0-5][0-9])\b(?! ?[mukg%]|[.,/-][0-9])"
    r"|(?P<hour>[01]?[0-9]|2[0-3])(?P<minute>:[0-5][0-9]\b)?(?: ?(?P<half>[ap])\.?m\b)?)",
    re.IGNORECASE,
)


def times_of_day(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start of each time of day in a text, and its minutes since midnight."""
    for time in _TIME.finditer(text):
        if time["hours"]:
            yield time.start(), 60 * int(time["hours"]) + int(time["minutes"])
        elif time["minute"] or time["half"]:
            hour, minute = int(time["hour"]), int((time["minute"] or ":0")[1:])
            if time["half"]:
                hour = hour % 12 + (12 if time["half"] in "pP" else 0)
            yield time.start(), 60 * hour + minute
