"""Stop real runs in every possible way; check how they end and that the same command resumes.

    python -m benchmarks.stops
    python -m benchmarks.stops --main ../earlier/main.py    # another revision
    python -m benchmarks.stops --processes 2                # questions answered by workers

Each cell runs `main.py --difficulty adaptive` on the fake provider with more calls than
connections, stops it while calls are queued, and runs the same command again. The first command
must end with the exit status of docs/reference/cli.md, one line on stderr and no traceback. The
second must exit with 0 and give the records of an undisturbed run, apart from times and the results
of EXAID.

A full disk, an unknown host and an output folder owned by another user need root; without root,
their cells are skipped and listed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    REPOSITORY,
    BenchmarkError,
    Provider,
    Result,
    judged,
    make_parser,
    parse,
    records,
    result_of,
    show_machine,
    show_results,
    show_table,
    write_questions,
)

CONNECTIONS: Mapping[int, int] = {5: 2, 200: 16}
"""`--max-connections` by number of questions, fewer than the run has calls to make."""
OUTAGE = 20.0
"""Seconds for which the endpoint is down mid-run."""
LATENCY = ("--latency", "0.03", "--latency-spread", "0.12")
"""Latency flags of the fake provider."""

_EXAIDS_OWN = ("exaid", "watched")
_AFTER = 0.25  # share of a run's calls after which it is stopped
_LONGEST = 180.0  # seconds after which a command counts as hanging
_SMALL_DISK = 700 * 1024  # bytes
_OTHER_USER = 65_533
_HOST = "model-server.test"
_WITH_ITS_SIGNALS = ("env", "--default-signal=HUP,INT,TERM")  # overrides inherited settings
_WITHOUT_RIGHTS_OF_ROOT = (
    "setpriv", "--inh-caps=-dac_override,-dac_read_search",
    "--bounding-set=-dac_override,-dac_read_search", "--",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Needs:
    """The number of calls and tokens of an undisturbed run without EXAID."""

    calls: int
    tokens: int


@dataclass(slots=True)
class Trial:
    """One cell in progress."""

    questions: int
    exaid: bool
    main: Path
    """Path of the `main.py` under test."""
    folder: Path
    """Working directory of the program, with the data set and its output."""
    provider: Provider
    needs: Needs
    host: str = "127.0.0.1"
    flags: tuple[str, ...] = ()
    """Flags of all commands."""
    wrapper: tuple[str, ...] = ()
    """Prefix of the command that starts the program."""
    process: subprocess.Popen[bytes] | None = None
    stdout: int = subprocess.DEVNULL
    opened: ExitStack = field(default_factory=ExitStack)
    """Exit stack that closes the providers that replaced the first one."""

    def start(self, *flags: str) -> None:
        """Start the program under test."""
        command = [
            *_WITH_ITS_SIGNALS, *self.wrapper, sys.executable, str(self.main),
            "--dataset", "questions.jsonl",
            "--model", "openai/gpt-4o-mini", "--difficulty", "adaptive",
            "--num-samples", str(self.questions), "--display", "none",
            "--max-connections", str(CONNECTIONS.get(self.questions, 16)),
            *([] if self.exaid else ["--exaid", "off"]), *self.flags, *flags,
        ]  # fmt: skip
        with (self.folder / "stderr.txt").open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={
                    "PATH": os.environ.get("PATH", ""),
                    "LANG": "C.UTF-8",
                    "HOME": str(self.folder),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "OPENAI_API_KEY": "benchmark",
                    "OPENAI_BASE_URL": f"http://{self.host}:{self.provider.port}/v1",
                },
                stdin=subprocess.DEVNULL,
                stdout=self.stdout,
                stderr=errors,
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program if it is running."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait_for_the_middle(self) -> None:
        """Wait until a share of the calls has arrived, or the program has ended."""
        assert self.process is not None
        while self.process.poll() is None:
            with suppress(OSError):
                if self.provider.stats().arrivals >= _AFTER * self.needs.calls:
                    return
            time.sleep(0.02)

    def wait(self) -> int | None:
        """Return the program's exit status as a shell reports it; None on timeout."""
        assert self.process is not None
        try:
            status = self.process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        return status if status >= 0 else 128 - status

    def errors(self) -> list[str]:
        """Return the lines the program printed on standard error."""
        return (self.folder / "stderr.txt").read_text(errors="replace").splitlines()

    def replace_provider(self) -> None:
        """Start a new provider at the address of the killed one."""
        replacement = Provider(*LATENCY, "--port", str(self.provider.port))
        self.provider = self.opened.enter_context(replacement)


