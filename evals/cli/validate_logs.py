"""`python -m evals.cli.validate_logs FILES`: check traces, run logs, manifests and metrics."""

from __future__ import annotations

import argparse
from pathlib import Path

from evals.cli.command import FOUND_PROBLEMS, make_parser, program
from evals.validation import validate_file
from mdagents_llm.terminal.printing import print_result


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "validate_logs",
        "Check traces, run logs, manifests and metrics: each record against its schema, then "
        "order, indices, ids, references, sequence numbers and hashes. One line per problem.",
    )
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help=".jsonl, .jsonl.gz, .json"
    )
    parser.add_argument(
        "--schema",
        default="",
        metavar="NAME_OR_PATH",
        help="exaid.trace, exaid.run, exaid.manifest, exaid.metrics, or a JSON schema of your own "
        "[the one that the first record names]",
    )
    return parser


def _validate(options: argparse.Namespace) -> int:
    problems = 0
    for path in options.files:
        for problem in validate_file(path, options.schema):
            problems += not problem.is_note
            print_result(str(problem))
    files = len(options.files)
    print_result(
        f"{files} file{'s' * (files != 1)} checked, {problems} problem{'s' * (problems != 1)}"
    )
    return FOUND_PROBLEMS if problems else 0


main = program(parser, _validate)

if __name__ == "__main__":
    raise SystemExit(main())
