"""What a live view costs the run that it shows, what its server needs, how soon words are there.

    python -m benchmarks.view

MedQA on the fake provider, calls of 0.3 to 1.5 seconds (`--latency`), EXAID on, 32 questions under
way; in turn

- without a view: the feed is written, as by every run, and nobody reads it;
- with a view: `--view`, 19 readers of its event streams (some of the run's page, the others each of
  a question under way, then of another one) and, if installed, a Chromium on a question.

Ratios are of runs of the same round. A word is on its way from when an agent said it, as the trace
has it, until it is in a reader's event, or in the page in Chromium: the 200 ms in which words are
collected count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from playwright.async_api import Error as PlaywrightError

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
from exaid_core.trace.traces import Turn, read_trace
from tests.support.browser import CHROMIUM, open_page

WALL_AIM, FEED_AIM = 1.02, 1.02
SHARE_AIM = 10.0  # % of a core
MEMORY_AIM = 120.0  # MiB
WORD_AIM = 400.0  # ms
FRAME_AIM = 50.0  # ms
HEAP_AIM = 150.0  # MB

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


# -- readers of the event streams -----------------------------------------------------------------


@dataclass
class Heard:
    """What somebody who looked at a question had of its turns, and when."""

    case: str
    agents: dict[int, str] = field(default_factory=dict)
    """Index of a turn -> `agent_id`."""
    grown: list[tuple[float, int, int, int]] = field(default_factory=list)
    """(ms since 1970 UTC, index of a turn, first and end of the characters that were new)."""

    def delays(self, folder: Path) -> Iterator[float]:
        """Yield for each piece of text the ms from when it was said until it was there."""
        of_agent: dict[str, list[Turn]] = {}
        for turn in read_trace(folder / "traces" / f"{self.case}.trace.jsonl.gz").turns:
            of_agent.setdefault(turn.agent_id, []).append(turn)
        said: dict[int, list[tuple[int, int]]] = {}  # index -> (end of a piece, when it was said)
        for index, agent in sorted(self.agents.items()):
            deltas = of_agent[agent].pop(0).deltas
            ends = accumulate(len(delta.text) for delta in deltas)
            said[index] = [(end, delta.t_ms) for end, delta in zip(ends, deltas, strict=True)]
        for now, index, start, length in self.grown:
            yield from (now - at for end, at in said[index] if start < end <= length)


@dataclass
class Readers:
    """Those who look at a run, in a thread of this process.

    Args:
        root: Address of the server.
        run: Name of the run.
        many: Readers of its event streams; each fifth one of its page, the others of questions.
        folder: For the browser.
    """

    root: str
    run: str
    many: int
    received: int = 0
    """Bytes, of all readers."""
    updates: int = 0
    """Of all."""
    heard: list[Heard] = field(default_factory=list)
    seen: list[Heard] = field(default_factory=list)
    """In Chromium."""
    longest_frame: float = 0.0
    """In Chromium, in ms; 0 when none took 50."""
    longest_script: float = 0.0
    """The longest time of a frame in the page's own script, likewise."""
    heap: float = 0.0
    """Most that scripts of a page had there, in MB."""

    def follow(self) -> None:
        """Read until the run has ended."""
        asyncio.run(self._follow())

    async def _follow(self) -> None:
        self._under_way: dict[str, None] = {}
        self._is_over = False
        readers = [self._follow_run() if n % 5 == 0 else self._read_on(n) for n in range(self.many)]
        looking = asyncio.create_task(self._look_on())
        await asyncio.gather(*readers)
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking

    async def _follow_run(self) -> None:
        """Read of the run, and note which questions are under way."""
        async for update in self._updates(""):
            for what, id_, *_ in update:
                if id_.startswith("card-"):
                    if what == "put":
                        self._under_way[id_.removeprefix("card-")] = None
                    else:
                        self._under_way.pop(id_.removeprefix("card-"), None)
        self._is_over = True

    async def _next(self, number: int, last: str) -> str:
        """Return a question under way that is not the last one; empty when the run is over."""
        while not self._is_over:
            if cases := [case for case in self._under_way if case != last]:
                return cases[number % len(cases)]
            await asyncio.sleep(_POLL)
        return ""

    async def _read_on(self, number: int) -> None:
        """Read of one question after the other, each until it is decided."""
        case = ""
        while case := await self._next(number, case):
            heard, had = Heard(case), dict[int, int]()
            self.heard.append(heard)
            is_first = True
            async with aclosing(self._updates(f"?case={case}")) as updates:
                async for update in updates:
                    is_decided = _note(update, heard, had, is_first=is_first)
                    is_first = False
                    if is_decided:
                        break

    async def _updates(self, query: str) -> AsyncGenerator[list[list[str]]]:
        host = self.root.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"), limit=1 << 24)
        request = f"GET /runs/{self.run}/events{query} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        writer.write(request.encode())
        try:
            async for line in reader:
                self.received += len(line)
                if line.startswith(b"data: ["):
                    self.updates += 1
                    yield json.loads(line.removeprefix(b"data: "))
                elif line.startswith((b"event: end", b"HTTP/1.1 4")):
                    return
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _look_on(self) -> None:
        """Look at one question after the other in Chromium, if there is one."""
        if CHROMIUM is None:
            return
        async with open_page() as page:
            await page.add_init_script(_SEEING)
            devtools = await page.context.new_cdp_session(page)
            await devtools.send("Performance.enable")
            case = ""
            while case := await self._next(-1, case):
                with contextlib.suppress(PlaywrightError):  # the run ends with its server
                    await page.goto(f"{self.root}/runs/{self.run}/questions/{case}")
                    await page.wait_for_selector("#decision h3", timeout=0)
                    self._note_seen(case, await page.evaluate("window.seen"))
                    metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
                    used = {metric["name"]: metric["value"] for metric in metrics}
                    self.heap = max(self.heap, used["JSHeapUsedSize"] / 1e6)

    def _note_seen(self, case: str, seen: dict[str, Any]) -> None:
        agents = {int(id_.split("-")[1]): agent for id_, agent in seen["agents"].items()}
        grown = [
            (now, int(id_.split("-")[1]), start, end) for now, id_, start, end in seen["grown"]
        ]
        self.seen.append(Heard(case, agents, grown))
        self.longest_frame = max(self.longest_frame, *seen["frames"], 0)
        self.longest_script = max(self.longest_script, *seen["scripts"], 0)


