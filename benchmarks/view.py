"""What a live view costs the run that it shows, what its server needs, how soon words are there.

    python -m benchmarks.view

MedQA on the fake provider, calls of 0.3 to 1.5 seconds, EXAID on, 32 questions under way; in turn

- without a view: the feed is written, as by every run, and nobody reads it;
- with a view: `--view`, 19 readers of its event stream and, if installed, a headless Chromium.

Ratios are of runs of the same round. A word is on its way from when an agent said it, as the trace
has it, until a reader has the event with it: the 200 ms in which words are collected count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.harness import (
    SAMPLE,
    SHARED,
    Ended,
    Program,
    Provider,
    Result,
    Workspace,
    judged,
    make_parser,
    p95,
    parse,
    records,
    run_folder,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from exaid_core.policy import TriggerPolicy
from exaid_core.trace.traces import read_trace
from mdagents.agents.case import make_case_id
from tests.support.browser import CHROMIUM

WALL_AIM, FEED_AIM = 1.02, 1.02
SHARE_AIM = 10.0  # % of a core
MEMORY_AIM = 120.0  # MiB
WORD_AIM = 400.0  # ms

_MEDQA = SHARED / "medqa" / "test.jsonl"
_NO_VIEW, _VIEW = "without a view", "with a view"
# Runs main.py and notes the CPU seconds of its feed and of all: two runs differ by more than that.
_TIMED = """
import atexit, runpy, sys, time
from pathlib import Path
del sys.argv[0]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
from mdagents.live import LiveFeed
spent = 0.0
def timed(method):
    def call(*told):
        global spent
        started = time.thread_time()
        try:
            return method(*told)
        finally:
            spent += time.thread_time() - started
    return call
for name in ("happened", "refresh", "write"):
    setattr(LiveFeed, name, timed(getattr(LiveFeed, name)))
atexit.register(lambda: Path("feed.txt").write_text(f"{spent} {time.process_time()}"))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_POLL = 0.1  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")


# -- readers of the event stream ------------------------------------------------------------------


@dataclass
class Readers:
    """What readers of an event stream have got. They run in a thread of this process."""

    url: str
    many: int
    received: int = 0
    """Bytes, of all."""
    events: int = 0
    """Of the first one."""
    words: list[tuple[float, str, tuple[int, int]]] = field(default_factory=list)
    """(when it was there, case, first and last sequence number), of the first one."""
    late: list[float] = field(default_factory=list)
    """Milliseconds from the time that an event has in it until it was there, of the first one."""

    def run(self) -> None:
        """Read until all streams have ended."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        await asyncio.gather(*(self._read(is_first=n == 0) for n in range(self.many)))

    async def _read(self, *, is_first: bool) -> None:
        host, path = self.url.removeprefix("http://").split("/", 1)
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        writer.write(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        left = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                self.received += len(chunk)
                if is_first:
                    *lines, left = (left + chunk).split(b"\n")
                    self._note(lines)
        writer.close()

    def _note(self, lines: Sequence[bytes]) -> None:
        now = time.time() * 1000
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            self.events += 1
            if at := re.search(rb'"at": ?(\d{13})', line):
                self.late.append(now - int(at[1]))
            if b'"kind": "words"' in line:
                event = json.loads(line.removeprefix(b"data:"))
                self.words.append((now, make_case_id(*event["item"]), event["what"]["seqs"]))

    def delays(self, folder: Path) -> list[float]:
        """Return for each piece of text the ms from when it was said until a reader had it."""
        said: dict[str, dict[int, int]] = {}
        found = []
        for now, case, (first, last) in self.words:
            if case not in said:
                trace = read_trace(folder / "traces" / f"{case}.trace.jsonl.gz")
                said[case] = {event.seq: event.t_ms for event in trace.events}
            found += [now - said[case][seq] for seq in range(first, last + 1) if seq in said[case]]
        return found


@contextlib.contextmanager
def _chromium(url: str, folder: Path) -> Iterator[None]:
    """Open a page in a browser without a window, if there is a browser."""
    if CHROMIUM is None:
        yield
        return
    flags = ["--headless", "--no-sandbox", "--remote-debugging-port=0", "--disable-gpu"]
    process = subprocess.Popen(
        [CHROMIUM, *flags, f"--user-data-dir={folder / 'browser'}", url],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


# -- the server's process -------------------------------------------------------------------------


@dataclass
class Server:
    """The view's process, as it was seen now and then."""

    pid: int
    cpu: list[tuple[float, float]] = field(default_factory=list)
    """(monotonic seconds, CPU seconds so far)."""
    memory: float = 0.0
    """Highest resident memory, in MiB."""

    def look(self) -> None:
        """Note what it has used so far; nothing when it has ended."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
            status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        except OSError:
            return
        if peak := re.search(r"VmHWM:\s*(\d+)", status):
            self.memory = int(peak[1]) / 1024
            used = (int(fields[11]) + int(fields[12])) / _TICKS
            self.cpu.append((time.monotonic(), used))

    @property
    def share(self) -> float:
        """% of a core from the first look to the last."""
        (start, before), (end, after) = self.cpu[0], self.cpu[-1]
        return (after - before) / (end - start) * 100


def _server_of(port: int) -> int:
    """Return the id of the process that serves a view, which listens at a port."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"mdagents.view.serve" in path.read_bytes() and _listens(path.parent, port):
                return int(path.parent.name)
    raise ProcessLookupError("the view has ended")


