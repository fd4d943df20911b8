"""What a program prints: results on stdout, and the line on stderr in which it fails."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TextIO

from infra.errors import BenchError, StorageError

P = ParamSpec("P")

UNWRITTEN, WRONG_USE = 1, 2
"""Exit statuses of a program that fails."""


def fails_in_one_line(main: Callable[P, int]) -> Callable[P, int]:
    """Decorate the main function of a program: its errors become a line and an exit status.

    2 for what the user has to change, 1 for what cannot be written, 130 for Ctrl-C.
    """

    @wraps(main)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set while modules load
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return main(*args, **kwargs)
        except StorageError as error:
            print_line(f"error: {error}")
            return UNWRITTEN
        except BenchError as error:
            print_line(f"error: {error}")
            return WRONG_USE
        except KeyboardInterrupt:
            print_line("interrupted; run the same command again")
            return 128 + signal.SIGINT

    return guarded


def print_result(text: str) -> None:
    """Print on stdout. A closed pipe ends the printing and nothing else.

    Raises:
        StorageError: The text cannot be written.
    """
    error = _print(text, sys.stdout)
    if error is not None and not isinstance(error, BrokenPipeError):
        raise StorageError(f"the results could not be printed: {error.strerror}") from error


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
