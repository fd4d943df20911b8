"""Measure the cost of running on a Ray cluster, and whether the run's limits hold on it.

    python -m benchmarks.cluster [--only cost|limits|deaths|size]

- cost: CPU time per call, in one process and on a cluster of this machine with 1 and 2 workers; the
  difference between a large and a small run, which excludes one-time work.
- limits: calls in flight and calls per minute, as the endpoint sees them, while workers are killed.
- deaths: a worker is killed every 2 s for 30 s.
- size: wall time and peak memory of the driver, with few questions and with many.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import (
    BASIC,
    CALLS_OF_BASIC,
    Program,
    Provider,
    ProviderStats,
    Result,
    Workspace,
    judged,
    make_parser,
    parse,
    show_machine,
    show_results,
    show_table,
    workspace,
)

COST_AIM = 1.10  # times the CPU time per call in one process
LIMIT_AIM = 1.05  # times the limit set
PEAK_AIM = 250.0  # MiB
_PARTS = ("cost", "limits", "deaths", "size")
_RAY = ("--engine", "ray", "--ray-workers")
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.1  # seconds
_ZERO_SHOT = ("--method", "zero_shot")


@dataclass(slots=True)
class Family:
    """The processes of a run on a local cluster, sampled while they are alive.

    Args:
        program: Driver process.
        state: State folder of the run, which is in the environment of all its processes.
    """

    program: Program
    state: Path
    cpu: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Kind of process and CPU seconds when last sampled, by process id."""
    peak: float = 0.0
    """Peak memory of the driver in MiB."""

    def look(self) -> None:
        """Sample the resources that all processes have used so far."""
        self.peak = max(self.peak, self.program.memory())
        mark = f"HOME={self.state}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if int(path.name) not in self.cpu and mark not in (path / "environ").read_bytes():
                    continue
                stat = (path / "stat").read_text().rpartition(") ")[2]
                line = (path / "cmdline").read_bytes()
            except OSError:
                continue
            used = sum(map(int, stat.split()[11:13])) / _TICKS
            what = "workers" if line.startswith(b"ray::Worker") else "Ray"
            before, _ = self.cpu.get(int(path.name), (what, 0.0))
            if before == "workers" or not line:  # the process is exiting
                what = before
            self.cpu[int(path.name)] = "driver" if b"main.py" in line else what, used

    def workers(self) -> list[int]:
        """Return the process ids of the workers that are alive."""
        return [pid for pid, (what, _) in self.cpu.items()
                if what == "workers" and Path(f"/proc/{pid}").exists()]  # fmt: skip

    def finish(self, every: float = _POLL) -> dict[str, float]:
        """Wait until the driver ends; return CPU seconds by kind of process."""
        while self.program.is_running():
            self.look()
            time.sleep(every)
        self.program.finish()
        used: dict[str, float] = {}
        for what, seconds in self.cpu.values():
            used[what] = used.get(what, 0.0) + seconds
        return used


def start(place: Workspace, provider: Provider, *flags: str) -> Family:
    """Start `main.py` in a new state folder and return its processes."""
    state = place.new_state()
    return Family(place.start(provider, state, *flags), state)


def measure_cost(place: Workspace, questions: int, latency: float) -> list[Result]:
    """Print the CPU time per call by engine; return its ratios to the local engine."""
    small = questions // 4
    calls = (questions - small) * CALLS_OF_BASIC
    rows, costs = [], {}
    for name, engine in (("local", ()), ("ray, 1 worker", (*_RAY, "1")), ("ray, 2", (*_RAY, "2"))):
        used: list[dict[str, float]] = []
        walls = []
        for size in (small, questions):
            with Provider("--latency", str(latency)) as provider:
                flags = (*BASIC, "--cache", "off", "--max-connections", "64", *engine)
                family = start(place, provider, *flags, "--num-samples", str(size))
                used.append(family.finish())
                walls.append(family.program.wait().wall_seconds)
        each = {w: 1000 * (used[1].get(w, 0) - used[0].get(w, 0)) / calls
                for w in ("driver", "workers", "Ray")}  # fmt: skip
        costs[name] = each["driver"] + each["workers"]
        rows.append(
            {"engine": name}
            | {f"{what}, ms": f"{ms:.3f}" for what, ms in each.items()}
            | {"driver + workers": f"{costs[name]:.3f}"}
            | {"calls/s": f"{calls / (walls[1] - walls[0]):.0f}"}
        )  # fmt: skip
    show_table(
        f"CPU time of a call, {questions} basic questions, latency {latency * 1000:g} ms, "
        f"{os.cpu_count()} cores with provider and Ray",
        rows,
    )
    return [
        judged(f"CPU time of a call, {name} / local", costs[name] / costs["local"], COST_AIM)
        for name in ("ray, 1 worker", "ray, 2")
    ]