def _listens(process: Path, port: int) -> bool:
    inodes = {Path(link).readlink().name for link in process.glob("fd/*")}
    table = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    rows = (line.split() for line in table)
    return any(
        row[3] == "0A" and int(row[1].split(":")[1], 16) == port and f"socket:[{row[9]}]" in inodes
        for row in rows
    )


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One run."""

    ended: Ended
    answers: Mapping[str, tuple[Any, ...]]
    folder: Path
    cpu: float
    """CPU seconds of the run's process alone."""
    feed: float
    """Those of them that its feed took."""
    server: Server | None = None
    readers: Readers | None = None


def _measured(
    place: Workspace, provider: Provider, flags: Sequence[str], variant: str, readers: int
) -> Measured:
    provider.reset()
    state = place.new_state()
    server = reading = None
    if variant == _VIEW:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        viewed = ("--view", "--no-open", "--view-port", str(port))
        program = place.start(provider, state, *flags, *viewed, python=("-c", _TIMED))
        server, reading = _watch(program, f"http://127.0.0.1:{port}", state, readers)
    else:
        program = place.start(provider, state, *flags, python=("-c", _TIMED))
    ended = program.finish()
    kept = ("status", "predicted", "response", "token_usage")
    answers = {r["question_id"]: tuple(r[name] for name in kept) for r in records(state)}
    folder = run_folder(state)
    assert folder is not None, "it has records"
    feed, cpu = map(float, (state / "feed.txt").read_text("ascii").split())
    return Measured(ended, answers, folder, cpu, feed, server, reading)


def _watch(program: Program, root: str, state: Path, many: int) -> tuple[Server, Readers]:
    """Let readers follow a run until it ends."""
    name = ""
    while not name:
        time.sleep(_POLL)
        with contextlib.suppress(URLError), urlopen(f"{root}/api/runs") as response:
            name = next((run["name"] for run in json.load(response)["runs"]), "")
    server = Server(_server_of(int(root.rpartition(":")[2])))
    reading = Readers(f"{root}/runs/{name}/events", many)
    thread = threading.Thread(target=reading.run)
    thread.start()
    with _chromium(f"{root}/runs/{name}", state):
        while program.is_running():
            server.look()
            time.sleep(_POLL)
    thread.join()
    return server, reading


