"""Command line program that shows the runs of a folder in a browser."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from mdagents.live.frozen import find_traces, is_of_traces
from mdagents.records.served import is_served, refusal_of_served
from mdagents.settings import output_dir
from mdagents_llm.config import read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result
from mdagents_llm.web.address import add_address_flags, has_screen, listen, note_of

_EXAMPLES = Path(__file__).parent.parent / "examples"
_FASTEST = 1000  # times real time


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "python view.py") -> int:
    """Serve a folder of runs, or recorded traces, until Ctrl-C.

    Args:
        argv: Command line without the program's name.
        program: Name under which the user called the program.

    Returns:
        Exit status: 0 after Ctrl-C or SIGTERM, 2 for a usage error.
    """
    options = _parser(program).parse_args(argv)
    usual = _EXAMPLES if options.examples else Path(output_dir())
    given = [Path(path) for path in options.output] or [usual]
    if options.examples and options.output:
        raise ConfigError("--examples shows the runs of this program: leave the FOLDER out")
    shows_traces = any(map(is_of_traces, given))
    if not shows_traces and (len(given) > 1 or options.speed is not None):
        what = "several folders" if len(given) > 1 else "--speed"
        raise ConfigError(f"{what}: only for traces ({', '.join(map(str, given))} holds none)")
    if options.blind and shows_traces:
        raise ConfigError("--blind rates the answers and summaries of runs; traces have none")
    speed = _speed(options.speed)
    page = ""
    if not shows_traces:
        folder, page = _folder_and_page(given[0])
        page = "" if options.blind else page
    with needs_extra("view", "the live view"):  # imported here: help needs no server
        from mdagents.view.app import make_app
        from mdagents.view.rating import make_blind_app
        from mdagents.view.serve import make_server
        from mdagents.view.traces import make_traces_app
        from mdagents_llm.web.serve import open_browser
    if shows_traces:
        traces, unreadable = find_traces(given)
        page = traces[0].address if len(traces) == 1 and not unreadable else ""
    is_seen = not options.no_open and has_screen(read_variables(), sys.platform)
    place = listen(options.view_host, options.view_port)
    with place.socket:
        if shows_traces:
            app = make_traces_app(
                traces, unreadable, speed=speed, hosts=place.hosts, token=place.token
            )
            what = "recorded traces" if len(traces) > 1 else f"trace {traces[0].name}"
        elif options.blind:
            app = make_blind_app(
                folder, seed=options.blind_seed, hosts=place.hosts, token=place.token
            )
            what = "runs to rate, without their names"
        else:
            app = make_app(folder, hosts=place.hosts, token=place.token)
            what = f"runs of {folder}"
        server = make_server(app)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)  # also before the server has started
        print_line(note_of(place, options.view_port))
        if not shows_traces and not any(folder.glob("*/run.json")):
            print_line(f"NOTE: there is no run in {folder} yet; it is shown as soon as there is")
        url = place.url(page)
        print_result(f"{what}: {url} (Ctrl-C ends it)")
        # Other users can read the arguments of a browser's process.
        if is_seen and not place.token:
            open_browser(url)
        server.run(sockets=[place.socket])
    return 0


def _speed(given: float | None) -> float:
    """Return the speed at which traces are played.

    Raises:
        ConfigError: It is out of range.
    """
    if given is not None and not 0.1 <= given <= _FASTEST:
        raise ConfigError(f"--speed is {given:g} but must be from 0.1 to {_FASTEST}")
    return 1 if given is None else given


def _folder_and_page(given: Path) -> tuple[Path, str]:
    """Return the folder of runs, and the path of a run's page if the user named a run.

    Raises:
        ConfigError: The folder does not exist, or is a server's.
    """
    if given.suffix == ".json":  # the records file, as a run prints it at its end
        given = given.with_suffix("")
    if (given / "run.json").is_file():
        run = given.resolve()
        return run.parent, f"/runs/{quote(os.fsencode(run.name))}"
    if not given.is_dir():
        raise ConfigError(f"there is no folder {given}; give a folder with runs or traces")
    if is_served(given):
        raise ConfigError(refusal_of_served(given))
    return given, ""


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Shows running and finished runs, or recorded traces, in a browser.",
        epilog="The only files it writes are ratings (ratings.jsonl in a run's folder). Exit "
        "status: 0 after Ctrl-C or SIGTERM, 2 usage error.",
    )
    parser.add_argument(
        "output", metavar="FOLDER", nargs="*",
        help="where runs are, or one of them [output]; or traces (.trace.jsonl.gz), run logs of "
        "EXAID, and folders of them",
    )  # fmt: skip
    parser.add_argument("--examples", action="store_true",
        help="show ten example cases that come with this program")  # fmt: skip
    parser.add_argument("--blind", action="store_true",
        help="for clinicians who rate: hide names, models and methods of the runs")  # fmt: skip
    parser.add_argument("--blind-seed", metavar="N", type=int, default=0,
        help="seed for the order of the runs with --blind [%(default)s]")  # fmt: skip
    parser.add_argument("--speed", metavar="X", type=float,
        help="play traces at X times real time [1]")  # fmt: skip
    add_address_flags(parser)
    return parser