def kill_workers(family: Family, *, every: float, seconds: float) -> int:
    """Kill a random worker periodically and return the number killed.

    Args:
        family: Processes of the run.
        every: Seconds between kills.
        seconds: Seconds after which to stop killing.
    """
    chance, killed, ends = random.Random(1), 0, time.monotonic() + seconds
    while family.program.is_running() and time.monotonic() < ends:
        time.sleep(every)
        family.look()
        if there := family.workers():
            os.kill(chance.choice(there), signal.SIGKILL)
            killed += 1
    return killed


def measure_limits(place: Workspace, questions: int) -> list[Result]:
    """Return the endpoint's load relative to each limit while workers are killed."""
    results = []
    rpm, connections = 1500, 10
    for name, flags in (
        ("calls under way", ("--max-connections", str(connections))),
        ("calls a minute", ("--rpm", str(rpm))),
    ):
        with Provider("--latency", "0.1") as provider:
            common = (*BASIC, "--cache", "off", "--num-samples", str(questions), *flags)
            family = start(place, provider, *common, *_RAY, "3")
            provider.wait_for_arrival(family.program)
            killed = kill_workers(family, every=2.0, seconds=30.0)
            family.finish()
            stats = provider.stats()
        ratio = stats.max_in_flight / connections
        if name == "calls a minute":
            ratio = _a_minute(stats) / rpm
        results.append(judged(f"{name} / allowed, {killed} workers killed", ratio, LIMIT_AIM))
    return results


def _a_minute(stats: ProviderStats) -> float:
    return 60 * (stats.arrivals - 1) / (stats.last_arrival - stats.first_arrival)


def measure_deaths(place: Workspace, questions: int) -> list[Result]:
    """Return the outcome of a run that loses a worker every 2 s for 30 s."""
    with Provider("--latency", "0.1") as provider:
        flags = (*BASIC, "--num-samples", str(questions), "--max-connections", "10")
        family = start(place, provider, *flags, *_RAY, "3")
        provider.wait_for_arrival(family.program)
        killed = kill_workers(family, every=2.0, seconds=30.0)
        family.finish()
        stats = provider.stats()
    twice = stats.arrivals - questions * CALLS_OF_BASIC
    return [
        Result("workers killed, one every 2 s", str(killed)),
        Result("questions without an answer", str(_unanswered(family.state)), "0"),
        Result("calls made twice, for each of them", f"{twice / max(1, killed):.1f}"),
    ]


def _unanswered(state: Path) -> int:
    (path,) = (state / "output").glob("*/samples.jsonl")
    return sum(b'"status":"answered"' not in line for line in path.read_bytes().splitlines())


def measure_size(place: Workspace, sizes: Sequence[int]) -> list[Result]:
    """Print wall time and driver memory by number of questions; return how they compare."""
    rows, walls, peaks = [], [], []
    for size in sizes:
        with Provider() as provider:
            flags = (*_ZERO_SHOT, "--num-samples", str(size), "--max-connections", "64")
            family = start(place, provider, *flags, *_RAY, "2")
            family.finish(every=0.5)
            walls.append(family.program.wait().wall_seconds)
            peaks.append(family.peak)
        rows.append(
            {
                "questions": f"{size:,}",
                "wall": f"{walls[-1]:.0f} s",
                "driver, peak": f"{peaks[-1]:.0f} MiB",
            }
        )
    show_table("zero_shot, an endpoint without latency, 2 workers", rows)
    growth = (walls[-1] / sizes[-1]) / (walls[0] / sizes[0])
    return [
        judged("time of a question, many / few questions", growth, 1.10),
        judged("peak of the driver", peaks[-1], PEAK_AIM, " MiB", 0),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("cluster", __doc__)
    add = parser.add_argument
    add("--only", choices=_PARTS, help="one part [all]")
    add("--questions", type=int, default=2000, help="basic questions of cost [%(default)s]")
    add("--latency", type=float, default=0.02, help="of cost, in seconds [%(default)s]")
    add("--under-fire", type=int, default=250, help="questions of limits, deaths [%(default)s]")
    add("--few", type=int, default=25_000, help="questions of the small size [%(default)s]")
    add("--many", type=int, default=100_000, help="questions of the large size [%(default)s]")
    quick = {"questions": 40, "under_fire": 12, "few": 20, "many": 60}
    options = parse(parser, argv, quick=quick)
    show_machine("cluster")
    results: list[Result] = []
    with workspace(max(options.questions, options.many)) as place:
        for part in _PARTS if options.only is None else (options.only,):
            match part:
                case "cost":
                    results += measure_cost(place, options.questions, options.latency)
                case "limits":
                    results += measure_limits(place, options.under_fire)
                case "deaths":
                    results += measure_deaths(place, options.under_fire)
                case "size":
                    results += measure_size(place, (options.few, options.many))
    show_results("A Ray cluster", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
