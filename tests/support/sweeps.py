"""How much of a sweep is made: a part, another one with each commit, or all of it.

A sweep tries many random moments. Each shows the same as its neighbors, so that over some commits a
quarter of them a time finds what all of them find. `MDAGENTS_FULL_SWEEPS=1` makes all.
"""

from __future__ import annotations

import os
import random
import subprocess
from functools import cache

from tests.conftest import REPOSITORY

_IS_FULL = os.environ.get("MDAGENTS_FULL_SWEEPS") == "1"
_SHARE, _LEAST = 4, 3


def seeds(count: int) -> list[int]:
    """Seeds of a sweep: a quarter of the numbers below `count`, three at least, in order."""
    if _IS_FULL:
        return list(range(count))
    least = min(count, _LEAST)
    return sorted(random.Random(_commit()).sample(range(count), max(least, count // _SHARE)))


@cache
def _commit() -> str:
    """The commit that is tested; empty outside a clone."""
    asked = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git
        return ""
