"""Command line program that exports a run for `inspect view` and `inspect log`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mdagents.export import export_run
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents export") -> int:
    """Export a run.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0, 1 if the log cannot be written, 2 for wrong use or a damaged file.
    """
    options = _parser(program).parse_args(argv)
    output = Path(options.output) if options.output else None
    if output is not None and output.suffix != ".json":
        raise ConfigError(f"--output {output}: the log is JSON, so its name must end in .json")
    print_result(str(export_run(Path(options.run), output)))
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Writes a run as a log of Inspect (inspect.aisi.org.uk), for `inspect view`.",
        epilog="Exit status: 0 written, 1 cannot be written, 2 wrong use or a damaged file.",
    )
    add = parser.add_argument
    add("run", metavar="RUN", help="folder of a run, or its JSON array")
    add(
        "--output",
        metavar="FILE",
        help="a .json file; `inspect view` lists those whose name begins with a time "
        "[in the run's folder: TIME_DATASET_ID.json]",
    )
    return parser
