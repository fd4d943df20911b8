"""The program that runs a benchmark: reads the settings, runs, and shows the result."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import shlex
import shutil
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mdagents.datasets.record_lines import ENDINGS
from mdagents.runs.memory import collector_paused, settle_memory
from mdagents.runs.options import SWITCHES, read_config, read_options, variables_to_resume
from mdagents.settings import Outcome, Status
from mdagents_llm.clock import Clock
from mdagents_llm.config import choices, parse_environment, read_variables, set_by_process
from mdagents_llm.errors import (
    BenchError,
    ConfigError,
    NothingRecorded,
    StorageError,
    UnexpectedError,
    is_debugging,
)
from mdagents_llm.extras import check_installed, needs_extra
from mdagents_llm.files.matching import matching
from mdagents_llm.model_configs import LOCAL
from mdagents_llm.terminal.printing import (
    FINISHED,
    STOPPED,
    WRONG_USE,
    handle_interrupts,
    interrupted,
    print_line,
    print_result,
    reaches_any_screen,
    unusable,
)
from mdagents_llm.text import counted
from mdagents_llm.web.address import has_screen

if TYPE_CHECKING:
    from mdagents.records.manifest import RunManifest
    from mdagents.runs.config import RunConfig
    from mdagents.runs.result import RunResult
    from mdagents.view.subprocess_view import RunView


_FILES = (*ENDINGS, ".py", ".gguf")
"""Endings of the files that the flags of a run can name: questions, a method, a model."""


@dataclass(frozen=True, slots=True)
class Called:
    """Commands by which the user calls the programs."""

    name: str
    """Name of the program that runs a benchmark, for its help."""
    run: str
    """Command that runs a benchmark from the working directory."""
    score: str
    """Command that scores a run from the working directory."""
    view: str
    """Command that shows a run from the working directory."""


def _from_a_clone(program: str) -> Called:
    """Return the commands for the programs of a clone, from the working directory."""
    path = Path(program)
    folder = path.parent if path.name == "main.py" else Path()
    names = (folder / name for name in ("main.py", "evaluate_text_output.py", "view.py"))
    commands = (shlex.join([_python(), str(name)]) for name in names)
    return Called(f"python {folder / 'main.py'}", *commands)


def _python() -> str:
    """Return the command for this Python: `python` may be missing, or lack the packages."""
    found, own, here = shutil.which("python"), Path(sys.executable), Path.cwd()
    # In a virtual environment `python3` and `python` are the same; elsewhere `python` may be old.
    if found and Path(found).absolute().parent == own.parent and own.samefile(found):
        return "python"
    return str(own.relative_to(here)) if own.is_relative_to(here) else str(own)


def called_as(program: str) -> Called:
    """Return the commands of `mdagents`, or of `python -m mdagents`."""
    command = program.replace("python ", f"{shlex.quote(_python())} ", 1)
    return Called(f"{program} run", *(f"{command} {name}" for name in ("run", "score", "view")))


@reaches_any_screen
def main(
    argv: Sequence[str],
    *,
    skip: Collection[str],
    show_interaction_table: bool,
    called: Called | None = None,
    until: ExitStack | None = None,
) -> int:
    """Run a benchmark.

    Args:
        argv: Command line without the program's name.
        skip: Levels to leave out whatever the command line says: the constants of `main.py`.
        show_interaction_table: Whether to show the table whatever the command line says: the
            constant of `main.py`.
        called: Commands by which the user calls the programs; None: those of a clone.
        until: Exit stack that ends the live view when it is closed; None: the view ends with this
            call.

    Returns:
        The exit status.
    """
    handle_interrupts()
    program = _Program(argv, called or _from_a_clone(sys.argv[0]))
    try:
        with ExitStack() as own, collector_paused():
            return program.run(skip, until or own, show_interaction_table=show_interaction_table)
    except ConfigError as error:
        print_line(f"error: {error}")
        return WRONG_USE
    except BenchError as error:
        print_line(program.stopped(error))
        return STOPPED
    except KeyboardInterrupt:  # before the first question; after that, the run handles it
        return interrupted(lambda: program.go_on)
    except Exception as error:
        if is_debugging():
            raise
        if program.is_planning and isinstance(error, OSError) and error.filename:
            print_line(unusable(error))
            return WRONG_USE
        print_line(f"{program.stopped(UnexpectedError.of(error))}; MDAGENTS_DEBUG=1 shows where")
        return STOPPED


class _Program:
    """One call of the program, with its command line and its final messages."""

    def __init__(self, argv: Sequence[str], called: Called) -> None:
        self._argv = argv
        self._called = called
        self.is_planning = True
        """Whether no run has been started yet."""

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        return read_variables()

    def run(self, skip: Collection[str], until: ExitStack, *, show_interaction_table: bool) -> int:
        """Carry out the command line, and return the exit status."""
        options = self._read()
        # Not needed for the help.
        from mdagents.runs.idle_flags import refuse_idle_flags, refuse_idle_picture_flags

        resumed = None if options.resume is None else self._find_run(options)
        if resumed is not None:
            options = self._with_kept_flags(*resumed)
            options.output_dir = self._folder_of(resumed[0], options)
        if options.rerun_wrong:
            options.sample_id = self._ids_to_rerun(options)
        config = read_config(options, skip)
        refuse_idle_flags(config, options)
        environment = parse_environment(self._variables)
        if options.dry_run:
            from mdagents.runs.forecast import forecast
            from mdagents.scoring.results import shown  # not needed for runs

            found = forecast(config, environment)
            refuse_idle_picture_flags(found.pictured, options)
            return FINISHED if self._print(shown(found.parts())) else STOPPED
        from mdagents.records.folder import differences  # not needed for help and forecasts
        from mdagents.runs.plan import make_plan
        from mdagents.runs.session import carry_out

        clock = Clock()
        plan = make_plan(config, environment, clock)
        refuse_idle_picture_flags(plan.pictures.questions, options)
        if resumed is not None and config.output_dir / plan.manifest.name != resumed[0]:
            folder, manifest = resumed
            if differences(manifest, plan.manifest) == "name":
                raise ConfigError(
                    f"--resume {folder}: the run was named {plan.manifest.name}; rename its folder "
                    "and its JSON file back to go on with it"
                )
            raise ConfigError(
                f"--resume {folder} differs from these settings in "
                f"{differences(manifest, plan.manifest)}; leave out --resume to start another run"
            )
        self.is_planning = False
        view = until.enter_context(self._view(options, config)) if options.view else None
        with ExitStack() as held:  # else a start with --fresh may move the run before it is read
            result = asyncio.run(
                carry_out(
                    plan,
                    environment,
                    clock,
                    display=options.display,
                    show_interaction_table=options.show_interaction_table or show_interaction_table,
                    on_ready=settle_memory,
                    stops_on_signals=True,
                    view=view,
                    held=held,
                )
            )
            del plan
            gc.collect()  # frees questions and cases before the results take memory
            shown_result = self._shown(result, as_json=options.json)
        is_printed = self._print(shown_result)
        print_line(self._ending(result))
        if view is not None:
            if result.already_finished:
                print_line(view.start(result.folder.name))
            print_line(view.outlook(may_stay=result.outcome is not Outcome.INTERRUPTED))
        return _status(result) if is_printed else _status(result) or STOPPED

    def _view(self, options: argparse.Namespace, config: RunConfig) -> RunView:
        with needs_extra("view", "--view"):
            check_installed("jinja2", "sse_starlette", "starlette", "uvicorn", "watchfiles")
        from mdagents.view.subprocess_view import RunView  # not needed for most runs

        return RunView(
            config.output_dir,
            options.view_host,
            options.view_port,
            opens=not options.no_open and has_screen(self._variables, sys.platform),
            program=self._called.view,
        )

    @staticmethod
    def _print(text: str) -> bool:
        """Print text on stdout; return False, with the error on stderr, if it cannot be written."""
        try:
            print_result(text)
        except StorageError as error:
            print_line(str(error))
            return False
        return True

    @staticmethod
    def _find_run(options: argparse.Namespace) -> tuple[Path, RunManifest]:
        """Return the folder and the manifest of the run that `--resume [RUN]` means."""
        if options.fresh:
            raise ConfigError(
                "--resume continues a run and --fresh starts it over; use only one of them"
            )
        if options.rerun_wrong:
            raise ConfigError("--resume keeps the questions of its run; leave --rerun-wrong out")
        from mdagents.records.manifest import read_manifest  # not needed for most runs

        named = Path(options.resume.removesuffix(".json"))
        name = named.name
        # NAME is a run below --output-dir; FOLDER/NAME is a run in that folder.
        output_dir = named.parent if len(named.parts) > 1 else Path(options.output_dir)
        folders = [output_dir / name] if name else sorted(
            (file.parent for file in matching(output_dir, "*/run.json")),
            key=lambda folder: (folder / "run.json").stat().st_mtime,
            reverse=True,
        )  # fmt: skip
        for folder in folders:
            try:
                manifest = read_manifest(folder)
            except ConfigError as error:
                if name:
                    raise
                print_line(f"NOTE: a run was passed over: {error}")
                continue
            if manifest is None or (manifest.finished and not name):
                continue
            is_named = folder.name == manifest.name
            if not (name or is_named) and (output_dir / manifest.name).exists():
                print_line(f"NOTE: {folder} was passed over: it is a copy of run {manifest.name}")
                continue
            return folder, manifest
        what = f"run {name}" if name else "unfinished run"
        raise ConfigError(f"there is no {what} in {output_dir}; see --output-dir")

    @staticmethod
    def _ids_to_rerun(options: argparse.Namespace) -> list[str]:
        """Return the ids that `--rerun-wrong` selects."""
        if options.sample_id:
            raise ConfigError(
                "--rerun-wrong and --sample-id both select questions; give one of them"
            )
        from mdagents.runs.rerun import ids_to_rerun  # not needed for most runs

        return ids_to_rerun(
            options.rerun_wrong,
            Path(options.output_dir),
            options.dataset,
            Path(options.data_dir),
            options.split,
        )

    def _with_kept_flags(self, folder: Path, manifest: RunManifest) -> argparse.Namespace:
        """Parse the command line over the flags that started the run in a folder.

        Raises:
            ConfigError: A file that a flag names is not here; the manifest keeps no folders.
        """
        kept = manifest.options
        options = self._read(kept | {"output_dir": str(folder.parent)})
        for flag, before in (("dataset", ""), ("method", ""), ("model", f"{LOCAL}/")):
            file = str(kept.get(flag)).removeprefix(before)
            is_said = getattr(options, flag) != kept.get(flag)
            if file.lower().endswith(_FILES) and not is_said and not Path(file).is_file():
                raise ConfigError(
                    f"--resume {folder} needs the file {file} of its --{flag}, which is not here; "
                    f"add --{flag} {before}FOLDER/{file}"
                )
        return options

    @staticmethod
    def _folder_of(folder: Path, options: argparse.Namespace) -> str:
        """Return the output folder of the run to resume, whatever the environment says.

        Raises:
            ConfigError: `--output-dir` on the command line names another one.
        """
        parent, named = folder.parent, Path(options.output_dir)
        if "--output-dir" in options.typed and named.resolve() != parent.resolve():
            raise ConfigError(
                f"--resume {folder} is not in --output-dir {named}; leave one of them out"
            )
        return str(parent)

    def _read(self, kept: Mapping[str, object] | None = None) -> argparse.Namespace:
        return read_options(self._argv, self._variables, program=self._called.name, kept=kept)

    def _shown(self, result: RunResult, *, as_json: bool) -> str:
        """Return the text for stdout at the end; empty while there is no record."""
        from mdagents.scoring.report import make_report
        from mdagents.scoring.report_text import report_parts
        from mdagents.scoring.results import shown  # not needed before the end of a run
        from mdagents.scoring.rows import is_outdated, read_output

        report = None
        if result.manifest.totals.questions:
            report = make_report(read_output(result.folder))
        if as_json:
            manifest = result.manifest
            content = {
                "run": manifest.name,
                "outcome": result.outcome.value,
                "exaid": manifest.totals.exaid.model_dump(),
                "totals": manifest.totals.model_dump(exclude={"exaid"}),
                "spent": manifest.spent.model_dump(),
            }
            # ASCII only, so that no terminal replaces a character.
            return json.dumps(content | (report.as_dict() if report else {}))
        if report is None:
            return ""
        # A full disk may have kept the array from being written.
        is_written = result.array_path.is_file() and not is_outdated(result.array_path)
        path = result.array_path if is_written else result.folder
        return "\n".join(
            [
                shown(report_parts(report)),
                *_of_exaid(result),
                *_paid(result.manifest),
                f"records: {path}",
                f"CSV:     {self._called.score} --input {shlex.quote(str(path))}",
                "page:    the same with --html: charts, and the transcript of each question",
            ]
        )

    def _ending(self, result: RunResult) -> str:
        """Return how the run ended and how to resume it, on one line; empty after a normal end."""
        if result.already_finished:
            return "this run is already finished: no call was made (--fresh starts it over)"
        if result.error is not None:
            return self.stopped(result.error)
        if result.outcome is Outcome.LIMIT:
            return f"{result.reason}; raise it; {self.go_on}"
        if result.reason:
            return f"{result.reason}; {self.go_on}"
        totals = result.manifest.totals
        errors, incomplete = totals.status_counts.get(Status.API_ERROR, 0), totals.incomplete
        ended = [f"{counted(errors, 'question')} ended in api_error"] if errors else []
        if incomplete:
            verb = "lacks" if incomplete == 1 else "lack"
            how = "did" if errors else "ended in api_error"
            ended.append(f"{counted(incomplete, 'answer')} {verb} a turn that {how}")
        them = "it" if errors + incomplete == 1 else "them"
        return f"{', '.join(ended)}; --retry-errors answers {them} again" if ended else ""

    def stopped(self, error: BenchError) -> str:
        """Return the error that ended the run, and how to resume it."""
        way_on = "" if isinstance(error, NothingRecorded) else f"; {self.go_on}"
        return f"stopped: {error}{way_on}"

    def _set_for_this_start(self) -> Mapping[str, str]:
        """Return the variables that a resumed run needs again: none from `.env`, and no key."""
        return set_by_process([*SWITCHES, *variables_to_resume(), *choices()])

    @property
    def go_on(self) -> str:
        """Command that resumes the run."""
        flags = shlex.join(flag for flag in self._argv if flag != "--fresh")
        variables = "".join(f"{n}={shlex.quote(v)} " for n, v in self._set_for_this_start().items())
        return f"to resume: {variables}{self._called.run} {flags}".rstrip()


def _of_exaid(result: RunResult) -> list[str]:
    """Return lines on what EXAID did and what it left out, with the reason; none if it was off."""
    totals, tokens = result.manifest.totals.exaid, result.manifest.totals.exaid_tokens
    if not totals.questions:
        return []
    # A call of a stopped question is paid and in no record; one from the cache is the reverse.
    where = "" if tokens == result.manifest.spent.exaid_tokens else " in the records"
    of_all = counted(result.manifest.totals.scored, "question")
    alerts = counted(totals.alerts, "alert")
    if totals.missed_alerts:
        alerts += f" ({totals.missed_alerts} in no summary)"
    lines = [
        f"EXAID:   {totals.summarised} of {of_all} summarized, "
        f"{counted(totals.summaries, 'summary', 'summaries')}, {tokens:,} tokens{where}",
        f"         {alerts}, {totals.flagged_terms} numbers or drugs that no agent named",
    ]
    if totals.emptied_fields:
        emptied = counted(totals.emptied_fields, "field")
        lines.append(f"         {emptied} emptied (repeated, or not said by any agent)")
    for why, questions in sorted(totals.left_out.items(), key=lambda entry: -entry[1])[:3]:
        lines.append(f"         text left out of {counted(questions, 'question')}: {why}")
    return lines


def _paid(manifest: RunManifest) -> list[str]:
    """Return what all starts of a run have paid and taken, and the tokens that they paid for.

    The first line is such as `paid 0.30 USD in 1:07 (teams 0.17, EXAID 0.13)`.
    """
    from mdagents.display.display import tokens_in_words  # not needed before the end of a run
    from mdagents.scoring.formatting import usd

    spent = manifest.spent
    took = f" in {_clock(manifest.seconds)}"
    if not spent.calls:
        why = "; every reply came from the cache" if spent.cached_calls else ""
        return [f"paid nothing{took}{why}"]
    tokens = f"tokens:  {tokens_in_words(spent)}"
    if spent.cost_usd is None:
        return [f"paid a price that is not known{took}", tokens]
    parts = ""
    if spent.exaid_calls and spent.exaid_cost_usd is not None:
        teams = spent.cost_usd - spent.exaid_cost_usd
        parts = f" (teams {usd(teams)}, EXAID {usd(spent.exaid_cost_usd)})"
    return [f"paid {usd(spent.cost_usd)} USD{took}{parts}", tokens]


def _clock(seconds: float) -> str:
    """Return a duration as `1:07` or `2:01:07`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _status(result: RunResult) -> int:
    if result.error is None and result.outcome is Outcome.FINISHED:
        return FINISHED
    if result.error is None and result.outcome is Outcome.INTERRUPTED:
        return 128 + (result.signal or signal.SIGINT)
    return STOPPED