def _note(
    update: Sequence[Sequence[str]], heard: Heard, had: dict[int, int], *, is_first: bool
) -> bool:
    """Note an update of a question; return whether it shows the decision.

    Args:
        update: What has changed.
        heard: Where it is noted.
        had: Index of a turn -> characters that were there.
        is_first: Whether it is what was there before.
    """
    now, is_decided = time.time() * 1000, False
    for what, id_, *rest in update:
        is_decided |= id_ == "decision" and "<h3>" in rest[-1]
        if not (turn := _TURN.fullmatch(id_)):
            continue
        index, start = int(turn[1]), had.get(int(turn[1]), 0)
        if shown := _SAID.search(rest[-1]) if what == "put" else None:
            heard.agents[index] = unescape(shown[1])
            had[index] = len(unescape(shown[2]))
        elif what == "add":
            had[index] = start + len(rest[-1])
        if had.get(index, 0) > start and not is_first:
            heard.grown.append((now, index, start, had[index]))
    return is_decided


_TURN = re.compile(r"turn-(\d+)(?:-said)?")
_SAID = re.compile(r'data-by="(.*?)".*<p class="said"[^>]*>(.*?)</p>', re.DOTALL)
# Runs in the page: what is new in it and when, and how long it did not answer.
_SEEING = """
window.seen = { agents: {}, grown: [], frames: [], scripts: [] };
{
  const lengths = new Map();
  const look = (isNew) => {
    for (const said of document.querySelectorAll(".said")) {
      const length = [...said.textContent].length;
      const had = lengths.get(said.id) ?? 0;
      if (isNew && length > had) seen.grown.push([Date.now(), said.id, had, length]);
      lengths.set(said.id, length);
      seen.agents[said.id] = said.closest(".turn").dataset.by;
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    look(false);
    const changes = { childList: true, characterData: true, subtree: true };
    new MutationObserver(() => look(true)).observe(document.body, changes);
  });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      seen.frames.push(entry.duration);
      for (const script of entry.scripts) seen.scripts.push(script.duration);
    }
  }).observe({ type: "long-animation-frame" });
}
"""


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
    reading = Readers(root, name, many)
    thread = threading.Thread(target=reading.follow)
    thread.start()
    while program.is_running():
        server.look()
        time.sleep(_POLL)
    thread.join()
    return server, reading


