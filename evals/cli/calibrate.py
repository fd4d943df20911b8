"""`python -m evals.cli.calibrate TRACES`: compare TokenGate settings, without a model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from prettytable import PrettyTable
from tqdm import tqdm

from evals.calibration import Outcome, chunk_of_v3, grid, sweep
from evals.cli.command import make_parser, open_traces, program
from evals.concepts import TermExtractor
from evals.figures import FORMATS, draw_calibration
from evals.report import number
from evals.variants import load_variant
from exaid_core.trace.traces import read_trace
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import print_result


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the program."""
    parser = make_parser(
        "calibrate",
        "Sweep the settings of the TokenGate over frozen traces: updates, chunk size, concepts "
        "that no chunk border cuts, wait and cost of each, and the chunk size of V3, which is the "
        "median CTU of V0's regular flushes. No model is asked.",
    )
    add = parser.add_argument
    add("traces", nargs="+", type=Path, metavar="TRACES", help="trace files, or folders of them")
    add("--min-words", type=_ints, default=(20, 35, 60), metavar="N,…", help="[20,35,60]")
    add("--max-words", type=_ints, default=(60, 90, 120), metavar="N,…", help="[60,90,120]")
    add("--silence-timer", type=_floats, default=(15.0,), metavar="S,…", help="seconds [15]")
    add("--max-wait-timeout", type=_floats, default=(40.0,), metavar="S,…", help="seconds [40]")
    add("--figure", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf [no figure]")
    return parser


def _calibrate(options: argparse.Namespace) -> int:
    if options.figure and options.figure.suffix[1:] not in FORMATS:
        raise ConfigError(f"--figure {options.figure} must end in one of {', '.join(FORMATS)}")
    files, status = open_traces(options.traces)
    traces = [read_trace(path) for path in files.values()]
    profiles = grid(
        options.min_words, options.max_words, options.silence_timer, options.max_wait_timeout
    )
    extractor = TermExtractor()
    bar = tqdm(profiles, unit="setting", desc="calibrate", disable=None, leave=False)
    outcomes = [outcome for profile in bar for outcome in sweep(traces, [profile], extractor)]
    print_result(_table(outcomes))
    print_result(told_of_v3(chunk_of_v3(traces, load_variant("V0").exaid_config().gate)))
    if options.figure:
        print_result(f"written: {draw_calibration(options.figure, outcomes)}")
    return status


def told_of_v3(chunk_ctu: int | None) -> str:
    """Return the line that reports the calibrated chunk size of V3."""
    if chunk_ctu is None:
        return "chunk of V3: as it is, since V0 has no regular flush on these traces"
    return f"chunk of V3: {chunk_ctu} CTU, the median of V0's regular flushes"


def _table(outcomes: Sequence[Outcome]) -> str:
    table = PrettyTable()
    for outcome in outcomes:
        profile = outcome.profile
        cells = {
            "words": f"{profile.min_words}/{profile.max_words}",
            "timers, s": f"{profile.silence_timer:g}/{profile.max_wait_timeout:g}",
            "updates": f"{outcome.flushes_per_case:.1f}",
            "median CTU": number(outcome.median_ctu, 0),
            "whole terms": number(outcome.whole_terms),
            "wait ms": number(outcome.wait_ms, 0),
            "CTU": f"{outcome.cost_ctu:.0f}",
        }
        table.field_names = list(cells)
        table.add_row(list(cells.values()))
    table.align = "r"
    return str(table)


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _floats(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


main = program(parser, _calibrate)

if __name__ == "__main__":
    raise SystemExit(main())
