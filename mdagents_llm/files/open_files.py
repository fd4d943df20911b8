"""The limit of open files and connections of this process."""

from __future__ import annotations


def most_open_files(wanted: int) -> int:
    """Return how many of `wanted` files this process may open, raising the limit if needed.

    The soft limit (256 on macOS, often 1,024 on Linux) can be raised up to the hard limit. Windows
    has no such limit.

    Args:
        wanted: Number of files and connections that will be open at once.
    """
    try:
        import resource
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):  # macOS has an additional limit
        return soft
    return most
