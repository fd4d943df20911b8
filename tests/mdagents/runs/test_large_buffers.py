import ctypes
import subprocess
import sys

import pytest

# `hblks` is the fourth number of `mallinfo2`: blocks that are outside the heap.
BLOCKS_OUTSIDE = """
import ctypes
from mdagents.runs.memory import settle_memory

settle_memory()

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
before = libc.mallinfo2().d
buffers = [bytearray(1 << 18)]
del buffers[0]  # from now on, glibc would keep such a buffer in the heap
buffers = [bytearray(1 << 18) for _ in range(8)]
print(libc.mallinfo2().d - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc"
)
def test_buffers_of_replies_do_not_stay_in_the_heap() -> None:
    command = [sys.executable, "-c", BLOCKS_OUTSIDE]
    printed = subprocess.run(command, capture_output=True, check=True)
    assert int(printed.stdout) == 8
