"""`python -m evals.cli.make_stoplists TRACES`: list concepts that nearly every trace has."""

from __future__ import annotations

import argparse
from pathlib import Path

from evals.cli.command import make_parser, open_traces, program
from evals.concepts import TermExtractor
from evals.stoplists import THRESHOLD, write_stoplists
from evals.trace_text import TraceText
from exaid_core.trace.traces import read_trace
from mdagents_llm.clock import Clock
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import print_result


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "make_stoplists",
        "Find concepts and terms with a high document frequency; writes stop_cuis.txt, "
        "stop_entities.txt and stoplist_df_report.json, for --stoplists of the other programs.",
    )
    add = parser.add_argument
    add("traces", nargs="+", type=Path, metavar="TRACES", help="trace files, or folders of them")
    add("--out", required=True, type=Path, metavar="DIR", help="where the files go")
    add(
        "--threshold",
        type=float,
        default=THRESHOLD,
        metavar="SHARE",
        help="share of the traces from which a concept says nothing [%(default)s]",
    )
    add("--generated-at", metavar="ISO_TIME", help="the time that the report states [now]")
    return parser


def _make(options: argparse.Namespace) -> int:
    if not 0 < options.threshold <= 1:
        raise ConfigError("--threshold must be above 0 and at most 1")
    files, status = open_traces(options.traces)
    texts = [TraceText.of(read_trace(path)).text for path in files.values()]
    stoplists = write_stoplists(
        options.out,
        texts,
        TermExtractor(),
        generated_at=options.generated_at or Clock().timestamp(),
        threshold=options.threshold,
    )
    print_result(
        f"{options.out}: {len(stoplists.concepts)} concepts and {len(stoplists.terms)} terms "
        f"of {len(texts)} traces"
    )
    return status


main = program(parser, _make)

if __name__ == "__main__":
    raise SystemExit(main())
