"""Suggestions of existing names for a misspelled one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_SWITCHES = {
    "off": {"no", "none", "false", "never", "0", "disabled"},
    "on": {"yes", "true", "always", "1", "enabled"},
}
"""Value of a switch -> its common synonyms."""
_LEAST_ALIKE = 0.65  # minimum similarity, 0 to 1, by `difflib.SequenceMatcher.ratio`


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the end of a message; empty if no known name is similar.

    Case, `-` versus `_`, and leading zeros of a number are ignored; `no` matches `off` if that is a
    known name.
    """
    names = {_plain(name): name for name in known}
    for switch in _SWITCHES.keys() & names.keys():
        if _plain(given) in _SWITCHES[switch]:
            return f"; did you mean '{switch}'?"
    near = get_close_matches(_plain(given), names, n=1, cutoff=_LEAST_ALIKE)
    return f"; did you mean '{names[near[0]]}'?" if near else ""


def is_one_slip(given: str, meant: str) -> bool:
    """Return whether a name has one letter missing, added, replaced or swapped with the next.

    Variables without this program's prefix must be that similar to count as a mistake.
    """
    while given and given[0] == meant[:1]:
        given, meant = given[1:], meant[1:]
    return given != meant and (
        given[1:] in (meant, meant[1:])
        or given == meant[1:]
        or (given[:2] == meant[1::-1] and given[2:] == meant[2:])
    )


def _plain(name: str) -> str:
    return _LEADING_ZEROS.sub("", name.lower().replace("_", "-"))
