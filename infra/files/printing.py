"""Prints on stdout and stderr, which may have been closed."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def print_result(text: str) -> bool:
    """Print on stdout and return whether that was possible.

    A closed pipe ends the printing and nothing else.
    """
    error = _print(text, sys.stdout)
    if error is None or isinstance(error, BrokenPipeError):
        return True
    print_line(f"the results could not be printed: {error.strerror}")
    return False


def print_line(line: str) -> None:
    """Print a line on stderr, if there is one."""
    _print(line, sys.stderr)


def _print(text: str, stream: TextIO | None) -> OSError | None:
    if not text or stream is None:
        return None
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        # The rest of the buffer would be written again, and fail again, when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return error
    return None
