"""The common parts of the programs of evals: one-line errors, exit status, printing."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from infra.errors import BenchError

FOUND_PROBLEMS = 1
CANNOT_RUN = 2


def run(
    parser: argparse.ArgumentParser,
    command: Callable[[argparse.Namespace], int],
    argv: Sequence[str] | None,
) -> int:
    """Parse the command line, run, and return the exit status.

    0: done; 1: done, but something is wrong with the data or a case failed; 2: not done, with one
    line that says why.
    """
    options = parser.parse_args(argv)
    try:
        return command(options)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return CANNOT_RUN
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or its end fails as well
        return 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def make_parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return a parser for `python -m evals.cli.MODULE`."""
    return argparse.ArgumentParser(prog=f"python -m evals.cli.{module}", description=description)
