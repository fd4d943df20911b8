"""Command line program that exports a run as a log of Inspect, or as its card."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mdagents.export import export_run
from mdagents.export.card_text import write_card
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
        Exit status: 0, 1 if the file cannot be written, 2 for wrong use or a damaged file.
    """
    options = _parser(program).parse_args(argv)
    output = Path(options.output) if options.output else None
    if options.json and not options.card:
        raise ConfigError("--json needs --card; a log of Inspect is JSON anyway")
    if options.card:
        ending = ".json" if options.json else ".md"
        if output is not None and output.suffix != ending:
            raise ConfigError(f"--output {output}: the name of this card must end in {ending}")
        card = write_card(Path(options.run), output, as_json=options.json)
        print_result(str(card))
        return 0
    if output is not None and output.suffix != ".json":
        raise ConfigError(f"--output {output}: the log is JSON, so its name must end in .json")
    print_result(str(export_run(Path(options.run), output)))
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Writes a run as a log of Inspect (inspect.aisi.org.uk), for `inspect view`, "
        "or its card: what a reviewer asks about it.",
        epilog="Exit status: 0 written, 1 cannot be written, 2 wrong use or a damaged file.",
    )
    add = parser.add_argument
    add("run", metavar="RUN", help="folder of a run, or its JSON array")
    add("--card", action="store_true", help="write the card of the run, as Markdown")
    add("--json", action="store_true", help="with --card: write JSON instead")
    add(
        "--output",
        metavar="FILE",
        help="a .json file; `inspect view` lists those whose name begins with a time; a .md file "
        "for a card [in the run's folder: TIME_DATASET_ID.json, card.md or card.json]",
    )
    return parser
