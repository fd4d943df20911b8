"""Settings of the garbage collector for a process that answers questions."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection while modules load, until `spare_the_collector` or the end.

    Modules create many objects and hardly any garbage, so collections take time and free nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def spare_the_collector() -> None:
    """Exempt the loaded modules from garbage collection, so that it scans only new objects."""
    if gc.isenabled():  # an earlier run may have left garbage, which must not be kept
        gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()
