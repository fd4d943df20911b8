"""Measure what workers gain and cost, and whether the run's limits hold with them.

    python -m benchmarks.workers [--only speed|cost|limits|deaths|size] [--ray-address auto]

- speed: calls per second, in one process and with 2 workers, by latency of the endpoint.
- cost: CPU time per call, in one process and with workers; the difference between a large and a
  small run, which excludes one-time work.
- limits: calls in flight and calls per minute, as the endpoint sees them, while workers are killed.
- deaths: a worker is killed every 2 s for 30 s.
- size: wall time and peak memory of the driver, with few questions and with many.

Workers are processes of this machine, or of a Ray cluster on it (`ray start --head`).
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
from statistics import median

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

SPEED_AIM = 0.9  # of the number of workers
COST_AIM = 1.10  # times the CPU time per call in one process
LIMIT_AIM = 1.05  # times the limit set
PEAK_AIM = 250.0  # MiB
_PARTS = ("speed", "cost", "limits", "deaths", "size")
_WORKER = (b"import serve; serve()", b"ray::Worker")
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.1  # seconds
_ZERO_SHOT = ("--method", "zero_shot")


@dataclass(slots=True)
class Family:
    """The driver and the workers of a run, sampled while they are alive.

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
            pid = int(path.name)
            try:
                line = (path / "cmdline").read_bytes()
                is_ours = pid in self.cpu or line.startswith(b"ray::Worker")
                if not is_ours and mark not in (path / "environ").read_bytes():
                    continue
                stat = (path / "stat").read_text().rpartition(") ")[2]
            except OSError:
                continue
            used = sum(map(int, stat.split()[11:13])) / _TICKS
            if any(part in line for part in _WORKER):
                self.cpu[pid] = "workers", used
            elif b"main.py" in line:
                self.cpu[pid] = "driver", used
            elif pid in self.cpu:  # it is exiting
                self.cpu[pid] = self.cpu[pid][0], used

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


def engines(ray_address: str) -> dict[str, tuple[str, ...]]:
    """Return name -> flags of the ways to answer questions that are compared."""
    if not ray_address:
        return {"1 process": (), "2 workers": ("--processes", "2")}
    ray = ("--ray-address", ray_address, "--processes")
    return {"1 process": (), "1 worker": (*ray, "1"), "2 workers": (*ray, "2")}


def measure_speed(
    place: Workspace, ray_address: str, questions: int, latency: float, rounds: int
) -> list[Result]:
    """Print calls per second by engine; return how the largest compares with one process.

    Args:
        place: Workspace of the runs.
        ray_address: Address of a Ray cluster on this machine; empty for processes.
        questions: Number of basic questions of a run.
        latency: Latency of the endpoint in seconds.
        rounds: Number of runs of each engine, interleaved.
    """
    rates: dict[str, list[float]] = {}
    loads: dict[str, list[float]] = {}
    flags = (*BASIC, "--cache", "off", "--max-connections", "400", "--num-samples", str(questions))
    for _ in range(rounds):
        for name, engine in engines(ray_address).items():
            with Provider("--latency", str(latency)) as provider:
                start(place, provider, *flags, *engine).program.finish()
                stats = provider.stats()
            seconds = stats.last_arrival - stats.first_arrival
            rates.setdefault(name, []).append((stats.arrivals - 1) / seconds)
            loads.setdefault(name, []).append(stats.cpu_seconds / seconds)
    rows = [
        {
            "engine": name,
            "calls/s, median": f"{median(seen):.0f}",
            "least": f"{min(seen):.0f}",
            "most": f"{max(seen):.0f}",
            "provider busy": f"{median(loads[name]):.0%}",
        }
        for name, seen in rates.items()
    ]
    show_table(
        f"Calls per second, {questions} basic questions, latency {latency * 1000:g} ms, "
        f"{os.cpu_count()} cores with the provider",
        rows,
    )
    ratio = median(rates["2 workers"]) / median(rates["1 process"])
    verdict = "met" if ratio >= 2 * SPEED_AIM else "MISSED"
    what = f"calls per second, 2 workers / 1 process, latency {latency * 1000:g} ms"
    return [Result(what, f"{ratio:.2f}", f">= {2 * SPEED_AIM:g}", verdict)]


