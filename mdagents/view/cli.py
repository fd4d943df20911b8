"""Command line program that shows the runs of a folder in a browser."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from mdagents_llm.config import read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result
from mdagents_llm.web.address import add_address_flags, has_screen, listen, note_of


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "python view.py") -> int:
    """Serve a folder of runs until Ctrl-C.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0 after Ctrl-C or SIGTERM, 2 for wrong use.
    """
    options = _parser(program).parse_args(argv)
    folder, page = _folder_and_page(Path(options.output))
    with needs_extra("view", "the live view"):  # imported here: help needs no server
        from mdagents.view.serve import make_server
        from mdagents_llm.web.serve import open_browser
    is_seen = not options.no_open and has_screen(read_variables(), sys.platform)
    place = listen(options.view_host, options.view_port)
    with place.socket:
        server = make_server(folder, place.hosts, place.token)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)  # also before the server has started
        print_line(note_of(place, options.view_port))
        if not any(folder.glob("*/run.json")):
            print_line(f"NOTE: there is no run in {folder} yet; it is shown as soon as there is")
        url = place.url(page)
        print_result(f"runs of {folder}: {url} (Ctrl-C ends it)")
        # Other users can read the arguments of a browser's process.
        if is_seen and not place.token:
            open_browser(url)
        server.run(sockets=[place.socket])
    return 0


def _folder_and_page(given: Path) -> tuple[Path, str]:
    """Return the folder of runs, and the path of a run's page if the user named a run.

    Raises:
        ConfigError: The folder does not exist.
    """
    if given.suffix == ".json":  # the records file, as a run prints it at its end
        given = given.with_suffix("")
    if (given / "run.json").is_file():
        run = given.resolve()
        return run.parent, f"/runs/{quote(run.name)}"
    if not given.is_dir():
        raise ConfigError(f"there is no folder {given}; give that of --output-dir")
    return given, ""


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Shows running and finished runs in a browser.",
        epilog="It reads only. Exit status: 0 after Ctrl-C or SIGTERM, 2 wrong use.",
    )
    parser.add_argument(
        "output", metavar="FOLDER", nargs="?", default="output",
        help="where runs are, or one of them [output]",
    )  # fmt: skip
    add_address_flags(parser)
    return parser
