"""The common parts of all benchmarks: fake provider and `main.py` as processes, questions, tables.

Linux only: memory and CPU time of a child are read from `/proc` and `wait4`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from prettytable import PrettyTable

from mdagents.records.calls import read_calls
from mdagents_llm.ledger import CallRow

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLE = REPOSITORY / "data" / "medqa" / "sample.jsonl"
SHARED = Path(os.environ.get("MDAGENTS_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
"""Real data that is not part of the project; it may be missing."""
CALLS_OF_BASIC = 5
"""Calls of a basic question: recruiter, three experts, arbitrator (docs/teams.md)."""
BASIC = ("--difficulty", "basic")

_MAIN = REPOSITORY / "main.py"
_QUIET = 1.0  # load average; above it, other programs disturb the measurement
_POLL = 0.02  # seconds
_KIB = 1024


class BenchmarkError(Exception):
    """A measurement cannot be made: a program failed, or did something else than expected."""


# -- command line and machine ---------------------------------------------------------------------


def make_parser(benchmark: str, doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a benchmark, which says of it the first line of its docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{benchmark}", description=(doc or "").partition("\n")[0]
    )


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, quick: Mapping[str, object]
) -> argparse.Namespace:
    """Parse a benchmark's command line.

    Args:
        parser: With the flags of the benchmark.
        argv: The arguments; None: those of the process.
        quick: The defaults with `--quick`: enough to check that everything works.
    """
    parser.add_argument(
        "-q", "--quick", action="store_true", help="small sizes: shows that it works, not how fast"
    )
    if parser.parse_known_args(argv)[0].quick:
        parser.set_defaults(**quick)
    return parser.parse_args(argv)


def show_machine(benchmark: str) -> None:
    """Print machine and date of a benchmark, and warn when the machine is not idle."""
    load = os.getloadavg()[0]
    print(
        f"{benchmark}: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores "
        f"({platform.machine()}), {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()}, "
        f"load average {load:.2f} at the start"
    )
    if load > _QUIET:
        print(
            f"WARNING: the load average is above {_QUIET:g}: other programs are using this "
            "machine, and times are too long. Ratios are still of use, aims are not."
        )


# -- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a result table."""

    what: str
    value: str
    aim: str = ""
    verdict: str = ""
    """`met` or `MISSED`; empty without an aim."""


def judged(what: str, value: float, aim: float, unit: str = "", digits: int = 2) -> Result:
    """Return a result that should be `aim` or less."""
    verdict = "met" if round(value, digits) <= aim else "MISSED"
    return Result(what, f"{value:.{digits}f}{unit}", f"<= {aim:.{4}g}{unit}", verdict)


def p95(values: Sequence[float]) -> float:
    """Return the value that 95 % of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def show_table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table of column -> cell; the first column is text, the others are numbers."""
    first, *others = rows[0]
    table = PrettyTable([first, *others])
    table.align = "r"
    table.align[first] = "l"
    table.add_rows([list(row.values()) for row in rows])
    print(f"\n{title}\n{table}", flush=True)


def show_results(title: str, results: Sequence[Result]) -> None:
    """Print results against their aims."""
    rows = [{"measurement": r.what, "measured": r.value, "aim": r.aim, "": r.verdict}
            for r in results]  # fmt: skip
    show_table(title, rows)


# -- the fake provider ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderStats:
    """The provider's counts since it started or was reset."""

    arrivals: int
    """Requests for a reply."""
    prompts: int
    """Different prompts among them; 0 unless it counts them."""
    outcomes: Mapping[str, int]
    """`ok` or the fault -> requests."""
    in_flight: int
    max_in_flight: int
    first_arrival: float
    """Monotonic seconds, by the same clock as this process; 0 before the first request."""
    last_arrival: float
    cpu_seconds: float
    """CPU time of serving."""


