"""The common parts of the programs of evals."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from infra.files.printing import fails_in_one_line

FOUND_PROBLEMS = 1
"""Exit status of a program that is done, when the data has problems or a case failed."""


def program(
    parser: Callable[[], argparse.ArgumentParser], command: Callable[[argparse.Namespace], int]
) -> Callable[..., int]:
    """Return the main function of a program: command line, if given -> exit status.

    Args:
        parser: Makes the parser of its command line.
        command: Does what the options say and returns the exit status.
    """

    @fails_in_one_line
    def main(argv: Sequence[str] | None = None) -> int:
        return command(parser().parse_args(argv))

    return main


def make_parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return a parser for `python -m evals.cli.MODULE`."""
    return argparse.ArgumentParser(prog=f"python -m evals.cli.{module}", description=description)
