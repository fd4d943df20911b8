"""The name that a user may have meant by one that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_SWITCHES = {
    "off": {"no", "none", "false", "never", "0", "disabled"},
    "on": {"yes", "true", "always", "1", "enabled"},
}
"""What a switch is called -> what else people write for it."""
_LEAST_ALIKE = 0.65  # of 1, as `difflib.SequenceMatcher.ratio` counts


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the end of a message; empty when no known name is alike.

    Case, `-` or `_`, and the zeros before a number make no difference; `no` is `off`, where that is
    known.
    """
    names = {_plain(name): name for name in known}
    for switch in _SWITCHES.keys() & names.keys():
        if _plain(given) in _SWITCHES[switch]:
            return f"; did you mean '{switch}'?"
    near = get_close_matches(_plain(given), names, n=1, cutoff=_LEAST_ALIKE)
    return f"; did you mean '{names[near[0]]}'?" if near else ""


def _plain(name: str) -> str:
    return _LEADING_ZEROS.sub("", name.lower().replace("_", "-"))
