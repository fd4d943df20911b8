"""The program `python -m demos.medagen.seed_guidelines`: loads guidelines into the database."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from demos.medagen.guidelines import FOLDER, Guideline, Guidelines, Seeded, read_guidelines
from demos.medagen.settings import Settings
from mdagents_llm.config import read_variables
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result


@fails_in_one_line
def main(argv: Sequence[str]) -> int:
    """Seed the guidelines, and remove stored ones that are no longer in the folder.

    Args:
        argv: Command-line arguments without the program's name.

    Returns:
        The exit status.
    """
    parser = Parser(
        prog="python -m demos.medagen.seed_guidelines",
        description="Loads guidelines into Medagen's database (DATABASE_URL, else "
        "output/medagen/medagen.sqlite), replacing existing ones.",
    )
    parser.add_argument(
        "--folder",
        metavar="DIR",
        type=Path,
        default=FOLDER,
        help="folder with the guidelines [%(default)s]",
    )
    options = parser.parse_args(argv)
    guidelines = read_guidelines(options.folder)
    shown, seeded = asyncio.run(_seed(guidelines))
    print_result(
        f"{len(guidelines)} guidelines, two languages, are in {shown}: "
        f"{seeded.added} added, {seeded.removed} removed"
    )
    return 0


async def _seed(guidelines: Sequence[Guideline]) -> tuple[str, Seeded]:
    database = Settings.of(read_variables()).database
    try:
        async with Guidelines.open(database) as kept:
            seeded = await kept.seed(guidelines)
    finally:
        await database.close()
    return database.shown, seeded


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
