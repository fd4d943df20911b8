"""The programs by the name under which they are installed: `mdagents run|score|data|export`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

import mdagents
from infra.files.printing import print_line

Main = Callable[[Sequence[str], str], int]
"""Takes the command line of a program and the name under which the user called it."""

# Each program is imported when it is called: scoring need not wait for what running needs.


def _run() -> Main:
    from mdagents.runs.options import env_flag
    from mdagents.runs.program import INSTALLED, main
    from mdagents.settings import Difficulty

    return lambda argv, name: main(
        argv,
        skip=[level for level in Difficulty if env_flag(f"SKIP_{level.upper()}")],
        show_interaction_table=env_flag("SHOW_INTERACTION_TABLE"),
        called=INSTALLED,
    )


def _score() -> Main:
    from mdagents.scoring.cli import main

    return lambda argv, name: main(argv, program=name)


def _download() -> Main:
    from mdagents.data_tools.download import main

    return lambda argv, name: main(argv, program=name)


def _check() -> Main:
    from mdagents.data_tools.check import main

    return lambda argv, name: main(argv, program=name)


def _extract() -> Main:
    from mdagents.data_tools.subset import main

    return lambda argv, name: main(argv, program=name)


def _split() -> Main:
    from mdagents.scoring.split import main

    return lambda argv, name: main(argv, program=name)


def _export() -> Main:
    from mdagents.export.cli import main

    return lambda argv, name: main(argv, program=name)


PROGRAMS: Mapping[str, tuple[Callable[[], Main], str]] = {
    "run": (_run, "answer questions with teams of agents"),
    "score": (_score, "score runs, or compare them"),
    "data download": (_download, "fetch a data set"),
    "data check": (_check, "look for what is wrong with the questions of a data set"),
    "data extract": (_extract, "pick questions out of a data set by id"),
    "data split": (_split, "split a data set by the difficulty a run routed to"),
    "export": (_export, "write a run as a log of Inspect"),
}
"""Name -> what imports the program, and what it does."""


def main(argv: Sequence[str] | None = None) -> int:
    """Call one of the programs.

    Args:
        argv: The command line without the program's name; None: that of the process.

    Returns:
        The exit status.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback
    words = (sys.argv[1:] if argv is None else list(argv)) or ["--help"]
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in PROGRAMS:
            program = PROGRAMS[name][0]()
            return program(words[count:], f"mdagents {name}")
    parser = _parser()
    parser.parse_known_args(words)
    print_line(f"error: there is no '{' '.join(words[:2])}'; there are {', '.join(PROGRAMS)}")
    return 2


def _parser() -> argparse.ArgumentParser:
    """Make the parser that shows help and version."""
    width = max(map(len, PROGRAMS))
    programs = "\n".join(f"  {name:{width}}  {what}" for name, (_, what) in PROGRAMS.items())
    parser = argparse.ArgumentParser(
        prog="mdagents",
        usage="mdagents NAME [flags]",
        description=f"Multi-agent medical question answering:\n\n{programs}\n\n"
        "mdagents NAME --help says more of each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mdagents {mdagents.__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
