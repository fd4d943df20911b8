"""How many files and connections this process may have open at once."""

from __future__ import annotations

import resource


def most_open_files(wanted: int) -> int:
    """Return how many files this process may have open, after raising the limit where needed.

    The soft limit (256 on macOS, often 1,024 on Linux) can be raised up to the hard one.

    Args:
        wanted: Files and connections that will be open at once.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):  # macOS has a further limit of its own
        return soft
    return most