class Provider:
    """`benchmarks.provider` as a child process; a context manager.

    Args:
        flags: Of its command line.
    """

    def __init__(self, *flags: str) -> None:
        command = [sys.executable, "-m", "benchmarks.provider", *flags]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError(f"the fake provider did not start: {' '.join(command)}")
        self.base_url: str = json.loads(line)["openai_base_url"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its standard input, at which it ends

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return urlsplit(self.base_url).port or 0

    def kill(self) -> None:
        """Send SIGKILL: all connections are cut, and new ones are refused."""
        self._process.kill()
        self._process.wait()

    def fail(self, fault: str) -> None:
        """Let a fault hit every request from now on; empty: no fault any more."""
        self._ask("POST", f"/__fail__/{fault}")

    def stats(self) -> ProviderStats:
        """Return the counts since it started or was reset."""
        return ProviderStats(**self._ask("GET", "/__stats__"))

    def reset(self) -> None:
        """Start counting anew. Faults fall on the same arrival numbers again."""
        self._ask("POST", "/__reset__")

    def wait_for_arrival(self, program: Program) -> ProviderStats:
        """Wait until a request has arrived.

        Raises:
            BenchmarkError: The program ended without a request.
        """
        while True:
            stats = self.stats()
            if stats.arrivals:
                return stats
            if not program.is_running():
                raise BenchmarkError(f"main.py ended without a call: {program.errors()}")
            time.sleep(_POLL)

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        url = self.base_url.removesuffix("/v1") + path
        with urlopen(Request(url, method=method)) as response:
            content: dict[str, Any] = json.load(response)
        return content


# -- programs under measurement -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """The cost of a program from its start to its end."""

    status: int
    """Exit status; negative: the signal that killed it."""
    wall_seconds: float
    cpu_seconds: float
    """User and system time, of its own children too."""


class Program:
    """A child process whose time and memory are measured.

    Args:
        command: What to run.
        folder: Its working directory; its standard error goes to a file there.
        environment: All variables that it sees.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._command = command
        self._errors = folder / "stderr.txt"
        with self._errors.open("wb") as errors:
            self.started = time.monotonic()
            """Monotonic seconds."""
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        self._ended: Ended | None = None

    def is_running(self) -> bool:
        """Return whether it has not ended yet."""
        return self._ended is None and not self._reap(os.WNOHANG)

    def wait(self) -> Ended:
        """Wait for its end."""
        while self._ended is None:
            self._reap(0)
        return self._ended

    def finish(self) -> Ended:
        """Wait for its end.

        Raises:
            BenchmarkError: It failed.
        """
        ended = self.wait()
        if ended.status != 0:
            raise BenchmarkError(
                f"{' '.join(self._command)} ended with {ended.status}: {self.errors()}"
            )
        return ended

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self.is_running():
            os.kill(self._process.pid, signal.SIGKILL)
        self.wait()

    def peak(self) -> float:
        """Wait for its end, and return the highest resident memory until then, in MiB.

        Raises:
            BenchmarkError: It failed.
        """
        highest = 0.0
        while self.is_running():
            highest = max(highest, self.memory())
            time.sleep(_POLL)
        self.finish()
        return highest

    def memory(self) -> float:
        """Return the peak of its resident memory so far in MiB; 0 when it has ended."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0.0
        peak = re.search(r"VmHWM:\s*(\d+)", status)
        return int(peak[1]) / _KIB if peak else 0.0  # without: it is ending

    def errors(self) -> str:
        """Return its standard error so far."""
        return self._errors.read_text(encoding="utf-8", errors="replace").strip()

    def _reap(self, options: int) -> bool:
        pid, status, usage = os.wait4(self._process.pid, options)
        if pid == 0:
            return False
        self._ended = Ended(
            status=os.waitstatus_to_exitcode(status),
            wall_seconds=time.monotonic() - self.started,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
        )
        self._process.returncode = self._ended.status  # Popen must not wait for it again
        return True


class Workspace:
    """A temporary folder with a data set, in which `main.py` is run.

    Args:
        folder: The folder, which must exist.
        questions: Number of questions in the data set.
        source: File whose first questions they are; None: made from the shipped sample.
    """

    def __init__(self, folder: Path, questions: int, source: Path | None = None) -> None:
        self.folder = folder
        self._dataset = folder / "questions.jsonl"
        self._states = 0
        if source is None:
            write_questions(self._dataset, questions)
        else:
            lines = source.read_bytes().split(b"\n")[:questions]
            self._dataset.write_bytes(b"".join(line + b"\n" for line in lines))

    def new_state(self) -> Path:
        """Make an empty folder for one run of `main.py`: its output, its caches."""
        self._states += 1
        state = self.folder / f"state-{self._states}"
        state.mkdir()
        return state

    def copy_of(self, state: Path) -> Path:
        """Copy the folder of a run, to continue from it more than once."""
        copy = self.new_state()
        shutil.copytree(state, copy, dirs_exist_ok=True)
        return copy

    def start(
        self, provider: Provider, state: Path, *flags: str, python: Sequence[str] = ()
    ) -> Program:
        """Start `main.py` on the data set.

        Args:
            provider: The endpoint.
            state: Folder of this run.
            flags: Of `main.py`.
            python: Flags of the interpreter.
        """
        common = ("--dataset", str(self._dataset), "--model", "openai/gpt-4o-mini")
        quiet = ("--exaid", "off", "--display", "none", "--json")
        command = [sys.executable, *python, str(_MAIN), *common, *quiet, *flags]
        return Program(command, state, self.environment(provider, state))

    def run(self, provider: Provider, state: Path, *flags: str) -> Ended:
        """Run `main.py` to its end; see `start`.

        Raises:
            BenchmarkError: It failed.
        """
        return self.start(provider, state, *flags).finish()

    def keep_bodies(self, questions: int) -> Path:
        """Save the request bodies of a run of basic questions, one a line, for the bare client."""
        bodies = self.folder / "bodies.jsonl"
        kept = str(questions * CALLS_OF_BASIC)
        with Provider("--bodies", str(bodies), "--bodies-kept", kept) as provider:
            self.run(provider, self.new_state(), *BASIC, "--num-samples", str(questions))
        return bodies

    def start_bare(
        self, provider: Provider, bodies: Path, *, calls: int, in_flight: int, way: str
    ) -> Program:
        """Start the bare client; see `benchmarks.bare_client`."""
        command = [sys.executable, "-m", "benchmarks.bare_client", provider.base_url, str(bodies)]
        sizes = ["--calls", str(calls), "--in-flight", str(in_flight), "--way", way]
        state = self.new_state()
        environment = {**self.environment(provider, state), "PYTHONPATH": str(REPOSITORY)}
        return Program([*command, *sizes], state, environment)

    @staticmethod
    def environment(provider: Provider, state: Path) -> dict[str, str]:
        """Return the variables of a measured program, without the user's settings or caches."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "LANG": "C.UTF-8",
            "HOME": str(state),
            "MDAGENTS_EXAID": "off",  # `benchmarks.exaid` has it on
            "MDAGENTS_CACHE_DIR": str(state / "cache"),
            "OPENAI_API_KEY": "benchmark",
            "OPENAI_BASE_URL": provider.base_url,
        }


@contextmanager
def workspace(questions: int, source: Path | None = None) -> Iterator[Workspace]:
    """Make a `Workspace` that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="mdagents-benchmark-") as folder:
        yield Workspace(Path(folder), questions, source)