def measure(place: Workspace, questions: int, in_flight: int, rounds: int, readers: int) -> None:
    """Print all tables.

    Args:
        place: Where to run.
        questions: Of a run.
        in_flight: Questions under way at once.
        rounds: Runs of each variant; they take turns, each round in another order.
        readers: Of the event stream.
    """
    dataset = _MEDQA if _MEDQA.is_file() else SAMPLE
    flags = (
        *("--dataset", str(dataset), "--num-samples", str(questions)),
        *("--max-samples", str(in_flight), "--max-connections", str(in_flight)),
        *("--exaid", TriggerPolicy.FULL_EXAID),
    )
    variants = [_NO_VIEW, _VIEW]
    seen: dict[str, list[Measured]] = {variant: [] for variant in variants}
    latency = ("--latency", "0.3", "--latency-spread", "1.2", "--seed", "1", "--fixed-lengths")
    with Provider(*latency) as provider:
        for number in range(rounds):
            turn = number % len(variants)
            for variant in variants[turn:] + variants[:turn]:
                seen[variant].append(_measured(place, provider, flags, variant, readers))
    rows = [
        {
            "run": variant,
            "wall, s": f"{median(run.ended.wall_seconds for run in runs):.1f}",
            "CPU of the run's process, s": f"{median(run.cpu for run in runs):.2f}",
            "range": f"{min(r.cpu for r in runs):.2f} – {max(r.cpu for r in runs):.2f}",
        }
        for variant, runs in seen.items()
    ]
    browser = "1 Chromium" if CHROMIUM else "no Chromium"
    title = (
        f"{questions} questions, {in_flight} at once; {readers} readers, {browser}; {rounds} rounds"
    )
    show_table(f"{title}, medians", rows)
    show_results("The live view", [*_costs(seen), *_service(seen[_VIEW])])


def _costs(seen: Mapping[str, Sequence[Measured]]) -> list[Result]:
    with_view, without = seen[_VIEW], seen[_NO_VIEW]
    pairs = list(zip(with_view, without, strict=True))
    wall = [a.ended.wall_seconds / b.ended.wall_seconds for a, b in pairs]
    cpu = [a.cpu / b.cpu for a, b in pairs]
    feed = [run.cpu / (run.cpu - run.feed) for run in (*with_view, *without)]
    answers = without[0].answers
    differing = sum(
        answer != answers[question]
        for run in (*with_view, *without)
        for question, answer in run.answers.items()
    )
    return [
        judged("wall time of a run / without a view", median(wall), WALL_AIM, digits=3),
        Result("the same, least and most", f"{min(wall):.3f} – {max(wall):.3f}"),
        judged("CPU of the run's process / without a view", median(cpu), WALL_AIM, digits=3),
        judged("CPU of a run / of all but its feed", median(feed), FEED_AIM, digits=3),
        Result("the same, least and most", f"{min(feed):.3f} – {max(feed):.3f}"),
        judged("questions answered otherwise", differing, 0, digits=0),
    ]


def _service(runs: Sequence[Measured]) -> list[Result]:
    servers = [run.server for run in runs if run.server]
    readers = [run.readers for run in runs if run.readers]
    share = median(server.share for server in servers)
    memory = max(server.memory for server in servers)
    results = [
        judged("server: share of a core", share, SHARE_AIM, " %", digits=1),
        judged("server: most memory", memory, MEMORY_AIM, " MiB", digits=0),
        Result("sent to all readers", f"{median(r.received for r in readers) / 1e6:.1f} MB"),
        Result("events to one of them", f"{median(r.events for r in readers):.0f}"),
    ]
    if late := [delay for reader in readers for delay in reader.late]:
        results.append(Result("from an event to a reader, median", f"{median(late):.0f} ms"))
        results.append(Result("the same, p95", f"{p95(late):.0f} ms"))
    words = [delay for run in runs if run.readers for delay in run.readers.delays(run.folder)]
    if words:
        what = "from a word said to a reader, median"
        results.append(judged(what, median(words), WORD_AIM, " ms", digits=0))
        results.append(Result("the same, p95", f"{p95(words):.0f} ms"))
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = make_parser("view", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=120, help="of a run [%(default)s]")
    add("--in-flight", type=int, default=32, help="questions under way at once [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each kind [%(default)s]")
    add("--readers", type=int, default=19, help="of the event stream [%(default)s]")
    quick = {"questions": 4, "in_flight": 4, "rounds": 1, "readers": 2}
    options = parse(parser, argv, quick)
    show_machine("view")
    with workspace(1) as place:
        measure(place, options.questions, options.in_flight, options.rounds, options.readers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
