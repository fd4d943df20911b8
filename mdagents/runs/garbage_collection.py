"""Settings of the garbage collector for a process that answers questions."""

from __future__ import annotations

import gc


def spare_the_collector() -> None:
    """Exempt the loaded modules from garbage collection, so that it scans only new objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
