"""Shared parts of the benchmarks: subprocesses of the fake provider and `main.py`, data, tables.

Linux only: memory and CPU time of a child process are read from `/proc` and `wait4`.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from prettytable import PrettyTable

from mdagents.records.calls import read_calls
from mdagents_llm.ledger import CallRow

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLE = REPOSITORY / "data" / "medqa" / "sample.jsonl"
SHARED = Path(os.environ.get("MDAGENTS_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
"""Folder of real data that is not part of the repository; it may be missing."""
MEDQA = SHARED / "medqa" / "test.jsonl"
"""The test set of MedQA; it may be missing."""
CALLS_OF_BASIC = 5
"""Calls per basic question: recruiter, three experts, arbitrator (docs/explanation/teams.md)."""
BASIC = ("--difficulty", "basic")

T = TypeVar("T")

_MAIN = REPOSITORY / "main.py"
_QUIET = 1.0  # load average above which other programs disturb the measurement
_POLL = 0.02  # seconds
_KIB = 1024


class BenchmarkError(Exception):
    """Raised when a measurement is impossible: a program failed or behaved unexpectedly."""


# -- command line and machine ---------------------------------------------------------------------


def make_parser(benchmark: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a benchmark's parser, described by the first line of its module docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{benchmark}", description=(doc or "").partition("\n")[0]
    )


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, quick: Mapping[str, object]
) -> argparse.Namespace:
    """Parse a benchmark's command line.

    Args:
        parser: Parser with the flags of the benchmark.
        argv: Arguments; None uses those of the process.
        quick: Defaults under `--quick`, just large enough to check that everything works.
    """
    parser.add_argument(
        "-q", "--quick", action="store_true", help="small sizes: shows that it works, not how fast"
    )
    if parser.parse_known_args(argv)[0].quick:
        parser.set_defaults(**quick)
    return parser.parse_args(argv)


def show_machine(benchmark: str) -> None:
    """Print the benchmark's machine and date, and warn if the machine is not idle."""
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


# -- rounds ---------------------------------------------------------------------------------------


def interleaved(
    measure: Callable[[str], T], names: Iterable[str], rounds: int
) -> dict[str, list[T]]:
    """Measure each of `names` once a round, so that a busy machine slows all of them.

    The order rotates from round to round.
    """
    order = list(names)
    seen: dict[str, list[T]] = {name: [] for name in order}
    for number in range(rounds):
        turn = number % len(order)
        for name in order[turn:] + order[:turn]:
            seen[name].append(measure(name))
    return seen


def median_ratio(runs: Iterable[T], base: Iterable[T], key: Callable[[T], float]) -> float:
    """Return the median over all rounds of the ratio of `key` of a run to that of its base."""
    return median(key(run) / key(of) for run, of in zip(runs, base, strict=True))


# -- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a result table."""

    what: str
    value: str
    aim: str = ""
    verdict: str = ""
    """Verdict, `met` or `MISSED`; empty without an aim."""


def judged(what: str, value: float, aim: float, unit: str = "", digits: int = 2) -> Result:
    """Return a result whose value should be at most `aim`."""
    verdict = "met" if round(value, digits) <= aim else "MISSED"
    return Result(what, f"{value:.{digits}f}{unit}", f"<= {aim:.{4}g}{unit}", verdict)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile of the values."""
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def show_table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows of cells by column; the first column is text, the others are numbers."""
    first, *others = rows[0]
    table = PrettyTable([first, *others])
    table.align = "r"
    table.align[first] = "l"
    table.add_rows([list(row.values()) for row in rows])
    print(f"\n{title}\n{table}", flush=True)


def show_results(title: str, results: Sequence[Result]) -> None:
    """Print a table of results and their aims."""
    rows = [{"measurement": r.what, "measured": r.value, "aim": r.aim, "": r.verdict}
            for r in results]  # fmt: skip
    show_table(title, rows)


# -- the fake provider ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderStats:
    """The fake provider's counts since it started or was reset."""

    arrivals: int
    """Number of requests for a reply."""
    prompts: int
    """Number of distinct prompts; 0 unless the provider counts prompts."""
    outcomes: Mapping[str, int]
    """Number of requests by outcome: `ok` or the name of a fault."""
    in_flight: int
    max_in_flight: int
    first_arrival: float
    """Monotonic seconds, on this process's clock; 0 before the first request."""
    last_arrival: float
    cpu_seconds: float
    """CPU seconds spent serving."""


