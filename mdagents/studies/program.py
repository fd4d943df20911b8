"""The study program: reads a study file, executes its runs and writes the results."""

from __future__ import annotations

import argparse
import asyncio
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from mdagents.records.folder import with_hash
from mdagents.records.store import writable
from mdagents.records.study import write_study
from mdagents.runs.forecast import forecast, forecast_of_several
from mdagents.runs.signals import STOPPING, STOPPING_BATCHES, Stops
from mdagents.scoring.comparison import compare_study
from mdagents.scoring.comparison_text import comparison_notices, comparison_parts
from mdagents.scoring.results import print_parts
from mdagents.scoring.rows import RunOutput, read_output
from mdagents.settings import TeamRole, data_dir, output_dir
from mdagents.studies.display import DISPLAYS, make_study_display
from mdagents.studies.file import StudyFile, cells_of, read_study
from mdagents.studies.session import CellRun, State, StudySession, manifest_of
from mdagents_llm.clock import Clock
from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.extras import check_installed, needs_extra
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import (
    FINISHED,
    STOPPED,
    WRONG_USE,
    handle_interrupts,
    interrupted,
    print_line,
    print_result,
    reaches_any_screen,
)


@reaches_any_screen
def main(argv: Sequence[str], *, program: str = "python study.py") -> int:
    """Run a study.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invokes it.

    Returns:
        The exit status.
    """
    handle_interrupts()
    go_on = f"to resume: {program} {shlex.join(argv)}"
    try:
        options = make_parser(program).parse_args(argv)
        return _Program(options, go_on).run()
    except ConfigError as error:
        print_line(f"error: {error}")
        return WRONG_USE
    except BenchError as error:
        print_line(f"stopped: {error}; {go_on}")
        return STOPPED
    except KeyboardInterrupt:
        return interrupted(lambda: go_on)


