"""Dispatcher of the installed programs: `mdagents run`, `study`, `serve`, `view` and others."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module

import mdagents
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.terminal.printing import print_line, reaches_any_screen

Main = Callable[[Sequence[str], str], int]
"""Entry point of a program; takes its command line and the name under which the user called it."""

# Each program is imported when it is called, so that scoring does not load what running needs.


def _run(argv: Sequence[str], name: str) -> int:
    from mdagents.runs.options import env_flag
    from mdagents.runs.program import called_as, main
    from mdagents.settings import Difficulty

    return main(
        argv,
        skip=[level for level in Difficulty if env_flag(f"SKIP_{level.upper()}")],
        show_interaction_table=env_flag("SHOW_INTERACTION_TABLE"),
        called=called_as(name.removesuffix(" run")),
    )


def _call(module: str, argv: Sequence[str], name: str, *, function: str = "main") -> int:
    main = getattr(import_module(f"mdagents.{module}"), function)
    status: int = main(argv, program=name)
    return status


PROGRAMS: Mapping[str, tuple[Main, str]] = {
    "run": (_run, "answer questions with teams of agents"),
    "study": (
        partial(_call, "studies.program"),
        "compare methods, models and data sets",
    ),
    "serve": (partial(_call, "serve.cli"), "offer teams as models, by the API of OpenAI"),
    "mcp": (partial(_call, "mcp.cli"), "offer teams and scores as tools of an assistant"),
    "view": (partial(_call, "view.cli"), "show runs in a browser"),
    "score": (partial(_call, "cli.score"), "score runs, or compare them"),
    "ratings": (partial(_call, "cli.ratings"), "read and write ratings by clinicians as CSV"),
    "data download": (partial(_call, "data_tools.download"), "fetch a data set"),
    "data pictures": (
        partial(_call, "data_tools.picture_download"),
        "fetch the pictures that questions name by address",
    ),
    "data check": (
        partial(_call, "data_tools.check"),
        "check a data set for problems",
    ),
    "data extract": (
        partial(_call, "cli.dataset_parts", function="extract"),
        "pick questions out of a data set by id",
    ),
    "data split": (
        partial(_call, "cli.dataset_parts", function="split"),
        "split a data set by the difficulty a run routed to",
    ),
    "export": (partial(_call, "export.cli"), "write a run as a log of Inspect, or its card"),
}
"""Name -> (entry point, description) of each program."""


@reaches_any_screen
def main(argv: Sequence[str] | None = None, *, program: str = "mdagents") -> int:
    """Call one of the programs.

    Args:
        argv: Command line without the program's name; None uses that of the process.
        program: Command that the user typed, for usage lines and advice.

    Returns:
        Exit status of the program; 2 for an unknown one.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback on Ctrl-C while modules load
    words = (sys.argv[1:] if argv is None else list(argv)) or ["--help"]
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in PROGRAMS:
            return PROGRAMS[name][0](words[count:], f"{program} {name}")
    parser = _parser(program)
    parser.parse_known_args(words)
    given = [word for word in words[:2] if word == words[0] or not word.startswith("-")]
    name = " ".join(given)
    is_group = any(known.startswith(f"{name} ") for known in PROGRAMS)
    meant = (
        ""
        if is_group
        else (
            did_you_mean(name, PROGRAMS)
            or did_you_mean(f"data {given[0]}", PROGRAMS)
            or did_you_mean(given[0], [*PROGRAMS, "--help", "--version"])
        )
    )
    print_line(f"error: there is no 'mdagents {name}'; there are {', '.join(PROGRAMS)}{meant}")
    return 2


def _parser(program: str) -> argparse.ArgumentParser:
    """Make the parser that shows help and version."""
    width = max(map(len, PROGRAMS))
    programs = "\n".join(f"  {name:{width}}  {what}" for name, (_, what) in PROGRAMS.items())
    parser = argparse.ArgumentParser(
        prog=program,
        usage=f"{program} NAME [flags]",
        description=f"Multi-agent medical question answering:\n\n{programs}\n\n"
        f"Run `{program} NAME --help` for details.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mdagents {mdagents.__version__}")
    return parser
