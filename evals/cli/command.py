"""Shared parts of the evals command-line programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evals.files import is_read_only
from evals.trace_files import trace_files, usable
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import fails_in_one_line, print_line

RUN_FILE = "run.json"
"""Name of the file in a run folder in which main.py describes the run."""
FOUND_PROBLEMS = 1
"""Exit status of a program that finished but found data problems or failed cases."""


def program(
    parser: Callable[[], argparse.ArgumentParser], command: Callable[[argparse.Namespace], int]
) -> Callable[..., int]:
    """Return the main function of a program, which takes an optional argv.

    Args:
        parser: Factory of the argument parser.
        command: Function that runs the parsed options and returns the exit status.
    """

    @fails_in_one_line
    def main(argv: Sequence[str] | None = None) -> int:
        return command(parser().parse_args(argv))

    return main


def make_parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return a parser for `python -m evals.cli.MODULE`."""
    return argparse.ArgumentParser(prog=f"python -m evals.cli.{module}", description=description)


def open_traces(
    paths: Sequence[Path], *, of_one_run: bool = False
) -> tuple[Mapping[str, Path], int]:
    """Return the usable trace files by case id, and the exit status so far.

    A bad trace does not stop the others: its problem is reported on stderr.

    Args:
        paths: Trace files, or folders of trace files.
        of_one_run: Whether to also skip traces of another run than most.

    Raises:
        ConfigError: No trace exists, or none can be used.
    """
    files = trace_files(paths)
    found = usable(files, of_one_run=of_one_run)
    if not found.by_case and len(files) == 1:
        raise ConfigError(found.refused[0])
    for note in found.notes:
        print_line(f"note: {note}")
    for refused in found.refused:
        print_line(f"error: {refused}")
    if not found.by_case:
        raise ConfigError(f"none of {len(files)} traces can be used")
    if found.refused:
        print_line(f"{len(found.refused)} of {len(files)} traces left out, the rest is used")
    return found.by_case, FOUND_PROBLEMS if found.refused else 0


def output_folder(given: Path | None, source: Path, below: str = "") -> Path:
    """Return the output folder: `--out` if given, else the source folder.

    Args:
        given: Value of `--out`; None if not given.
        source: Folder that is read.
        below: Output subfolder in `source`; if empty, `source` itself.

    Raises:
        ConfigError: `source` would be written to but is read-only.
    """
    if given is not None:
        return given
    if is_read_only(source):
        raise ConfigError(f"{source} is read-only: say with --out where to write")
    return source / below