Step = Callable[[Trial], None]


def nothing(trial: Trial) -> None:
    """Do nothing; the default step of a `Stop`."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A way to stop a run, and the expected outcome."""

    name: str
    statuses: frozenset[int]
    """Exit statuses allowed by docs/reference/cli.md."""
    before: Step = nothing
    """Step taken before the program starts."""
    during: Step = nothing
    """Step taken while calls are queued."""
    mend: Step = nothing
    """Step taken before the same command is run again."""
    flags: tuple[str, ...] = ()
    """Flags of the first command only; `{tokens}` is half of the tokens that the run needs."""
    lines: int = 1
    """Maximum number of lines on standard error."""
    needs_root: bool = False
    """Whether the stop needs root with permission to mount."""


def _signals(*numbers: signal.Signals) -> Step:
    def send(trial: Trial) -> None:
        for number in numbers:
            trial.signal(number)
            time.sleep(0.3)

    return send


def _fault(name: str) -> Step:
    return lambda trial: trial.provider.fail(name)


def _kill_provider(trial: Trial) -> None:
    trial.provider.kill()


def _outage(trial: Trial) -> None:
    trial.provider.kill()
    time.sleep(OUTAGE)
    trial.replace_provider()


def _in_namespace(trial: Trial, script: str) -> None:
    trial.wrapper = ("unshare", "--mount", "sh", "-c", f'{script}; exec "$@"', "-")


def _unknown_host(trial: Trial) -> None:
    trial.host = _HOST


def _name_the_host(trial: Trial) -> None:
    (trial.folder / "hosts").write_text(f"127.0.0.1 localhost {_HOST}\n", encoding="ascii")
    _in_namespace(trial, "mount --bind hosts /etc/hosts")


def may_mount() -> bool:
    """Return whether this process may mount a file system; containers often may not."""
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def _small_disk(trial: Trial) -> None:
    (trial.folder / "output").mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK}", "tmpfs", trial.folder / "output"],
        check=True,
    )


def _larger_disk(trial: Trial) -> None:
    output = trial.folder / "output"
    subprocess.run(["mount", "-o", "remount,size=1g", output], check=True)


def _of_another_user(trial: Trial) -> None:
    (trial.folder / "output").mkdir()
    os.chown(trial.folder / "output", _OTHER_USER, _OTHER_USER)
    trial.wrapper = _WITHOUT_RIGHTS_OF_ROOT


def _ours_again(trial: Trial) -> None:
    os.chown(trial.folder / "output", os.getuid(), os.getgid())


def _closed_stdout(trial: Trial) -> None:
    reading, trial.stdout = os.pipe()
    os.close(reading)


def _open_stdout(trial: Trial) -> None:
    os.close(trial.stdout)
    trial.stdout = subprocess.DEVNULL


