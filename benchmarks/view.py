"""Measure the live view: its cost to the run, its server's resources and the delay of words.

    python -m benchmarks.view
    python -m benchmarks.view --list 1000 50000    # only the page of a run with many questions

The benchmark runs MedQA on the fake provider, with calls of 0.3 to 1.5 seconds (`--latency`), EXAID
on and 32 questions in progress, alternating between two variants:

- without a view: the feed is written, as in every run, but nobody reads it;
- with a view: `--view`, 19 readers of its event streams (some follow the run's page, the others a
  question in progress, then another one) and, if installed, Chromium showing a question.

Ratios compare runs of the same round. The delay of a word is the time from when an agent said it,
according to the trace, until it is in a reader's event, or in the page in Chromium; it includes the
200 ms for which words are batched.
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
    MEDQA,
    SAMPLE,
    Ended,
    Program,
    Provider,
    Result,
    Workspace,
    interleaved,
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
from mdagents.agents.case import make_case_id
from mdagents.records.line_log import LineLog
from mdagents.records.manifest import read_manifest
from mdagents.records.sample import CaseSummaries, SampleRecord
from tests.support.browser import CHROMIUM, open_page

WALL_AIM, FEED_AIM = 1.02, 1.02
SHARE_AIM = 10.0  # % of a core
MEMORY_AIM = 120.0  # MiB
WORD_AIM = 400.0  # ms
FRAME_AIM = 50.0  # ms
HEAP_AIM = 150.0  # MB

_NO_VIEW, _VIEW = "without a view", "with a view"
# Runs main.py and records the CPU seconds of its feed and in total, because two runs differ by more
# than the feed's share.
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
    """The text that one reader of a question received, and when."""

    case: str
    agents: dict[int, str] = field(default_factory=dict)
    """`agent_id` by turn index."""
    grown: list[tuple[float, int, int, int]] = field(default_factory=list)
    """(ms since the Unix epoch, turn index, start and end of the new characters)."""

    def delays(self, folder: Path) -> Iterator[float]:
        """Yield the delay of each piece of text in ms, from being said to being received."""
        of_agent: dict[str, list[Turn]] = {}
        for turn in read_trace(folder / "traces" / f"{self.case}.trace.jsonl.gz").turns:
            of_agent.setdefault(turn.agent_id, []).append(turn)
        said: dict[
            int, list[tuple[int, int]]
        ] = {}  # turn index -> (end of a piece, when it was said)
        for index, agent in sorted(self.agents.items()):
            deltas = of_agent[agent].pop(0).deltas
            ends = accumulate(len(delta.text) for delta in deltas)
            said[index] = [(end, delta.t_ms) for end, delta in zip(ends, deltas, strict=True)]
        for now, index, start, length in self.grown:
            yield from (now - at for end, at in said[index] if start < end <= length)


@dataclass
class Readers:
    """The readers of a run's live view, in a thread of this process.

    Args:
        root: Base URL of the server.
        run: Name of the run.
        many: Number of event-stream readers; every fifth follows the run page, the rest questions.
    """

    root: str
    run: str
    many: int
    received: int = 0
    """Bytes received by all readers."""
    updates: int = 0
    """Number of updates received by all readers."""
    heard: list[Heard] = field(default_factory=list)
    seen: list[Heard] = field(default_factory=list)
    """Text that appeared in Chromium, by question."""
    longest_frame: float = 0.0
    """Longest animation frame in Chromium in ms; 0 if no frame took 50 ms or more."""
    longest_script: float = 0.0
    """Longest time in ms that one of the page's scripts took in such a long frame."""
    heap: float = 0.0
    """Peak script heap of a page in Chromium, in MB."""

    def follow(self) -> None:
        """Read until the run ends."""
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
        """Follow the run page and track which questions are in progress."""
        async for update in self._updates(""):
            for what, id_, *_ in update:
                if id_.startswith("card-"):
                    if what == "put":
                        self._under_way[id_.removeprefix("card-")] = None
                    else:
                        self._under_way.pop(id_.removeprefix("card-"), None)
        self._is_over = True

    async def _next(self, number: int, last: str) -> str:
        """Return a question in progress other than the last one; empty once the run is over."""
        while not self._is_over:
            if cases := [case for case in self._under_way if case != last]:
                return cases[number % len(cases)]
            await asyncio.sleep(_POLL)
        return ""

    async def _read_on(self, number: int) -> None:
        """Follow one question after another, each until it is decided."""
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
        """Show one question after another in Chromium, if it is installed."""
        if CHROMIUM is None:
            return
        async with open_page() as page:
            await page.add_init_script(_SEEING)
            devtools = await page.context.new_cdp_session(page)
            await devtools.send("Performance.enable")
            case = ""
            while case := await self._next(-1, case):
                with contextlib.suppress(PlaywrightError):  # the server ends with the run
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
    """Record an update of a question and return whether it shows the decision.

    Args:
        update: Changes to the page.
        heard: Record to add the new text to.
        had: Number of characters already received, by turn index.
        is_first: Whether the update is the initial state rather than new text.
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
# Runs in the page to record new text, when it appeared, and long animation frames.
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
    """The view's server process, sampled periodically."""

    pid: int
    cpu: list[tuple[float, float]] = field(default_factory=list)
    """Samples of (monotonic seconds, CPU seconds so far)."""
    memory: float = 0.0
    """Peak resident memory in MiB."""

    def look(self) -> None:
        """Sample the CPU time and memory used so far, unless the process has ended."""
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
        """Percentage of a core used from the first sample to the last."""
        (start, before), (end, after) = self.cpu[0], self.cpu[-1]
        return (after - before) / (end - start) * 100


