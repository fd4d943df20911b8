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


def _plain(name: str) -> str:
    return _LEADING_ZEROS.sub("", name.lower().replace("_", "-"))
