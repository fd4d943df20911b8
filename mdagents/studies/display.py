"""Progress display of a study on stderr: a matrix or log lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from mdagents.display import accuracy_so_far
from mdagents.scoring.formatting import Table, usd
from mdagents.studies.session import CellRun, State, study_spent
from mdagents_llm.terminal.printing import print_line

if TYPE_CHECKING:
    from rich.live import Live

DISPLAYS = ("full", "log", "none")
"""Values of `--display`."""

_SILENCE = 30.0  # seconds between progress lines
_SILENCE_IN_BATCHES = 600.0  # seconds between progress lines when all runs use batches


class StudyDisplay:
    """A display that shows nothing (`--display none`).

    Args:
        runs: Runs of the study.
        started: Start time in seconds, on the clock of `refresh`.
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
        """Remove the display."""

    def changed(self, run: CellRun) -> None:
        """Show that a run changed its state."""

    def refresh(self, now: float) -> None:
        """Show the progress of the study; called every `period` seconds."""

    def say(self, line: str) -> None:
        """Show a message on its own line."""

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
            # A rough estimate: the time per question differs between runs.
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
        """Print the new state of a run."""
        line = f"{run.cell}: {run.state}"
        match run.state:
            case State.UNDER_WAY:
                line = f"{run.cell}: started ({run.totals.done} of {run.questions} already done)"
            case State.FINISHED:
                line += f", {accuracy_so_far(run.totals)}"
            case State.STOPPED:
                line += f": {run.reason}"
        print_line(line)

    def refresh(self, now: float) -> None:
        """Print a progress line if none was printed for a while."""
        if now - self._last >= self._silence:
            self._last = now
            print_line(self._progress(now))

    def say(self, line: str) -> None:
        """Print a message."""
        print_line(line)


class StudyMatrix(StudyDisplay):
    """`--display full` on a terminal: methods against data sets and models."""

    period = 0.5

    def __init__(self, runs: Sequence[CellRun], started: float, live: Live) -> None:
        super().__init__(runs, started)
        self._live = live
        self._said: list[str] = []

    def __enter__(self) -> Self:
        with suppress(OSError):  # a closed terminal must not stop the study
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the matrix from the terminal."""
        with suppress(OSError):
            self._live.stop()

    def refresh(self, now: float) -> None:
        """Redraw the matrix, the progress line and the latest messages."""
        from rich.console import Group

        from mdagents.scoring.results import rich_table

        lines = [self._progress(now), *self._said[-3:]]
        with suppress(OSError):
            self._live.update(Group(rich_table(matrix(self._runs)), "", *lines), refresh=True)

    def say(self, line: str) -> None:
        """Add a message below the matrix, shown from the next refresh on."""
        self._said.append(line)


def make_study_display(kind: str, runs: Sequence[CellRun], started: float) -> StudyDisplay:
    """Return the display for `--display`; other arguments are those of `StudyDisplay`."""
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
    """Return the progress matrix: a row per method, a column per data set and model."""
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
