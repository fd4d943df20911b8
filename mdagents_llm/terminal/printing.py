"""The output of programs: results on stdout, one-line errors on stderr."""

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
from pathlib import Path
from typing import IO, ParamSpec, TextIO

from mdagents_llm.errors import NOWHERE, BenchError, StorageError, is_debugging

P = ParamSpec("P")

FINISHED, STOPPED, WRONG_USE = 0, 1, 2
"""Exit statuses: all done; ended early, or output not written; usage error. A program that a signal
stopped ends with 128 plus the number of the signal."""

_AGAIN = "run the same command again"
_READABLE = "readable"
_SPELLED = str.maketrans(
    {
        "–": "-", "—": "-", "−": "-", "‐": "-", "─": "-", "│": "|", "└": "`", "•": "*", "·": "*",
        "→": "->", "←": "<-", "↔": "<->", "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'",
        "×": "x", "±": "+/-", "≤": "<=", "≥": ">=", "µ": "u", "μ": "u", "⁄": "/", "ß": "ss",
    }
)  # fmt: skip
"""ASCII spellings of characters in our messages and in medical text."""


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that a stream cannot encode: `…` by `...`, `é` by `e`, others by `?`.

    This is an error handler for `codecs.register_error`.
    """
    assert isinstance(error, UnicodeEncodeError), "the handler of streams that are written"
    letters = error.object[error.start : error.end]
    return "".join(_in_ascii(letter) for letter in letters), error.end


def _in_ascii(letter: str) -> str:
    spelled = unicodedata.normalize("NFKD", letter).translate(_SPELLED)
    return spelled.encode("ascii", "ignore").decode() or "?"


codecs.register_error(_READABLE, _readable)


def reaches_any_screen(main: Callable[P, int]) -> Callable[P, int]:
    """Decorate the main function of a program so that stdout and stderr accept any text.

    Characters that a terminal cannot show (`LANG=C`, Windows code pages, half a surrogate pair) are
    replaced by readable ones in all output: results, `--help`, progress bars. Files are not
    affected. A reader that closes the pipe early during `--help` is not an error.
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
                return STOPPED
            raise

    return printing


def fails_in_one_line(main: Callable[P, int]) -> Callable[P, int]:
    """Decorate the main function of a program to turn its errors into one line and an exit status.

    The status is 2 for an error that the user has to correct, 1 for output that cannot be written,
    and 130 for Ctrl-C. The output is made safe for any terminal, as by `reaches_any_screen`.
    """

    @reaches_any_screen
    @wraps(main)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        handle_interrupts()
        try:
            return main(*args, **kwargs)
        except StorageError as error:
            print_line(f"error: {error}")
            return STOPPED
        except BenchError as error:
            print_line(f"error: {error}")
            return WRONG_USE
        except FileNotFoundError:
            if _is_in_a_folder():
                raise
            print_line(f"error: {NOWHERE}")
            return WRONG_USE
        except OSError as error:  # such as a name of more than 255 bytes
            if is_debugging() or not error.filename:
                raise
            print_line(unusable(error))
            return WRONG_USE
        except KeyboardInterrupt:
            return interrupted(lambda: _AGAIN)

    return guarded


def unusable(error: OSError) -> str:
    """Return the error line about a file that the system refuses."""
    return f"error: {error.filename} cannot be used: {error.strerror}"


def _is_in_a_folder() -> bool:
    """Return whether the working directory exists."""
    try:
        return Path.cwd().is_dir()
    except FileNotFoundError:
        return False


def print_result(text: str) -> None:
    """Print on stdout. A closed pipe stops the printing but is not an error.

    Raises:
        StorageError: The text cannot be written.
    """
    if text:
        _write_result(f"{text}\n")


def print_line(line: str) -> None:
    """Print a line on stderr unless it is empty."""
    if line:
        _write(f"{line}\n", sys.stderr)


def handle_interrupts() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` from now on.

    Programs end at once by it while their modules load.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(advice: Callable[[], str]) -> int:
    """Print the last line of a program after Ctrl-C; another Ctrl-C then ends it without traceback.

    Args:
        advice: Returns what the user may do now.

    Returns:
        The exit status.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        try:
            line = advice()
        except Exception:  # noqa: BLE001 - the interrupt may have left a module half loaded
            line = _AGAIN
        print_line(f"interrupted; {line}")
    finally:
        signal.signal(signal.SIGINT, before)
    return 128 + signal.SIGINT


def takes_text(stream: IO[str] | None) -> bool:
    """Return whether a stream takes a few lines without blocking; True if that is unknown.

    A terminal blocks after Ctrl-S, a pipe while its reader (`less`) is busy and the buffer is full.
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
    """Write `text` and flush the stream; return the error if that fails."""
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