class Provider:
    """A context manager that runs `benchmarks.provider` as a child process.

    Args:
        flags: Command-line flags of the provider.
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
        self._process.communicate()  # closes its standard input, which ends it

    @property
    def port(self) -> int:
        """Port on 127.0.0.1."""
        return urlsplit(self.base_url).port or 0

    def kill(self) -> None:
        """Send SIGKILL, which cuts all connections and refuses new ones."""
        self._process.kill()
        self._process.wait()

    def fail(self, fault: str) -> None:
        """Inject a fault into every request from now on; empty clears the fault."""
        self._ask("POST", f"/__fail__/{fault}")

    def stats(self) -> ProviderStats:
        """Return the counts since the provider started or was reset."""
        return ProviderStats(**self._ask("GET", "/__stats__"))

    def reset(self) -> None:
        """Reset all counts, so that faults hit the same arrival numbers again."""
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
    """The exit status and resource usage of a finished program."""

    status: int
    """Exit status; if negative, minus the number of the signal that killed the program."""
    wall_seconds: float
    cpu_seconds: float
    """User and system time in seconds, including child processes."""


class Program:
    """A child process whose time and memory are measured.

    Args:
        command: Command to run.
        folder: Working directory, which also gets a file with standard error.
        environment: Complete environment of the process.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._command = command
        self._errors = folder / "stderr.txt"
        with self._errors.open("wb") as errors:
            self.started = time.monotonic()
            """Start time in monotonic seconds."""
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
        """Return whether the program is still running."""
        return self._ended is None and not self._reap(os.WNOHANG)

    def wait(self) -> Ended:
        """Wait until the program ends."""
        while self._ended is None:
            self._reap(0)
        return self._ended

    def finish(self) -> Ended:
        """Wait until the program ends successfully.

        Raises:
            BenchmarkError: The program failed.
        """
        ended = self.wait()
        if ended.status != 0:
            raise BenchmarkError(
                f"{' '.join(self._command)} ended with {ended.status}: {self.errors()}"
            )
        return ended

    def kill(self) -> None:
        """Send SIGKILL and wait until the program ends."""
        if self.is_running():
            os.kill(self._process.pid, signal.SIGKILL)
        self.wait()

    def peak(self) -> float:
        """Wait until the program ends and return its peak resident memory in MiB.

        Raises:
            BenchmarkError: The program failed.
        """
        highest = 0.0
        while self.is_running():
            highest = max(highest, self.memory())
            time.sleep(_POLL)
        self.finish()
        return highest

    def memory(self) -> float:
        """Return the peak resident memory so far in MiB; 0 if the program has ended."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0.0
        peak = re.search(r"VmHWM:\s*(\d+)", status)
        return int(peak[1]) / _KIB if peak else 0.0  # absent while the process is exiting

    def errors(self) -> str:
        """Return the standard error output so far."""
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
        self._process.returncode = self._ended.status  # keeps Popen from waiting for it again
        return True


class Workspace:
    """A folder with a data set in which `main.py` is run.

    Args:
        folder: Existing folder.
        questions: Number of questions in the data set.
        source: File to take the first questions from; None derives them from the shipped sample.
    """

    def __init__(self, folder: Path, questions: int, source: Path | None = None) -> None:
        self.folder = folder
        self.dataset = folder / "questions.jsonl"
        self._states = 0
        if source is None:
            write_questions(self.dataset, questions)
        else:
            lines = source.read_bytes().split(b"\n")[:questions]
            self.dataset.write_bytes(b"".join(line + b"\n" for line in lines))

    def new_state(self) -> Path:
        """Create an empty folder for the output and caches of one run of `main.py`."""
        self._states += 1
        state = self.folder / f"state-{self._states}"
        state.mkdir()
        return state

    def copy_of(self, state: Path) -> Path:
        """Copy the state folder of a run, so that it can be resumed more than once."""
        copy = self.new_state()
        shutil.copytree(state, copy, dirs_exist_ok=True)
        return copy

    def start(
        self, provider: Provider, state: Path, *flags: str, python: Sequence[str] = ()
    ) -> Program:
        """Start `main.py` on the data set.

        Args:
            provider: Endpoint of the model.
            state: State folder of the run.
            flags: Flags of `main.py`.
            python: Flags of the interpreter.
        """
        common = ("--dataset", str(self.dataset), "--model", "openai/gpt-4o-mini")
        quiet = ("--exaid", "off", "--display", "none", "--json")
        command = [sys.executable, *python, str(_MAIN), *common, *quiet, *flags]
        return Program(command, state, self.environment(provider, state))

    def run(self, provider: Provider, state: Path, *flags: str) -> Ended:
        """Run `main.py` to its end, with the arguments of `start`.

        Raises:
            BenchmarkError: The run failed.
        """
        return self.start(provider, state, *flags).finish()

    def keep_bodies(self, questions: int) -> Path:
        """Save the request bodies of a basic run, one per line, for the bare client."""
        bodies = self.folder / "bodies.jsonl"
        kept = str(questions * CALLS_OF_BASIC)
        with Provider("--bodies", str(bodies), "--bodies-kept", kept) as provider:
            self.run(provider, self.new_state(), *BASIC, "--num-samples", str(questions))
        return bodies

    def start_bare(
        self, provider: Provider, bodies: Path, *, calls: int, in_flight: int, way: str
    ) -> Program:
        """Start the bare client, `benchmarks.bare_client`."""
        command = [sys.executable, "-m", "benchmarks.bare_client", provider.base_url, str(bodies)]
        sizes = ["--calls", str(calls), "--in-flight", str(in_flight), "--way", way]
        state = self.new_state()
        environment = {**self.environment(provider, state), "PYTHONPATH": str(REPOSITORY)}
        return Program([*command, *sizes], state, environment)

    @staticmethod
    def environment(provider: Provider, state: Path) -> dict[str, str]:
        """Return the environment of a measured program, without the user's settings or caches."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "LANG": "C.UTF-8",
            "HOME": str(state),
            "MDAGENTS_EXAID": "off",  # `benchmarks.exaid` turns it on
            "MDAGENTS_CACHE_DIR": str(state / "cache"),
            "OPENAI_API_KEY": "benchmark",
            "OPENAI_BASE_URL": provider.base_url,
        }