def measure_cost(
    place: Workspace, ray_address: str, questions: int, latency: float
) -> list[Result]:
    """Print the CPU time per call by engine; return its ratios to one process."""
    small = questions // 4
    calls = (questions - small) * CALLS_OF_BASIC
    rows, costs = [], {}
    for name, engine in engines(ray_address).items():
        used: list[dict[str, float]] = []
        for size in (small, questions):
            with Provider("--latency", str(latency)) as provider:
                flags = (*BASIC, "--cache", "off", "--max-connections", "64", *engine)
                family = start(place, provider, *flags, "--num-samples", str(size))
                used.append(family.finish())
        each = {w: 1000 * (used[1].get(w, 0) - used[0].get(w, 0)) / calls
                for w in ("driver", "workers")}  # fmt: skip
        costs[name] = each["driver"] + each["workers"]
        rows.append(
            {"engine": name}
            | {f"{what}, ms": f"{ms:.3f}" for what, ms in each.items()}
            | {"driver + workers": f"{costs[name]:.3f}"}
        )  # fmt: skip
    show_table(
        f"CPU time of a call, {questions} basic questions, latency {latency * 1000:g} ms, "
        f"{os.cpu_count()} cores with the provider",
        rows,
    )
    alone = costs.pop("1 process")
    return [
        judged(f"CPU time of a call, {name} / 1 process", cost / alone, COST_AIM)
        for name, cost in costs.items()
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


def measure_limits(place: Workspace, workers: Sequence[str], questions: int) -> list[Result]:
    """Return the endpoint's load relative to each limit while workers are killed."""
    results = []
    rpm, connections = 1500, 10
    for name, flags in (
        ("calls in progress", ("--max-connections", str(connections))),
        ("calls a minute", ("--rpm", str(rpm))),
    ):
        with Provider("--latency", "0.1") as provider:
            common = (*BASIC, "--cache", "off", "--num-samples", str(questions), *flags)
            family = start(place, provider, *common, *workers, "3")
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


def measure_deaths(place: Workspace, workers: Sequence[str], questions: int) -> list[Result]:
    """Return the outcome of a run that loses a worker every 2 s for 30 s."""
    with Provider("--latency", "0.1") as provider:
        flags = (*BASIC, "--num-samples", str(questions), "--max-connections", "10")
        family = start(place, provider, *flags, *workers, "3")
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


def measure_size(place: Workspace, workers: Sequence[str], sizes: Sequence[int]) -> list[Result]:
    """Print wall time and driver memory by number of questions; return how they compare."""
    rows, walls, peaks = [], [], []
    for size in sizes:
        with Provider() as provider:
            flags = (*_ZERO_SHOT, "--num-samples", str(size), "--max-connections", "64")
            family = start(place, provider, *flags, *workers, "2")
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
    parser = make_parser("workers", __doc__)
    add = parser.add_argument
    add("--only", choices=_PARTS, help="one part [all]")
    add("--ray-address", default="", help="cluster on this machine [workers are processes]")
    add("--questions", type=int, default=2000, help="of speed and cost [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each engine for speed [%(default)s]")
    add("--latency", type=float, default=0.02, help="of cost, in seconds [%(default)s]")
    add("--under-fire", type=int, default=250, help="questions of limits, deaths [%(default)s]")
    add("--few", type=int, default=25_000, help="questions of the small size [%(default)s]")
    add("--many", type=int, default=100_000, help="questions of the large size [%(default)s]")
    quick = {"questions": 40, "rounds": 1, "under_fire": 12, "few": 20, "many": 60}
    options = parse(parser, argv, quick=quick)
    show_machine("workers")
    address = options.ray_address
    workers = (*(("--ray-address", address) if address else ()), "--processes")
    results: list[Result] = []
    for part in _PARTS if options.only is None else (options.only,):
        # A run reads all of its file before it answers a part of it.
        with workspace(options.many if part == "size" else options.questions) as place:
            match part:
                case "speed":
                    for latency in (0.0, 0.2):
                        results += measure_speed(
                            place, address, options.questions, latency, options.rounds
                        )
                case "cost":
                    results += measure_cost(place, address, options.questions, options.latency)
                case "limits":
                    results += measure_limits(place, workers, options.under_fire)
                case "deaths":
                    results += measure_deaths(place, workers, options.under_fire)
                case "size":
                    results += measure_size(place, workers, (options.few, options.many))
    show_results("Workers on a Ray cluster" if address else "Workers on this machine", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
