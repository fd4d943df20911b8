"""Measure how close a run comes to the throughput that the endpoint allows.

    python -m benchmarks.throughput

1. One question at a time: its wall time against dependency depth x latency, for each team.
2. Many basic questions with many calls in flight: the run's wall time against calls x latency /
   calls in flight, and against the bare `openai` client making as many calls.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.bare_client import TYPED
from benchmarks.harness import (
    BASIC,
    CALLS_OF_BASIC,
    BenchmarkError,
    Ended,
    Program,
    Provider,
    ProviderStats,
    Result,
    Workspace,
    interleaved,
    judged,
    make_parser,
    median_ratio,
    parse,
    records,
    show_machine,
    show_results,
    show_table,
    workspace,
)

WALL_AIM = 1.05
RUN_AIM = 1.15
BARE_AIM = 1.15
OURS, BARE = "main.py", "bare openai client"


@dataclass(frozen=True, slots=True)
class Course:
    """One way to answer a question."""

    name: str
    flags: tuple[str, ...]
    """Flags of `main.py`."""
    depth: int
    """Number of sequential calls (docs/explanation/teams.md)."""
    calls: int


COURSES = (
    Course("basic", ("--difficulty", "basic"), 3, 5),
    Course("routed to basic", ("--difficulty", "adaptive"), 4, 6),
    Course("intermediate, silent", ("--difficulty", "intermediate"), 4, 8),
    Course("advanced", ("--difficulty", "advanced"), 8, 14),
)


def measure_single(place: Workspace, latency: float, questions: int, rounds: int) -> None:
    """Print the wall time of single questions against their depth x latency (part 1).

    Args:
        place: Workspace of the runs.
        latency: Latency of the endpoint in seconds.
        questions: Number of questions per run, answered one at a time.
        rounds: Number of runs of each course, interleaved.
    """
    walls: dict[str, list[float]] = {course.name: [] for course in COURSES}
    flags = ("--max-samples", "1", "--num-samples", str(questions))
    with Provider("--latency", str(latency), "--debate", "nobody", "--route", "basic") as provider:
        for _ in range(rounds):
            for course in COURSES:
                state = place.new_state()
                place.run(provider, state, *flags, *course.flags)
                for record in records(state):
                    if record["calls"] != course.calls:
                        raise BenchmarkError(f"{course.name} took {record['calls']} calls")
                    walls[course.name].append(record["wall_seconds"])
    results = []
    for course in COURSES:
        ideal = course.depth * latency
        ratios = [wall / ideal for wall in walls[course.name]]
        what = f"{course.name}: wall / ({course.depth} x latency), median of {len(ratios)}"
        results.append(judged(what, median(ratios), WALL_AIM, digits=3))
        results.append(Result(f"{course.name}: first question of a run", f"{ratios[0]:.3f}"))
    show_results(f"One question at a time, latency {latency * 1000:.0f} ms", results)


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements of one run with many calls."""

    answering: float
    """Seconds from the first request to the last reply."""
    whole: float
    """Seconds from the start of the program to its end."""
    cpu: float
    """CPU seconds of the program."""
    provider_load: float
    """CPU seconds of the provider per second of `answering`."""
    max_in_flight: int

    @classmethod
    def of(cls, ended: Ended, stats: ProviderStats, calls: int, latency: float) -> Sample:
        """Return the measurements of a run.

        Raises:
            BenchmarkError: The run did not make `calls` calls.
        """
        if stats.arrivals != calls:
            raise BenchmarkError(f"{stats.arrivals} calls were made, not {calls}")
        answering = stats.last_arrival + latency - stats.first_arrival
        load = stats.cpu_seconds / answering
        return cls(answering, ended.wall_seconds, ended.cpu_seconds, load, stats.max_in_flight)


def measure_many(
    place: Workspace, latency: float, questions: int, in_flight: int, rounds: int
) -> None:
    """Print the wall time of many questions against the ideal and the bare client (part 2).

    Args:
        place: Workspace of the runs.
        latency: Latency of the endpoint in seconds.
        questions: Number of questions per run.
        in_flight: Maximum number of calls in flight.
        rounds: Number of runs of each program, interleaved.
    """
    calls = questions * CALLS_OF_BASIC
    ideal = calls * latency / in_flight
    bodies = place.keep_bodies(min(questions, 20))
    limits = ("--max-connections", str(in_flight), "--max-samples", str(in_flight))
    size = ("--num-samples", str(questions))
    with Provider("--latency", str(latency)) as provider:

        def start(name: str) -> Program:
            if name == OURS:
                return place.start(provider, place.new_state(), *BASIC, *limits, *size)
            return place.start_bare(provider, bodies, calls=calls, in_flight=in_flight, way=TYPED)

        def run(name: str) -> Sample:
            provider.reset()
            return Sample.of(start(name).finish(), provider.stats(), calls, latency)

        samples = interleaved(run, (OURS, BARE), rounds)
    title = (
        f"{questions:,} basic questions = {calls:,} calls, latency {latency * 1000:.0f} ms, "
        f"{in_flight} in progress: ideal {ideal:.2f} s; medians of {rounds}"
    )
    rows = [
        {
            "program": name,
            "first request to last reply, s": f"{median(s.answering for s in seen):.2f}",
            "start to end, s": f"{median(s.whole for s in seen):.2f}",
            "CPU, ms/call": f"{median(s.cpu for s in seen) / calls * 1000:.2f}",
            "most in flight": max(s.max_in_flight for s in seen),
            "provider busy": f"{median(s.provider_load for s in seen):.0%}",
        }
        for name, seen in samples.items()
    ]
    show_table(title, rows)
    ours, bare = samples.values()
    answering = "first request to last reply"
    show_results(
        "Many questions at once",
        [
            judged(f"{answering} / ideal", median(s.answering for s in ours) / ideal, RUN_AIM),
            judged("start to end / ideal", median(s.whole for s in ours) / ideal, RUN_AIM),
            judged(
                f"{answering} / bare client's",
                median_ratio(ours, bare, lambda run: run.answering),
                BARE_AIM,
            ),
            judged(
                "start to end / bare client's",
                median_ratio(ours, bare, lambda run: run.whole),
                BARE_AIM,
            ),
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("throughput", __doc__)
    add = parser.add_argument
    add("--latency", type=float, default=0.2, help="seconds [%(default)s]")
    add("--single", type=int, default=5, help="questions of a run in part 1 [%(default)s]")
    add("--questions", type=int, default=1000, help="of a run in part 2 [%(default)s]")
    add("--in-flight", type=int, default=200, help="calls in progress in part 2 [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each variant [%(default)s]")
    quick = {"latency": 0.1, "single": 2, "questions": 60, "in_flight": 30, "rounds": 1}
    options = parse(parser, argv, quick)
    show_machine("throughput")
    with workspace(max(options.questions, options.single)) as place:
        measure_single(place, options.latency, options.single, options.rounds)
        measure_many(place, options.latency, options.questions, options.in_flight, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
