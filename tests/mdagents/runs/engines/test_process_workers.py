"""Workers that are processes of this machine: how they start, end and are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import stops
from benchmarks.stops import STOPS, Needs, try_stop, undisturbed
from mdagents.runs.config import RunConfig
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.mdagents.runs.engines.conftest import KEY, Machine, ended, records, wait_until
from tests.support.otlp import Collector
from tests.support.whole_runs import Run

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are found the Linux way")
FLAGS = ("--exaid", "off", "--difficulty", "basic", "--num-samples", "12", "--processes", "2")
_IN_WORKERS = "import os, sys\nif any('import serve' in word for word in sys.orig_argv):\n    "


def test_it_is_a_number_or_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdagents.runs.flags.output_flags.cores", lambda: 6)
    given: list[Any] = [None, 1, "4", "auto"]
    assert [RunConfig(processes=each).local_processes for each in given] == [1, 1, 4, 6]
    assert [RunConfig(processes=each).is_distributed for each in given] == [
        False,
        False,
        True,
        True,
    ]
    for wrong in (0, -1, "0", "many", 1.5, True):
        with pytest.raises(
            ConfigError, match=r"\A--processes is .* but must be at least 1, or auto"
        ):
            RunConfig(processes=wrong)


def test_a_machine_is_not_filled_with_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdagents.runs.config.cores", lambda: 6)
    assert RunConfig(processes=24).local_processes == 24
    assert RunConfig(processes=9_000, ray_address="head:6379").processes == 9_000
    with pytest.raises(ConfigError, match="9,000, but this machine has 6 cores; give it 24 at"):
        RunConfig(processes=9_000)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--batch", "--method", "cot"), "--batch runs in one process; leave --processes out"),
        (("--cache", "only"), "needs no workers; leave --processes out"),
        (("--method", "medprompt"), "answers in one process; leave --processes out"),
        (("--model", "local"), "uses all cores of this machine from one process; leave"),
    ],
)
def test_what_it_is_not_for_is_refused_in_one_line(
    flags: tuple[str, ...], problem: str, run: Run
) -> None:
    status, _, err = run("--processes", "2", *flags)
    assert (status, err.count("\n")) == (2, 1)
    assert problem in err


@ON_LINUX
@pytest.mark.process
def test_a_key_is_in_no_command_line_no_environment_and_no_file(
    machine: Machine, provider: FakeProvider
) -> None:
    Path(".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    provider.latency = 0.3
    process = machine.program(
        [sys.executable, str(REPOSITORY / "main.py"), "--dataset", "questions.jsonl", *FLAGS]
    )
    provider.wait_for_calls(4)
    workers = machine.workers()
    assert len(workers) == 2
    for pid in workers:
        for name in ("cmdline", "environ"):
            assert KEY.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert ended(process)[0] == 0
    written = [path for path in Path().rglob("*") if path.is_file() and path.name != ".env"]
    assert KEY.encode() not in b"".join(path.read_bytes() for path in written)
    assert machine.workers() == []


@ON_LINUX
@pytest.mark.process
def test_a_stopped_worker_delays_no_end(machine: Machine, provider: FakeProvider) -> None:
    provider.latency = 0.2
    process = machine.start(*FLAGS, "--num-samples", "200")
    provider.wait_for_calls(10)
    subprocess.run(["kill", "-STOP", str(machine.workers()[0])], check=True)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    assert ended(process)[0] == 143
    assert time.monotonic() - started < 15
    assert machine.workers() == []


@ON_LINUX
@pytest.mark.process
def test_spans_of_a_run_whose_worker_was_killed(machine: Machine, provider: FakeProvider) -> None:
    provider.latency = 0.2
    with Collector() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        process = machine.start(*FLAGS, "--otel", **variables)
        provider.wait_for_calls(20)
        os.kill(machine.workers()[0], signal.SIGKILL)
        assert ended(process)[0] == 0
    (path,) = Path("output").glob("*/calls.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(collector.calls) == len(rows)
    tokens = sum(row["input_tokens"] for row in rows if not row["cached"])
    assert collector.sum("gen_ai.usage.input_tokens") == tokens
    ends = Counter(q.attributes.get("error.type", "decided") for q in collector.questions)
    assert ends["decided"] == 12
    assert set(ends) <= {"decided", "worker_lost"}  # the latter if the worker had reported them
    (root,) = collector.named("run ")
    assert {question.parent for question in collector.questions} == {root.id}


BUSY = """
async def solve(case, question, settings):
    while True:
        pass
