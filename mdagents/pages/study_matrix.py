"""Progress matrix of a study on the run list: methods by data sets and models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mdagents.live.runs import ListedRun
from mdagents.pages.html_parts import Part, made_by
from mdagents.pages.run import RunLine
from mdagents.records.study import StudyManifest


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A run of a study, as a cell of its matrix."""

    line: RunLine | None
    """Line of the run; None before it starts."""
    reason: str
    """Why the run could not be finished; empty if it was finished or has not started."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Progress matrix of a study."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """(data set, model) of each column."""
    rows: tuple[tuple[str, tuple[MatrixCell | None, ...]], ...]
    """(method, a cell for each column) of each row; None for a run that is not planned."""

    @property
    def finished(self) -> int:
        """Number of finished runs."""
        return sum(
            bool(cell and cell.line and cell.line.run.manifest.finished)
            for _, cells in self.rows
            for cell in cells
        )

    @property
    def runs(self) -> int:
        """Number of planned runs."""
        return sum(cell is not None for _, cells in self.rows for cell in cells)


def make_matrix(study: StudyManifest, listed: Sequence[ListedRun]) -> Matrix:
    """Return the progress matrix of a study.

    Args:
        study: The study.
        listed: Runs of the output folder.
    """
    lines = {run.name: RunLine(run) for run in listed}
    columns = tuple(dict.fromkeys((run.dataset, run.model) for run in study.runs))
    cells = {
        (run.method, run.dataset, run.model): MatrixCell(lines.get(run.run), run.reason)
        for run in study.runs
    }
    methods = dict.fromkeys(run.method for run in study.runs)
    return Matrix(
        study.name,
        columns,
        tuple(
            (method, tuple(cells.get((method, *column)) for column in columns))
            for method in methods
        ),
    )


def study_parts(studies: Sequence[StudyManifest], listed: Sequence[ListedRun]) -> Iterator[Part]:
    """Yield a part for each study."""
    for study in studies:
        matrix = make_matrix(study, listed)
        key = [
            (cell.line.state, cell.line.run.totals.questions, cell.reason)
            if cell.line
            else cell.reason
            for _, cells in matrix.rows
            for cell in cells
            if cell is not None
        ]
        html = partial(made_by, "run_parts.html", "study", matrix)
        yield Part(f"study-{study.name}", "studies", key, html())
