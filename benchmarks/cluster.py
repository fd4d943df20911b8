"""What a Ray cluster costs a run, and whether it keeps to the run's limits.

    python -m benchmarks.cluster [--only cost|limits|deaths|size]

- cost: CPU time of a call, in this process and on a cluster of this machine with 1 and 2 workers;
  the difference of a large and a small run, so that nothing that is done once counts.
- limits: calls under way and calls a minute, as the endpoint sees them, while workers are killed.
- deaths: a worker is killed every 2 s for 30 s.
- size: time and peak memory of the driver, with few questions and with many.
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

COST_AIM = 1.10  # of the CPU time of a call in one process
LIMIT_AIM = 1.05  # of what was asked for
PEAK_AIM = 250.0  # MiB
_PARTS = ("cost", "limits", "deaths", "size")
_RAY = ("--engine", "ray", "--ray-workers")
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.1  # seconds
_ZERO_SHOT = ("--method", "zero_shot")


@dataclass(slots=True)
class Family:
    """The processes of a run on a cluster of this machine, while they live.

    Args:
        program: The driver.
        state: Folder of the run, which is in the environment of all of them.
    """

    program: Program
    state: Path
    cpu: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Process -> (what it is, seconds of CPU time when it was last seen)."""
    peak: float = 0.0
    """Of the driver, in MiB."""

    def look(self) -> None:
        """Note what all of them have used so far."""
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
            if before == "workers" or not line:  # it is ending
                what = before
            self.cpu[int(path.name)] = "driver" if b"main.py" in line else what, used

    def workers(self) -> list[int]:
        """Return the workers that live."""
        return [pid for pid, (what, _) in self.cpu.items()
                if what == "workers" and Path(f"/proc/{pid}").exists()]  # fmt: skip

    def finish(self, every: float = _POLL) -> dict[str, float]:
        """Wait for the end of the driver; return what kind of process -> CPU seconds."""
        while self.program.is_running():
            self.look()
            time.sleep(every)
        self.program.finish()
        used: dict[str, float] = {}
        for what, seconds in self.cpu.values():
            used[what] = used.get(what, 0.0) + seconds
        return used


def start(place: Workspace, provider: Provider, *flags: str) -> Family:
    """Start `main.py`."""
    state = place.new_state()
    return Family(place.start(provider, state, *flags), state)


def measure_cost(place: Workspace, questions: int, latency: float) -> list[Result]:
    """Print and return what a call costs, by engine."""
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
    """Kill a worker now and then; return how many were."""
    chance, killed, ends = random.Random(1), 0, time.monotonic() + seconds
    while family.program.is_running() and time.monotonic() < ends:
        time.sleep(every)
        family.look()
        if there := family.workers():
            os.kill(chance.choice(there), signal.SIGKILL)
            killed += 1
    return killed


def measure_limits(place: Workspace, questions: int) -> list[Result]:
    """Return what the endpoint saw while workers were killed."""
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
    """Return what became of a run of which a worker is killed every 2 s for 30 s."""
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
    """Print and return time and memory by the number of questions."""
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
    """Measure and print; return the exit status."""
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