@contextmanager
def workspace(questions: int, source: Path | None = None) -> Iterator[Workspace]:
    """Create a `Workspace` in a temporary folder that is removed on exit."""
    with tempfile.TemporaryDirectory(prefix="mdagents-benchmark-") as folder:
        yield Workspace(Path(folder), questions, source)


def write_questions(path: Path, count: int, first: int = 0) -> None:
    """Write `count` questions of MedQA's length, each with a unique id and text.

    The questions repeat the shipped sample, so that letters and lengths are realistic.

    Args:
        path: File to write.
        count: Number of questions.
        first: Number of the first question.
    """
    sample = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    with path.open("w", encoding="utf-8") as file:
        for number in range(first, first + count):
            record = dict(sample[number % len(sample)])
            record["realidx"] = f"bench-{number:05d}"
            record["question"] = f"(Case {number:05d}) {record['question']}"
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


# -- output of a run ------------------------------------------------------------------------------


def run_folder(state: Path) -> Path | None:
    """Return the run folder in `state`; None if the run has not created it yet.

    Earlier runs kept under a dated name are skipped.
    """
    found = [path.parent for path in state.glob("output/*/run.json")]
    return min(found, key=lambda folder: len(folder.name), default=None)


def records(state: Path) -> list[dict[str, Any]]:
    """Return the records of the finished run in `state`.

    Raises:
        BenchmarkError: The folder contains no run.
    """
    folder = run_folder(state)
    if folder is None:
        raise BenchmarkError(f"main.py has left no run in {state}")
    array = folder.with_name(f"{folder.name}.json").read_text(encoding="utf-8")
    loaded: list[dict[str, Any]] = json.loads(array)
    return loaded


def result_of(record: Mapping[str, Any], *without: str) -> dict[str, Any]:
    """Return a record without the fields that differ where a run was killed and resumed.

    Args:
        record: The record of a question.
        without: Further fields to leave out.
    """
    left_out = {"wall_seconds", "restart", *without}
    return {name: value for name, value in record.items() if name not in left_out}


def ledger(state: Path) -> list[CallRow]:
    """Return the ledger rows of the finished run in `state`."""
    folder = run_folder(state)
    return [] if folder is None else [row for _, row in read_calls(folder / "calls.jsonl")]


def lines_of(state: Path, name: str) -> int:
    """Count the complete lines of a file of the run in `state`; 0 if it is missing."""
    folder = run_folder(state)
    if folder is None or not (folder / name).is_file():
        return 0
    return (folder / name).read_bytes().count(b"\n")
