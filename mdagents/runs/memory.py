"""Settings of memory for a process that answers questions."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`, by malloc.h of glibc."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection while modules load, until `settle_memory` or the end.

    Modules create many objects and hardly any garbage, so collections take time and free nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle_memory() -> None:
    """Set up memory for a long run, once all modules are loaded.

    The loaded modules are exempted from garbage collection, so that it scans only new objects.
    """
    if gc.isenabled():  # an earlier run may have left garbage, which must not be kept
        gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()
    _return_large_buffers()


def _return_large_buffers() -> None:
    """Let glibc return buffers of 256 KiB and more to the system as soon as they are free.

    asyncio reads each reply into such a buffer. After the first one, glibc would cut them out of
    its heap, where small objects settle between them, so that the heap would grow with the run.
    """
    if sys.platform != "linux":
        return
    import ctypes  # takes 2 ms to load

    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 1 << 18)
        mallopt(_TRIM_THRESHOLD, 1 << 20)  # else every free large buffer shrinks the heap
