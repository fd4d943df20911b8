"""Measure the peak memory of a run and its growth with the number of questions.

    python -m benchmarks.memory

The peak covers the whole process from start to end: answering, EXAID, and the results computed at
the end. The growth is the difference between a small and a large run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.harness import (
    BASIC,
    Provider,
    Workspace,
    judged,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)

GROWTH_AIMS = {"off": 0.5, "full_exaid": 1.0}  # MiB per 1,000 questions, by --exaid
PEAK_AIM = 150.0  # MiB


def measure(place: Workspace, latency: float, sizes: Sequence[int], connections: int) -> None:
    """Print the peak memory of runs of several sizes, with and without EXAID.

    Args:
        place: Workspace of the runs.
        latency: Latency of the endpoint in seconds.
        sizes: Numbers of questions, in ascending order.
        connections: Value of `--max-connections`.
    """
    peaks: dict[str, list[float]] = {exaid: [] for exaid in GROWTH_AIMS}
    for exaid in GROWTH_AIMS:
        for size in sizes:
            flags = ("--exaid", exaid, "--num-samples", str(size))
            with Provider("--latency", str(latency)) as provider:
                limit = ("--max-connections", str(connections))
                program = place.start(provider, place.new_state(), *BASIC, *limit, *flags)
                peaks[exaid].append(program.peak())
    show_table(
        f"Peak of basic questions in MiB, {connections} connections, latency {latency * 1000:g} ms",
        [
            {"EXAID": exaid}
            | {f"{n:,} questions": f"{mib:.1f}" for n, mib in zip(sizes, peaks[exaid], strict=True)}
            for exaid in GROWTH_AIMS
        ],
    )
    between = (sizes[-1] - sizes[0]) / 1000
    results = []
    for exaid in GROWTH_AIMS:
        growth = (peaks[exaid][-1] - peaks[exaid][0]) / between
        what = f"growth per 1,000 questions, EXAID {exaid}"
        results.append(judged(what, growth, GROWTH_AIMS[exaid], " MiB"))
    results.append(judged("highest peak", max(map(max, peaks.values())), PEAK_AIM, " MiB", 1))
    show_results("From the start of the process to its end", results)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("memory", __doc__)
    add = parser.add_argument
    add("--few", type=int, default=1500, help="questions of the small run [%(default)s]")
    add("--many", type=int, default=12_000, help="questions of the large run [%(default)s]")
    add("--latency", type=float, default=0.005, help="seconds [%(default)s]")
    add("--connections", type=int, default=16, help="--max-connections of main.py [%(default)s]")
    options = parse(parser, argv, quick={"few": 20, "many": 60})
    show_machine("memory")
    with workspace(options.many) as place:
        measure(place, options.latency, (options.few, options.many), options.connections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
