"""What a program prints: results on stdout, and the line on stderr in which it fails."""

from __future__ import annotations

import codecs
import io
import os
import select
import signal
import sys
import unicodedata
from collections.abc import Callable
from functools import wraps
from typing import IO, ParamSpec, TextIO

from mdagents_llm.errors import BenchError, StorageError

P = ParamSpec("P")

UNWRITTEN, WRONG_USE = 1, 2
"""Exit statuses of a program that fails."""

_READABLE = "readable"
_SPELLED = str.maketrans(
    {
        "–": "-", "—": "-", "−": "-", "‐": "-", "─": "-", "│": "|", "└": "`", "•": "*", "·": "*",
        "→": "->", "←": "<-", "↔": "<->", "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'",
        "×": "x", "±": "+/-", "≤": "<=", "≥": ">=", "µ": "u", "μ": "u", "⁄": "/", "ß": "ss",
    }
)  # fmt: skip
"""How characters of ours, and of medical text, are written in ASCII."""


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream cannot encode: `…` by `...`, `é` by `e`, what has no spelling by `?`.

    A handler of errors for `codecs.register_error`.
    """
    assert isinstance(error, UnicodeEncodeError), "the handler of streams that are written"
    letters = error.object[error.start : error.end]
    return "".join(_in_ascii(letter) for letter in letters), error.end


def _in_ascii(letter: str) -> str:
    spelled = unicodedata.normalize("NFKD", letter).translate(_SPELLED)
    return spelled.encode("ascii", "ignore").decode() or "?"


codecs.register_error(_READABLE, _readable)


def reaches_any_screen(main: Callable[P, int]) -> Callable[P, int]:
    """Decorate the main function of a program: stdout and stderr take any text from then on.

    Characters that a terminal cannot show (`LANG=C`, Windows code pages, half a surrogate pair) are
    replaced by readable ones, in whatever is printed: results, `--help`, bars. Files are not
    touched. Help that nobody reads to its end is no error either.
    """

    @wraps(main)
    def printing(*args: P.args, **kwargs: P.kwargs) -> int:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_READABLE)
        try:
            return main(*args, **kwargs)
        except SystemExit:  # argparse has printed --help or --version
            try:
                _write_result("")
            except StorageError as error:
                print_line(f"error: {error}")
                return UNWRITTEN
            raise

    return printing


def fails_in_one_line(main: Callable[P, int]) -> Callable[P, int]:
    """Decorate the main function of a program: its errors become a line and an exit status.

    2 for what the user has to change, 1 for what cannot be written, 130 for Ctrl-C. What it prints
    reaches any screen.
    """

    @reaches_any_screen
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
    if text:
        _write_result(f"{text}\n")


def print_line(line: str) -> None:
    """Print a line on stderr, if there is one."""
    if line:
        _write(f"{line}\n", sys.stderr)


def takes_text(stream: IO[str] | None) -> bool:
    """Return whether writing a few lines does not block; True where that cannot be determined.

    A terminal blocks after Ctrl-S, a pipe while its reader (`less`) is busy and enough is unread.
    """
    try:
        return stream is None or bool(select.select([], [stream], [], 0)[1])
    except (OSError, ValueError):
        return True


def _write_result(text: str) -> None:
    error = _write(text, sys.stdout)
    if error is not None and not isinstance(error, BrokenPipeError):
        raise StorageError(f"the results could not be printed: {error.strerror}") from error


def _write(text: str, stream: TextIO | None) -> OSError | None:
    """Write `text`, and what is left in the buffer."""
    if stream is None:
        return None
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # The rest of the buffer would be written again, and fail again, when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return error
    return None
