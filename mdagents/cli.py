"""`python main.py`: reads what is asked for, runs it, shows the result."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.clock import Clock
from infra.config import parse_environment, read_variables
from infra.errors import BenchError, ConfigError, NothingRecorded
from infra.files.printing import print_line, print_result
from mdagents.records.manifest import read_manifest
from mdagents.runs.config import RunConfig, make_config
from mdagents.runs.options import read_options, read_options_of_run
from mdagents.runs.runner import Outcome
from mdagents.runs.session import RunResult, run
from mdagents.scoring.report import make_report, render_report
from mdagents.scoring.rows import read_output
from mdagents.settings import Difficulty, Status

FINISHED, STOPPED, WRONG_USE = 0, 1, 2
"""Exit statuses. A run that a signal has stopped ends with 128 and the number of the signal."""


def main(argv: Sequence[str], *, skip: Mapping[str, bool], show_interaction_table: bool) -> int:
    """Run a benchmark.

    Args:
        argv: The command line without the program's name.
        skip: Level -> whether the constants of `main.py` leave it out.
        show_interaction_table: The constant of `main.py`.

    Returns:
        The exit status.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # so main.py sets it while it loads
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        variables = read_variables()
        options = _with_resumed_run(read_options(argv, variables), argv, variables)
        options.show_interaction_table |= show_interaction_table
        left_out = frozenset(Difficulty(level) for level, out in skip.items() if out)
        config = make_config(options, left_out)
        environment = parse_environment(variables)
        if config.dry_run:
            from mdagents.runs.forecast import forecast  # runs need none of it

            print(forecast(config, environment))
            return FINISHED
        result = asyncio.run(run(config, environment, Clock()))
        is_printed = print_result(_shown(config, result))
        print_line(_ending(result, argv))
        return _status(result) if is_printed else _status(result) or STOPPED
    except ConfigError as error:
        print_line(f"error: {error}")
        return WRONG_USE
    except BenchError as error:
        print_line(_stopped(error, argv))
        return STOPPED
    except KeyboardInterrupt:  # before the first question; from then on the run handles it
        print_line(f"interrupted; to go on: {_command(argv)}")
        return _of_signal(signal.SIGINT)


def _with_resumed_run(
    options: argparse.Namespace, argv: Sequence[str], variables: Mapping[str, str]
) -> argparse.Namespace:
    """For `--resume [RUN]`: the flags with which the run was started, under those of this start."""
    if options.resume is None:
        return options
    output_dir = Path(options.output_dir)
    name = Path(options.resume).name.removesuffix(".json")
    folders = [output_dir / name] if name else sorted(
        (file.parent for file in output_dir.glob("*/run.json")),
        key=lambda folder: (folder / "run.json").stat().st_mtime,
        reverse=True,
    )  # fmt: skip
    for folder in folders:
        manifest = read_manifest(folder)
        if manifest is not None and (name or not manifest.finished):
            return read_options_of_run(argv, variables, manifest.options)
    what = f"run {name}" if name else "unfinished run"
    raise ConfigError(f"there is no {what} in {output_dir}; see --output-dir")


def _shown(config: RunConfig, result: RunResult) -> str:
    """What stands on stdout at the end; empty while there is no record."""
    report = None
    if result.manifest.totals.questions:
        report = make_report(read_output(result.folder))
    if config.json:
        exaid = result.manifest.totals.exaid.model_dump()
        content = {"run": result.manifest.name, "outcome": result.outcome.value, "exaid": exaid}
        return json.dumps(content | (report.as_dict() if report else {}), ensure_ascii=False)
    if report is None:
        return ""
    lines = [
        render_report(report),
        *_of_exaid(result),
        f"records: {result.array_path}",
        f"CSV:     python evaluate_text_output.py --input {result.array_path}",
    ]
    return "\n".join(lines)


def _of_exaid(result: RunResult) -> list[str]:
    """What EXAID did, and what it left out and why; no line when it was off."""
    totals, tokens = result.manifest.totals.exaid, result.manifest.totals.exaid_tokens
    if not totals.questions:
        return []
    alerts = f"{totals.alerts} alerts"
    if totals.missed_alerts:
        alerts += f" ({totals.missed_alerts} in no summary)"
    lines = [
        f"EXAID:   {totals.summarised} of {result.manifest.totals.questions} questions summarised, "
        f"{totals.summaries} summaries, {alerts}, {totals.flagged_terms} flagged terms, "
        f"{tokens:,} tokens"
    ]
    for why, questions in sorted(totals.left_out.items(), key=lambda entry: -entry[1])[:3]:
        lines.append(f"         text left out of {questions} questions: {why}")
    return lines


def _ending(result: RunResult, argv: Sequence[str]) -> str:
    """What happened and how it goes on, on one line; empty when there is nothing to say."""
    if result.already_finished:
        return "this run was finished already: no call was made (--fresh starts it anew)"
    totals, go_on = result.manifest.totals, f"to go on: {_command(argv)}"
    if result.error is not None:
        return _stopped(result.error, argv)
    match result.outcome:
        case Outcome.LIMIT:
            return f"stopped at a limit of the run; raise it, and {go_on}"
        case Outcome.TOO_MANY_ERRORS:
            return f"stopped: more api errors than --fail-on-error allows; {go_on}"
        case Outcome.COULD_NOT_WORK:
            errors = totals.status_counts.get(Status.API_ERROR, 0)
            what = f"{errors} of {totals.scored} questions ended in api_error ({result.cause})"
            if not errors:
                what = f"none of {totals.scored} questions got a reply"
            return f"stopped: {what}; {go_on}"
        case Outcome.INTERRUPTED:
            planned = len(result.manifest.item_ids) * result.epochs
            return f"interrupted with {totals.done} of {planned} questions done; {go_on}"
        case Outcome.FINISHED:
            errors = totals.status_counts.get(Status.API_ERROR, 0)
            if errors == 1:
                return "1 question ended in api_error; --retry-errors answers it again"
            what = f"{errors} questions ended in api_error; --retry-errors answers them again"
            return what if errors else ""


def _stopped(error: BenchError, argv: Sequence[str]) -> str:
    way_on = "" if isinstance(error, NothingRecorded) else f"; to go on: {_command(argv)}"
    return f"stopped: {error}{way_on}"


def _status(result: RunResult) -> int:
    if result.error is None and result.outcome is Outcome.FINISHED:
        return FINISHED
    if result.error is None and result.outcome is Outcome.INTERRUPTED:
        return _of_signal(result.signal or signal.SIGINT)
    return STOPPED


def _of_signal(number: int) -> int:
    return 128 + number


def _command(argv: Sequence[str]) -> str:
    """The command that continues the run."""
    return shlex.join(["python", "main.py", *(flag for flag in argv if flag != "--fresh")])