"""


@ON_LINUX
@pytest.mark.process
def test_a_worker_whose_loop_hangs_ends_with_its_driver(machine: Machine) -> None:
    Path("busy.py").write_text(BUSY)
    process = machine.start("--method", "busy.py", "--processes", "2")
    wait_until(lambda: len(machine.workers()) == 2)
    time.sleep(3)
    process.kill()
    ended(process)
    wait_until(lambda: not machine.workers())


@ON_LINUX
@pytest.mark.process
@pytest.mark.parametrize(
    ("does", "said"),
    [
        (
            "os.kill(os.getpid(), 9)",
            "workers die as soon as they are started: a process ended with",
        ),
        ("sys.modules['mdagents'] = None", "a worker failed: ModuleNotFoundError: No module n"),
    ],
)
def test_a_worker_that_dies_at_its_start(does: str, said: str, machine: Machine) -> None:
    Path("sitecustomize.py").write_text(_IN_WORKERS + does)
    status, _, err = ended(machine.start(*FLAGS, PYTHONPATH=str(Path.cwd())))
    assert status == 1
    assert f"stopped: {said}" in err
    assert "Traceback" not in err
    assert machine.workers() == []


@ON_LINUX
@pytest.mark.process
def test_without_a_key_nothing_is_started(machine: Machine) -> None:
    status, out, err = ended(machine.start(*FLAGS, OPENAI_API_KEY="", OPENAI_BASE_URL=""))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "OPENAI_API_KEY" in err
    assert not Path("output").exists()


SCRIPT = """
import mdagents
config = mdagents.RunConfig(
    dataset="questions.jsonl", model="openai/gpt-4o-mini", method="own:solve", exaid="off",
    num_samples=8, processes=2,
)
print(mdagents.run(config).outcome)
"""
OWN = """
from mdagents import Decision, TeamRole
from mdagents.agents import replies

async def solve(case, question, settings):
    form = replies.opinion(question.letters, 50)
    physician = case.decider("one", "Physician", TeamRole.DECISION)
    opinion = await physician.ask("Choose.", form, phase="decide")
    print("printed by a method")
    try:
        input()
    except EOFError:
        return Decision(opinion.answer, opinion.reasoning)
"""


@ON_LINUX
@pytest.mark.process
@pytest.mark.parametrize("how", [["script.py"], ["-c", SCRIPT]], ids=["file", "text"])
def test_a_script_without_a_main_guard(how: list[str], machine: Machine) -> None:
    """Its own module is found where the script finds it, and may print and read."""
    Path("lab").mkdir()
    Path("lab/own.py").write_text(OWN)
    Path("script.py").write_text(SCRIPT)
    path = f"{REPOSITORY}:{Path.cwd() / 'lab'}"
    process = machine.program([sys.executable, *how], OPENAI_API_KEY=KEY, PYTHONPATH=path)
    status, out, err = ended(process)
    assert status == 0, err
    assert out == "finished\n"
    assert [record["status"] for record in records("output")] == ["answered"] * 8


@pytest.fixture(scope="module")
def whole() -> tuple[dict[str, Any], Needs]:
    return undisturbed(REPOSITORY / "main.py", 5)


@ON_LINUX
@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["Ctrl-C twice", "SIGHUP", "wrong key", "full disk", "down for 20 s"]
)
def test_a_run_is_stopped_and_goes_on(
    name: str, whole: tuple[dict[str, Any], Needs], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slow enough that the run is not over before its signal, however busy the machine.
    monkeypatch.setattr(stops, "LATENCY", ("--latency", "0.1", "--latency-spread", "0.1"))
    (stop,) = (stop for stop in STOPS if stop.name == name)
    if stop.needs_root and not stops.may_mount():
        pytest.skip("needs root")
    results, needs = whole
    outcome = try_stop(
        stop, 5, exaid=False, main=REPOSITORY / "main.py", whole=results, needs=needs, processes=2
    )
    assert outcome.faults == [], "\n".join(outcome.lines + outcome.lines_again)
