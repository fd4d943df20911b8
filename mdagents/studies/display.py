"""What a person sees while a study goes on, on stderr: a matrix that fills, or lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from mdagents.display import accuracy_so_far
from mdagents.scoring.formatting import Table, usd
from mdagents.studies.session import CellRun, State, study_spent
from mdagents_llm.files.printing import print_line

if TYPE_CHECKING:
    from rich.live import Live

DISPLAYS = ("full", "log", "none")
"""The values of `--display`."""

_SILENCE = 30.0  # seconds, after which a line says how far the study is
_SILENCE_IN_BATCHES = 600.0  # likewise, where replies come in batches


class StudyDisplay:
    """Shows nothing (`--display none`).

    Args:
        runs: Of the study.
        started: Seconds, on the clock of `refresh`.
    """

    period = 1.0
    """Seconds between two calls of `refresh`."""

    def __init__(self, runs: Sequence[CellRun], started: float) -> None:
        self._runs = runs
        self._started = started
        self._done_before = sum(run.totals.done for run in runs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the display away."""

    def changed(self, run: CellRun) -> None:
        """Show that the state of a run has changed."""

    def refresh(self, now: float) -> None:
        """Show how far the study is; called every `period`."""

    def say(self, line: str) -> None:
        """Show a line of its own."""

    def _progress(self, now: float) -> str:
        """Return `123 of 500 answers, 2 of 10 runs finished, 0.12 USD; 0:03:10, 0:05:00 left`."""
        runs = self._runs
        done, of = sum(run.totals.done for run in runs), sum(run.questions for run in runs)
        finished = sum(run.state is State.FINISHED for run in runs)
        spent = study_spent(runs)
        cost = "" if spent.cost_usd is None else f", {usd(spent.cost_usd)} USD"
        elapsed = now - self._started
        line = (
            f"{done:,} of {of:,} answers, {finished} of {len(runs)} runs finished, "
            f"{spent.total_tokens:,} tokens{cost}; {timedelta(seconds=round(elapsed))}"
        )
        new = done - self._done_before
        if new and done < of:
            # Runs differ in what a question takes, so that this is a first guess.
            left = timedelta(seconds=round(elapsed / new * (of - done)))
            line += f", about {left} left"
        return line


class StudyLines(StudyDisplay):
    """`--display log`, and `full` without a terminal: a line when a run begins and ends."""

    def __init__(self, runs: Sequence[CellRun], started: float) -> None:
        super().__init__(runs, started)
        self._last = started
        in_batches = all(run.plan.config.batch for run in runs)
        self._silence = _SILENCE_IN_BATCHES if in_batches else _SILENCE

    def changed(self, run: CellRun) -> None:
        """See `StudyDisplay`."""
        line = f"{run.cell}: {run.state}"
        match run.state:
            case State.UNDER_WAY:
                line = f"{run.cell}: begun ({run.totals.done} of {run.questions} done before)"
            case State.FINISHED:
                line += f", {accuracy_so_far(run.totals)}"
            case State.STOPPED:
                line += f": {run.reason}"
        print_line(line)

    def refresh(self, now: float) -> None:
        """See `StudyDisplay`."""
        if now - self._last >= self._silence:
            self._last = now
            print_line(self._progress(now))

    def say(self, line: str) -> None:
        """See `StudyDisplay`."""
        print_line(line)


class StudyMatrix(StudyDisplay):
    """`--display full` on a terminal: methods against data sets and models."""

    period = 0.5

    def __init__(self, runs: Sequence[CellRun], started: float, live: Live) -> None:
        super().__init__(runs, started)
        self._live = live
        self._said: list[str] = []

    def __enter__(self) -> Self:
        with suppress(OSError):  # a terminal that is gone changes nothing for the study
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """See `StudyDisplay`."""
        with suppress(OSError):
            self._live.stop()

    def refresh(self, now: float) -> None:
        """See `StudyDisplay`."""
        text = "\n".join([matrix(self._runs).as_text(), self._progress(now), *self._said[-3:]])
        with suppress(OSError):
            self._live.update(text, refresh=True)

    def say(self, line: str) -> None:
        """See `StudyDisplay`."""
        self._said.append(line)


def make_study_display(kind: str, runs: Sequence[CellRun], started: float) -> StudyDisplay:
    """Return the display for `--display`; see `StudyDisplay` for the arguments."""
    if kind == "none":
        return StudyDisplay(runs, started)
    if kind == "full" and sys.stderr is not None and sys.stderr.isatty():
        from rich.live import Live

        from mdagents.display.screen import Screen

        console = Screen(stderr=True, markup=False, highlight=False)
        if console.is_interactive:
            live = Live(console=console, auto_refresh=False, transient=True)
            return StudyMatrix(runs, started, live)
    return StudyLines(runs, started)


def matrix(runs: Sequence[CellRun]) -> Table:
    """Return how far each run is: a row for each method, a column for each data set and model."""
    columns = list(dict.fromkeys((run.cell.dataset, run.cell.model) for run in runs))
    methods = list(dict.fromkeys(run.cell.method for run in runs))
    cells = {(run.cell.dataset, run.cell.model, run.cell.method): _cell(run) for run in runs}
    return Table(
        ["", *(f"{dataset}, {model}" for dataset, model in columns)],
        [[method, *(cells[*column, method] for column in columns)] for method in methods],
    )


def _cell(run: CellRun) -> str:
    totals = run.totals
    if run.state is State.FINISHED:
        return accuracy_so_far(totals).removeprefix("accuracy ")
    if run.state is State.STOPPED:
        return f"stopped at {totals.done} of {run.questions}"
    if not totals.done and run.state is State.WAITING:
        return "-"
    return f"{totals.done} of {run.questions}"