STOPS = (
    Stop("Ctrl-C", frozenset({130}), during=_signals(signal.SIGINT)),
    Stop("Ctrl-C twice", frozenset({130}), during=_signals(signal.SIGINT, signal.SIGINT)),
    Stop("SIGTERM", frozenset({143}), during=_signals(signal.SIGTERM)),
    Stop("SIGHUP", frozenset({129}), during=_signals(signal.SIGHUP)),
    Stop("wrong key", frozenset({1}), before=_fault("401"), mend=_fault("")),
    Stop("unknown model", frozenset({1}), before=_fault("404_model"), mend=_fault("")),
    Stop("quota used up", frozenset({1}), during=_fault("quota"), mend=_fault("")),
    Stop("endpoint down", frozenset({1}), before=_kill_provider, mend=Trial.replace_provider),
    Stop("down for 20 s", frozenset({0}), during=_outage, lines=0),
    Stop("unknown host", frozenset({1}), before=_unknown_host, mend=_name_the_host,
         needs_root=True),
    Stop("time limit of a question", frozenset({0}), flags=("--sample-time-limit", "1.2"),
         lines=0),
    Stop("token limit", frozenset({1}), flags=("--token-limit", "{tokens}")),
    Stop("full disk", frozenset({1}), before=_small_disk, mend=_larger_disk, needs_root=True),
    Stop("output of another user", frozenset({2}), before=_of_another_user, mend=_ours_again,
         needs_root=True),
    Stop("closed stdout", frozenset({0}), before=_closed_stdout, mend=_open_stdout, lines=0),
)  # fmt: skip
"""All ways to stop a run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a cell."""

    stop: Stop
    questions: int
    exaid: bool
    status: int | None
    """Exit status of the first command; None if it timed out."""
    lines: tuple[str, ...]
    """Lines that the first command printed on standard error."""
    finished: int
    """Number of records on disk after the first command."""
    status_again: int | None
    lines_again: tuple[str, ...]
    differing: int
    """Number of questions whose final record differs from that of an undisturbed run."""

    @property
    def faults(self) -> list[str]:
        """Deviations from the expected outcome; empty if none."""
        found = []
        if self.status not in self.stop.statuses:
            found.append(f"exit {'never' if self.status is None else self.status}")
        if _has_traceback(self.lines):
            found.append("traceback")
        if len(self.lines) > self.stop.lines:
            found.append(f"{len(self.lines)} lines")
        elif self.stop.lines and not self.lines:
            found.append("no line")
        if self.status_again != 0:
            found.append(
                f"again: exit {'never' if self.status_again is None else self.status_again}"
            )
        if _has_traceback(self.lines_again):
            found.append("again: traceback")
        if self.differing:
            found.append(f"{self.differing} records differ")
        return found


def _has_traceback(lines: Sequence[str]) -> bool:
    return any("Traceback" in line for line in lines)


def undisturbed(main: Path, questions: int) -> tuple[dict[str, Any], Needs]:
    """Answer the questions once without EXAID.

    Returns:
        Records by question id, and the calls and tokens of the run.

    Raises:
        BenchmarkError: The run failed.
    """
    with tempfile.TemporaryDirectory() as name, Provider(*LATENCY) as provider:
        trial = Trial(questions, False, main, Path(name), provider, Needs(0, 0))
        write_questions(trial.folder / "questions.jsonl", questions)
        trial.start()
        if trial.wait() != 0:
            raise BenchmarkError("\n".join(trial.errors()))
        whole = _results(trial.folder)
        tokens = sum(record["token_usage"]["total_tokens"] for record in whole.values())
        return whole, Needs(provider.stats().arrivals, tokens)


