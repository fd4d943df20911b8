"""Measure the time from the start of main.py to its first request.

    python -m benchmarks.startup

1. Fresh starts, compared with the bare `openai` client.
2. Starts that resume a killed run, compared with fresh ones.
3. With `-i`, the modules imported and their import time.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.bare_client import TYPED
from benchmarks.harness import (
    BASIC,
    BenchmarkError,
    Program,
    Provider,
    Result,
    Workspace,
    judged,
    lines_of,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)

START_AIM = 0.8  # seconds
BARE_AIM = 1.2  # times the start of the bare client
RESUME_AIM = 0.3  # seconds
_LATENCY = 0.02  # seconds
_POLL = 0.01  # seconds
_SHOWN = 25


def first_request(place: Workspace, provider: Provider, state: Path, *flags: str) -> float:
    """Start main.py, kill it at its first request, and return the seconds until then."""
    provider.reset()
    program = place.start(provider, state, *BASIC, *flags)
    try:
        arrived = provider.wait_for_arrival(program).first_arrival
    finally:
        program.kill()
    return arrived - program.started


def killed_run(place: Workspace, provider: Provider, finished: int) -> Path:
    """Return the state folder of a run killed once `finished` questions have a record.

    Raises:
        BenchmarkError: The run ended before the kill.
    """
    state = place.new_state()
    program = place.start(provider, state, *BASIC)
    while lines_of(state, "samples.jsonl") < finished:
        if not program.is_running():
            raise BenchmarkError(
                f"main.py ended before it was killed; give more questions: {program.errors()}"
            )
        time.sleep(_POLL)
    program.kill()
    return state


def interpreter_start(place: Workspace) -> float:
    """Return the wall seconds of an interpreter that does nothing."""
    nothing = Program([sys.executable, "-c", "pass"], place.folder, {"PATH": ""})
    return nothing.finish().wall_seconds


def bare_first_request(place: Workspace, provider: Provider, bodies: Path) -> float:
    """Return the seconds from the start of the bare client to its first request."""
    provider.reset()
    program = place.start_bare(provider, bodies, calls=1, in_flight=1, way=TYPED)
    program.finish()
    return provider.stats().first_arrival - program.started


def measure(place: Workspace, questions: int, finished: int, rounds: int) -> None:
    """Print the times of fresh and resumed starts (parts 1 and 2).

    Args:
        place: Workspace whose data set has `questions` questions.
        questions: Number of questions, for the title.
        finished: Number of questions with a record when the resumed run was killed.
        rounds: Number of starts of each kind, interleaved.
    """
    bodies = place.keep_bodies(1)
    python: list[float] = []
    sdk: list[float] = []
    fresh: list[float] = []
    shown: list[float] = []
    resumed: list[float] = []
    continued = True
    # One endpoint for all starts, because a run can only be resumed at the same endpoint.
    with Provider("--latency", str(_LATENCY)) as provider:
        killed = killed_run(place, provider, finished)
        kept = lines_of(killed, "samples.jsonl")
        for _ in range(rounds):
            python.append(interpreter_start(place))
            sdk.append(bare_first_request(place, provider, bodies))
            fresh.append(first_request(place, provider, place.new_state()))
            shown.append(first_request(place, provider, place.new_state(), "--display", "plain"))
            state = place.copy_of(killed)
            resumed.append(first_request(place, provider, state))
            continued &= lines_of(state, "samples.jsonl") >= kept
    later = median(b - a for a, b in zip(fresh, resumed, strict=True))
    ratio = median(ours / bare for ours, bare in zip(fresh, sdk, strict=True))
    spread = f"{min(fresh):.2f} to {max(fresh):.2f} s"
    results = [
        judged("fresh start to first request", median(fresh), START_AIM, " s"),
        Result("fresh start, range", spread),
        Result("fresh start with a display, which forecasts the cost", f"{median(shown):.2f} s"),
        Result("for comparison: the bare openai client", f"{median(sdk):.2f} s"),
        judged("fresh start / the bare client's", ratio, BARE_AIM),
        Result("for comparison: the interpreter alone, to its end", f"{median(python):.2f} s"),
        Result("resumed start to first new request", f"{median(resumed):.2f} s"),
        judged("resumed start, later than a fresh one", later, RESUME_AIM, " s"),
    ]
    title = f"{questions:,} questions, {kept} of them finished before; medians of {rounds}"
    show_results(title, results)
    if not continued:
        print("NOTE: main.py did not continue the killed run but started anew.")


def show_imports(place: Workspace) -> None:
    """Print import time by top-level package, excluding nested imports (part 3)."""
    state = place.new_state()
    with Provider() as provider:
        size = ("--num-samples", "1")
        program = place.start(provider, state, *BASIC, *size, python=("-X", "importtime"))
        program.finish()
    own: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for line in program.errors().splitlines():
        parts = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and parts[0].strip().isdecimal():
            package = parts[2].strip().partition(".")[0]
            own[package] += int(parts[0])
            modules[package] += 1
    shown = [(name, us, modules[name]) for name, us in own.most_common(_SHOWN)]
    rows = [
        {"package": name, "ms": f"{us / 1000:.1f}", "modules": count}
        for name, us, count in [*shown, ("all", own.total(), modules.total())]
    ]
    title = "Imports up to the end of a run of one question (-X importtime makes them slower)"
    show_table(title, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("startup", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=1273, help="of the data set [%(default)s]")
    add("--finished", type=int, default=600, help="before the kill [%(default)s]")
    add("--rounds", type=int, default=7, help="starts of each kind [%(default)s]")
    add("-i", "--imports", action="store_true", help="show what is imported as well")
    options = parse(parser, argv, quick={"questions": 120, "finished": 10, "rounds": 2})
    show_machine("startup")
    with workspace(options.questions) as place:
        measure(place, options.questions, options.finished, options.rounds)
        if options.imports:
            show_imports(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