def _server_of(port: int) -> int:
    """Return the id of the view's server process, which listens on `port`."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"mdagents.view.serve" in path.read_bytes() and _listens(path.parent, port):
                return int(path.parent.name)
    raise ProcessLookupError("the view has ended")


def _listens(process: Path, port: int) -> bool:
    inodes = set[str]()
    for link in process.glob("fd/*"):
        with contextlib.suppress(FileNotFoundError):  # of a connection that has just been closed
            inodes.add(link.readlink().name)
    table = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    rows = (line.split() for line in table)
    return any(
        row[3] == "0A" and int(row[1].split(":")[1], 16) == port and f"socket:[{row[9]}]" in inodes
        for row in rows
    )


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """The measurements of one run."""

    ended: Ended
    answers: Mapping[str, tuple[Any, ...]]
    folder: Path
    cpu: float
    """CPU seconds of the run's process only."""
    feed: float
    """CPU seconds spent in the run's feed."""
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
    """Have readers follow a run until it ends."""
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
    """Run both variants and print all tables.

    Args:
        place: Workspace of the runs.
        questions: Number of questions per run.
        in_flight: Maximum number of questions in progress.
        rounds: Number of runs per variant, interleaved in an order that rotates each round.
        readers: Number of event-stream readers.
        latency: Seconds of the shortest call; the longest takes five times that.
    """
    dataset = MEDQA if MEDQA.is_file() else SAMPLE
    flags = (
        *("--dataset", str(dataset), "--num-samples", str(questions)),
        *("--max-samples", str(in_flight), "--max-connections", str(in_flight)),
        *("--exaid", TriggerPolicy.FULL_EXAID),
    )
    latencies = ("--latency", str(latency), "--latency-spread", str(4 * latency))
    with Provider(*latencies, "--seed", "1", "--fixed-lengths") as provider:
        seen = interleaved(
            lambda variant: _measured(place, provider, flags, variant, readers),
            (_NO_VIEW, _VIEW),
            rounds,
        )
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


# -- the page of a large run ----------------------------------------------------------------------


def measure_lists(place: Workspace, sizes: Sequence[int]) -> None:
    """Print the size and the time of a run's page and list, and the server's memory.

    Args:
        place: Workspace of the runs.
        sizes: Numbers of questions.
    """
    flags = ("--dataset", str(SAMPLE), "--exaid", TriggerPolicy.FULL_EXAID)
    state = place.new_state()
    with Provider("--latency", "0.01") as provider:
        place.start(provider, state, *flags, "--difficulty", "intermediate").finish()
    folder = run_folder(state)
    assert folder is not None, "it has records"
    show_table("The page of a finished run", [_list_of(place, folder, size) for size in sizes])