def try_stop(
    stop: Stop,
    questions: int,
    *,
    exaid: bool,
    main: Path,
    whole: Mapping[str, Any],
    needs: Needs,
    processes: int = 1,
) -> Outcome:
    """Run one cell.

    Args:
        stop: Way to stop the run.
        questions: Number of questions.
        exaid: Whether EXAID is on.
        main: Path of the `main.py` under test.
        whole: Records of an undisturbed run, from `undisturbed`.
        needs: Calls and tokens of an undisturbed run, from `undisturbed`.
        processes: Number of processes that answer the questions.
    """
    with tempfile.TemporaryDirectory() as name, Provider(*LATENCY) as provider:
        trial = Trial(questions, exaid, main, Path(name), provider, needs)
        trial.flags = ("--processes", str(processes)) if processes > 1 else ()
        write_questions(trial.folder / "questions.jsonl", questions)
        try:
            stop.before(trial)
            trial.start(*(flag.format(tokens=needs.tokens // 2) for flag in stop.flags))
            trial.wait_for_the_middle()
            stop.during(trial)
            status, lines = trial.wait(), tuple(trial.errors())
            finished = sum(
                file.read_bytes().count(b"\n")
                for file in trial.folder.glob("output/*/samples.jsonl")
            )
            stop.mend(trial)
            trial.start()
            again, lines_again = trial.wait(), tuple(trial.errors())
            found = _results(trial.folder) if again == 0 else {}
            differing = sum(found.get(id_) != record for id_, record in whole.items())
        finally:
            trial.opened.close()
            subprocess.run(["umount", trial.folder / "output"], capture_output=True, check=False)
        return Outcome(
            stop, questions, exaid, status, lines, finished, again, lines_again, differing
        )


def _results(folder: Path) -> dict[str, Any]:
    return {record["question_id"]: result_of(record, *_EXAIDS_OWN) for record in records(folder)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("stops", __doc__)
    add = parser.add_argument
    add("--main", type=Path, default=REPOSITORY / "main.py", help="the program [this checkout's]")
    add("--questions", default="5,200", help="of the runs [%(default)s]")
    add("--exaid", default="on,off", help="[%(default)s]")
    add("--processes", type=int, default=1, help="of the stopped runs [%(default)s]")
    add("--stops", default="", metavar="NAME,…", help="only these [all]")
    add("--json", type=Path, metavar="FILE", help="keep all that was printed on stderr here")
    options = parse(parser, argv, {"questions": "5"})
    show_machine("stops")
    chosen = [stop for stop in STOPS if not options.stops or stop.name in options.stops.split(",")]
    left_out = [stop for stop in chosen if stop.needs_root and not may_mount()]
    done: list[Outcome] = []
    for questions in map(int, options.questions.split(",")):
        whole, needs = undisturbed(options.main.resolve(), questions)
        for stop in chosen:
            if stop in left_out:
                continue
            for exaid in options.exaid.split(","):
                done.append(
                    try_stop(
                        stop, questions, exaid=exaid == "on", main=options.main.resolve(),
                        whole=whole, needs=needs, processes=options.processes,
                    )
                )  # fmt: skip
                print(".", end="", flush=True)
    _show(done)
    for stop in left_out:
        print(f"left out, since it needs root: {stop.name}")
    if options.json:
        rows = [
            {"stop": o.stop.name, "questions": o.questions, "exaid": o.exaid, "status": o.status,
             "lines": o.lines[-40:], "again": o.status_again, "lines_again": o.lines_again[-40:]}
            for o in done
        ]  # fmt: skip
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


def _show(done: Sequence[Outcome]) -> None:
    rows = [
        {
            "stopped by": outcome.stop.name,
            "questions": outcome.questions,
            "EXAID": "on" if outcome.exaid else "off",
            "exit": "-" if outcome.status is None else outcome.status,
            "lines": len(outcome.lines),
            "records kept": outcome.finished,
            "again: exit": "-" if outcome.status_again is None else outcome.status_again,
            "records that differ": outcome.differing,
            "": "; ".join(outcome.faults) or "as it should",
        }
        for outcome in done
    ]
    if rows:
        show_table("Each cell: one run, stopped, and the same command again", rows)
    wrong = sum(bool(outcome.faults) for outcome in done)
    results = [
        judged("cells that are not as they should be", wrong, 0, digits=0),
        Result("cells", str(len(done))),
    ]
    show_results("All ways to stop", results)


if __name__ == "__main__":
    sys.exit(main())