def write_questions(path: Path, count: int, first: int = 0) -> None:
    """Write `count` questions of MedQA's length, each with an id and a text of its own.

    They are those of the shipped sample, again and again, so that letters and lengths are real.

    Args:
        path: The file.
        count: Of the questions.
        first: Number of the first.
    """
    sample = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    with path.open("w", encoding="utf-8") as file:
        for number in range(first, first + count):
            record = dict(sample[number % len(sample)])
            record["realidx"] = f"bench-{number:05d}"
            record["question"] = f"(Chart {number:05d}) {record['question']}"
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


# -- what a run has written -----------------------------------------------------------------------


def run_folder(state: Path) -> Path | None:
    """Return the folder of the run in `state`; None before the run has made it.

    Earlier runs that were kept under a dated name are skipped.
    """
    found = [path.parent for path in state.glob("output/*/run.json")]
    return min(found, key=lambda folder: len(folder.name), default=None)


def records(state: Path) -> list[dict[str, Any]]:
    """Return the records of the finished run in `state`.

    Raises:
        BenchmarkError: The folder has no run.
    """
    folder = run_folder(state)
    if folder is None:
        raise BenchmarkError(f"main.py has left no run in {state}")
    array = folder.with_name(f"{folder.name}.json").read_text(encoding="utf-8")
    loaded: list[dict[str, Any]] = json.loads(array)
    return loaded


def ledger(state: Path) -> list[CallRow]:
    """Return the rows of the ledger of the finished run in `state`."""
    folder = run_folder(state)
    return [] if folder is None else [row for _, row in read_calls(folder / "calls.jsonl")]


def lines_of(state: Path, name: str) -> int:
    """Count the whole lines of a file of the run in `state`; 0 when it is not there."""
    folder = run_folder(state)
    if folder is None or not (folder / name).is_file():
        return 0
    return (folder / name).read_bytes().count(b"\n")