def _list_of(place: Workspace, folder: Path, size: int) -> dict[str, str]:
    output = place.new_state() / "output"
    _enlarge(folder, output / "run", size)
    program = str(Path(__file__).parents[1] / "view.py")
    command = [sys.executable, program, str(output), "--no-open", "--view-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://[^ ]*\d", process.stdout.readline())
        assert found, "it prints its address"
        server, root = Server(process.pid), found[0]
        page, first = _timed(f"{root}/runs/run")
        rows, first_rows = _timed(f"{root}/runs/run/questions")
        asked = (
            "?start=50",
            "?sort=tokens&order=descending",
            "?tag=expensive",
            "?text=patient+pain",
        )
        later = [
            _timed(f"{root}/runs/run/questions{query}")[1] for query in asked for _ in range(5)
        ]
        again = [_timed(f"{root}/runs/run") for _ in range(5)]
        server.look()
        process.terminate()
    return {
        "questions": f"{size:,}",
        "page, kB": f"{max(page, *(size for size, _ in again)) / 1e3:,.0f}",
        "first page, ms": f"{first:,.0f}",
        "first list, ms": f"{first_rows:,.0f}",
        "later page, ms": f"{median(took for _, took in again):,.0f}",
        "later list, ms, median (most)": f"{median(later):,.0f} ({max(later):,.0f})",
        "50 rows, kB": f"{rows / 1e3:,.0f}",
        "server, most memory, MiB": f"{server.memory:,.0f}",
    }


def _timed(url: str) -> tuple[int, float]:
    """Return the bytes of an answer and the ms until it was there."""
    started = time.monotonic()
    with urlopen(url) as response:
        size = len(response.read())
    return size, (time.monotonic() - started) * 1000


def _enlarge(folder: Path, large: Path, size: int) -> None:
    """Write a finished run whose records and summaries are those of another one, repeated."""
    large.mkdir(parents=True)
    ids = [f"question-{number}" for number in range(size)]
    manifest = read_manifest(folder)
    assert manifest is not None, "the run has one"
    totals = manifest.totals.model_copy(update={"questions": size})
    changes = {"item_ids": ids, "totals": totals, "finished": True}
    (large / "run.json").write_text(manifest.model_copy(update=changes).model_dump_json())
    for name, record_type in (("samples.jsonl", SampleRecord), ("summaries.jsonl", CaseSummaries)):
        lines = (folder / name).read_text("utf-8").splitlines()
        records = [record_type.model_validate_json(line) for line in lines]
        marked = {"question_id": _MARK, "case_id": make_case_id(_MARK, 1)}
        texts = [
            record.model_copy(
                update={key: marked[key] for key in marked if key in record_type.model_fields}
            ).model_dump_json()
            for record in records
        ]
        log = LineLog(large / name, syncs=False)
        for number, id_ in enumerate(ids):
            log.append(texts[number % len(texts)].replace(_MARK, id_).encode())
        log.close()


_MARK = "question-of-the-copy"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("view", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=120, help="of a run [%(default)s]")
    add("--in-flight", type=int, default=32, help="questions in progress at once [%(default)s]")
    add("--rounds", type=int, default=3, help="runs of each kind [%(default)s]")
    add("--readers", type=int, default=19, help="of the event streams [%(default)s]")
    add("--latency", type=float, default=0.3, help="seconds of the shortest call [%(default)s]")
    add(
        "--list", type=int, nargs="+", metavar="N", help="measure pages of runs of N questions only"
    )
    quick = {"questions": 4, "in_flight": 4, "rounds": 1, "readers": 2, "latency": 0.1}
    options = parse(parser, argv, quick)
    show_machine("view")
    with workspace(1) as place:
        if options.list:
            measure_lists(place, options.list)
            return 0
        sizes = options.questions, options.in_flight, options.rounds, options.readers
        measure(place, *sizes, options.latency)
    return 0


if __name__ == "__main__":
    sys.exit(main())
