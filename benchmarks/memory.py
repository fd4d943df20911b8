"""How much memory a run takes, and how fast that grows with the number of questions.

    python -m benchmarks.memory

Resident memory of main.py is read while it answers; the slope is a straight line fitted to the
second half of the questions, when connections, schemas and caches are there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.harness import (
    BASIC,
    BenchmarkError,
    Program,
    Provider,
    Result,
    Workspace,
    judged,
    parse,
    run_folder,
    show_machine,
    show_results,
    show_table,
    workspace,
)

SLOPE_AIM = 2.0  # MiB per 1,000 questions
PEAK_AIM = 150.0  # MiB
_EVERY = 0.1  # seconds
_SHOWN = 8
_FEWEST_TO_FIT = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory at one moment."""

    questions: int
    """Finished so far."""
    resident: float
    """MiB."""
    peak: float
    """MiB, the highest so far."""


class FinishedQuestions:
    """Counts the records of a run while it goes on, each byte read once."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file: Path | None = None
        self._offset = 0
        self._count = 0

    def __call__(self) -> int:
        """Return their number now."""
        if self._file is None:
            folder = run_folder(self._state)
            if folder is None or not (folder / "samples.jsonl").is_file():
                return 0
            self._file = folder / "samples.jsonl"
        with self._file.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
        self._offset += len(new)
        self._count += new.count(b"\n")
        return self._count


def watch(program: Program, state: Path) -> list[Reading]:
    """Read the memory of a run until its end."""
    finished = FinishedQuestions(state)
    readings = []
    while program.is_running():
        resident, peak = program.memory()
        if resident:
            readings.append(Reading(finished(), resident, peak))
        time.sleep(_EVERY)
    program.finish()
    return readings


def slope(readings: Sequence[Reading], questions: int) -> float:
    """Return the MiB per 1,000 questions over the second half of the questions.

    Raises:
        BenchmarkError: The run has too few readings.
    """
    second_half = [r for r in readings if questions / 2 <= r.questions < questions]
    if len(second_half) < _FEWEST_TO_FIT:
        raise BenchmarkError("too few readings to fit a line; give more questions or more latency")
    line = statistics.linear_regression(
        [r.questions for r in second_half], [r.resident for r in second_half]
    )
    return line.slope * 1000


def measure(place: Workspace, latency: float, questions: int, connections: int) -> None:
    """Print memory over the questions of one run.

    Args:
        place: Where to run.
        latency: Of the endpoint, in seconds.
        questions: To answer.
        connections: `--max-connections`.
    """
    state = place.new_state()
    size = ("--num-samples", str(questions), "--max-connections", str(connections))
    with Provider("--latency", str(latency)) as provider:
        readings = watch(place.start(provider, state, *BASIC, *size), state)
    growth = slope(readings, questions)

    marks = [round(questions * part / _SHOWN) for part in range(_SHOWN + 1)]
    rows = []
    for start, end in pairwise(marks):
        reached = [r for r in readings if start <= r.questions < end]
        if reached:
            rows.append((f"{end:,}", f"{reached[-1].resident:.1f}"))
    show_table("Resident memory", ("questions answered", "MiB"), rows)
    answering = [r for r in readings if r.questions < questions]
    show_results(
        f"{questions:,} basic questions, {connections} connections, latency {latency * 1000:g} ms",
        [
            judged("slope per 1,000 questions, second half", growth, SLOPE_AIM, unit=" MiB"),
            judged("peak, report at the end included", readings[-1].peak, PEAK_AIM, " MiB", 1),
            Result("peak while answering", f"{max(r.peak for r in answering):.1f} MiB"),
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--questions", type=int, default=3000, help="to answer [%(default)s]")
    add("--latency", type=float, default=0.005, help="seconds [%(default)s]")
    add("--connections", type=int, default=16, help="--max-connections of main.py [%(default)s]")
    options = parse(parser, argv, quick={"questions": 200})
    show_machine("memory")
    with workspace(options.questions) as place:
        measure(place, options.latency, options.questions, options.connections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