def make_parser(program: str) -> argparse.ArgumentParser:
    """Return the argument parser of `study.py` and `mdagents study`."""
    parser = Parser(
        prog=program,
        description="Compares methods, models and data sets in one report.",
        epilog="docs/how-to/studies.md describes STUDY.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("study", metavar="STUDY", help="YAML file: datasets, models, methods, settings")
    add("--dry-run", action="store_true",
        help="forecast calls, tokens, cost and time of each run; call no model")  # fmt: skip
    add("--retry-errors", action="store_true",
        help="ask questions and turns that ended in api_error again")  # fmt: skip
    add("--otel", action="store_true",
        help="send spans of each run to an OpenTelemetry collector")  # fmt: skip
    add("--display", choices=DISPLAYS, default="full",
        help="progress on stderr; without a terminal full prints lines [%(default)s]")  # fmt: skip
    add("--data-dir", metavar="DIR", default=data_dir(),
        help="folder of the data sets [%(default)s]")  # fmt: skip
    add("--output-dir", metavar="DIR", default=output_dir(),
        help="folder of the runs [%(default)s]")  # fmt: skip
    add("--evaluation-dir", metavar="DIR", default="evaluation",
        help="folder for the results [%(default)s]")  # fmt: skip
    return parser


class _Program:
    """One invocation of the program.

    Args:
        options: Parsed command line.
        go_on: Message with the command that resumes the study.
    """

    def __init__(self, options: argparse.Namespace, go_on: str) -> None:
        self._options = options
        self._go_on = go_on
        self._variables = read_variables()
        self._environment = parse_environment(self._variables)
        self._study = read_study(Path(options.study))

    def run(self) -> int:
        """Execute the command line and return the exit status."""
        options, study = self._options, self._study
        flags = {"data-dir": options.data_dir, "output-dir": options.output_dir}
        if options.retry_errors:
            flags["retry-errors"] = "true"
        if options.otel:
            flags["otel"] = "true"
        cells = cells_of(study, flags, self._variables)
        if options.dry_run:
            forecasts = {str(c): forecast(c.config, self._environment) for c in cells}
            print_parts(forecast_of_several(forecasts))
            return FINISHED
        with needs_extra("report", "the page of a study"):
            check_installed("jinja2", "matplotlib")
        if any(cell.config.otel for cell in cells):
            import mdagents.telemetry.session  # noqa: F401 - says which package is missing
        clock = Clock()
        now = clock.now()
        runs = [CellRun.planned(cell, self._environment, clock) for cell in cells]
        _name_apart(runs)
        _check(study, runs)
        self._write_manifest(runs, now)
        signals = asyncio.run(self._carry_out(runs, clock)) if _is_left(runs) else []
        self._write_manifest(runs, now)
        self._show_results(runs, now)
        return self._end(runs, signals)

    def _write_manifest(self, runs: Sequence[CellRun], now: datetime) -> None:
        output_dir = Path(self._options.output_dir)
        with writable(output_dir):
            kept_as = write_study(output_dir, manifest_of(self._study, runs), now)
        if kept_as:
            print_line(
                f"NOTE: an earlier study of this name, with other runs, was kept as {kept_as}"
            )

    async def _carry_out(self, runs: Sequence[CellRun], clock: Clock) -> Sequence[int]:
        """Execute the unfinished runs and return the signals received."""
        shown = make_study_display(self._options.display, runs, clock.monotonic())

        async def refresh() -> None:
            while True:
                shown.refresh(clock.monotonic())
                await asyncio.sleep(shown.period)

        in_batches = any(run.plan.config.batch for run in runs)
        stops = Stops(shown.say, STOPPING_BATCHES if in_batches else STOPPING)
        stops.listen()
        session = StudySession(self._study, runs, self._environment, clock, stops, shown.changed)
        with shown:
            showing = asyncio.ensure_future(refresh())
            try:
                await session.run()
            finally:
                showing.cancel()
        if session.is_at_limit:
            self._go_on = f"raise 'limits' in {self._study.path} first; {self._go_on}"
        return stops.signals

    def _show_results(self, runs: Sequence[CellRun], now: datetime) -> None:
        outputs: dict[str, RunOutput] = {}
        for run in runs:
            if run.totals.scored:
                outputs[run.name] = read_output(Path(self._options.output_dir) / run.name)
        comparison = compare_study(manifest_of(self._study, runs), outputs)
        if comparison.blocks:
            from mdagents.pages.study import keep_other_results, write_study_results

            print_parts(comparison_parts(comparison))
            evaluation_dir = Path(self._options.evaluation_dir)
            if kept_as := keep_other_results(comparison, evaluation_dir, now):
                kept = f"{evaluation_dir / kept_as}.*"
                print_line(
                    f"NOTE: an earlier result of this name, of other runs, was kept as {kept}"
                )
            for path in write_study_results(comparison, evaluation_dir):
                print_result(f"written: {path}")
        elif outputs:
            print_parts([f"NOTE: {notice}" for notice in comparison_notices(comparison)])

    def _end(self, runs: Sequence[CellRun], signals: Sequence[int]) -> int:
        """Report unfinished runs and return the exit status."""
        states = Counter(run.state for run in runs)
        if states[State.FINISHED] == len(runs):
            return FINISHED
        by_reason: dict[str, list[str]] = {}
        for run in runs:
            if run.state is State.STOPPED:
                by_reason.setdefault(run.reason, []).append(str(run.cell))
        for reason, cells in by_reason.items():
            print_line(f"not finished: {'; '.join(cells)}: {reason}")
        done = f"{states[State.FINISHED]} of {len(runs)} runs are finished"
        print_line(f"{'interrupted' if signals else 'stopped'}: {done}; {self._go_on}")
        return 128 + signals[0] if signals else STOPPED


def _is_left(runs: Sequence[CellRun]) -> bool:
    return any(run.state is not State.FINISHED for run in runs)


def _name_apart(runs: Sequence[CellRun]) -> None:
    """Give runs of different models different names, as `name_beside` does once one has begun."""
    models: dict[str, str] = {}
    for run in runs:
        manifest = run.plan.manifest
        model = manifest.models[TeamRole.DECISION]
        if models.setdefault(manifest.name, model) != model:
            manifest.name = with_hash(manifest.name, manifest.config_hash)


def _check(study: StudyFile, runs: Sequence[CellRun]) -> None:
    """Check the constraints that involve several runs or the limits of the study.

    Raises:
        ConfigError: Two runs are the same, or a cost limit is set and a model's price is unknown.
    """
    names: dict[str, CellRun] = {}
    configs = load_model_configs()
    for run in runs:
        if (other := names.setdefault(run.name, run)) is not run:
            is_same = other.plan.manifest.config_hash == run.plan.manifest.config_hash
            what = "are the same run; leave one out"
            if not is_same:
                what = (
                    f"would both be named {run.name}; give the files of the data sets other names"
                )
            raise ConfigError(f"{study.path}: ({other.cell}) and ({run.cell}) {what}")
        for spec in run.plan.specs.values():
            if study.cost_limit is not None and configs.price(spec.provider, spec.name) is None:
                raise ConfigError(
                    f"{study.path}: a limit of cost needs the price of {spec}, which is not known; "
                    "limit the tokens"
                )