def measure(
    place: Workspace, questions: int, in_flight: int, rounds: int, readers: int, latency: float
) -> None:
    """Print all tables.

    Args:
        place: Where to run.
        questions: Of a run.
        in_flight: Questions under way at once.
        rounds: Runs of each variant; they take turns, each round in another order.
        readers: Of the event streams.
        latency: Of the shortest call, in seconds; the longest take five times that.
    """
    dataset = _MEDQA if _MEDQA.is_file() else SAMPLE
    flags = (
        *("--dataset", str(dataset), "--num-samples", str(questions)),
        *("--max-samples", str(in_flight), "--max-connections", str(in_flight)),
        *("--exaid", TriggerPolicy.FULL_EXAID),
    )
    variants = [_NO_VIEW, _VIEW]
    seen: dict[str, list[Measured]] = {variant: [] for variant in variants}
    latencies = ("--latency", str(latency), "--latency-spread", str(4 * latency))
    with Provider(*latencies, "--seed", "1", "--fixed-lengths") as provider:
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
        Result("updates to all of them", f"{median(r.updates for r in readers):,.0f}"),
    ]
    of_runs = [(run.readers, run.folder) for run in runs if run.readers]
    heard = [(one, folder) for reader, folder in of_runs for one in reader.heard]
    seen = [(one, folder) for reader, folder in of_runs for one in reader.seen]
    for who, those in {"in a reader's event": heard, "in the page": seen}.items():
        if words := [delay for one, folder in those for delay in one.delays(folder)]:
            what = f"from a word said until it is {who}, median"
            results.append(judged(what, median(words), WORD_AIM, " ms", digits=0))
            results.append(Result("the same, p95", f"{p95(words):.0f} ms"))
    if CHROMIUM:
        frame = max(reader.longest_frame for reader in readers)
        script = max(reader.longest_script for reader in readers)
        heap = max(reader.heap for reader in readers)
        results.append(judged("Chromium: longest script of a frame", script, FRAME_AIM, " ms", 0))
        results.append(Result("the whole of the longest frame", f"{frame:.0f} ms"))
        results.append(judged("Chromium: most heap of scripts", heap, HEAP_AIM, " MB", 0))
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = make_parser("view", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=120, help="of a run [%(default)s]")
    add("--in-flight", type=int, default=32, help="questions under way at once [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each kind [%(default)s]")
    add("--readers", type=int, default=19, help="of the event streams [%(default)s]")
    add("--latency", type=float, default=0.3, help="seconds of the shortest call [%(default)s]")
    quick = {"questions": 4, "in_flight": 4, "rounds": 1, "readers": 2, "latency": 0.1}
    options = parse(parser, argv, quick)
    show_machine("view")
    with workspace(1) as place:
        sizes = options.questions, options.in_flight, options.rounds, options.readers
        measure(place, *sizes, options.latency)
    return 0


if __name__ == "__main__":
    sys.exit(main())
