"""Runs on real Ray clusters, over real processes and the fake provider."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import write_questions
from mdagents.runs.engines import ray_workers
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

pytest.importorskip("ray")

pytestmark = [
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found the Linux way"),
]
NOT_COMPARED = ("exaid", "watched", "wall_seconds", "restart")


class Ray:
    """Clusters of this machine, with all that Ray keeps in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = {
            "HOME": str(folder),  # for the token
            "RAY_TMPDIR": str(folder),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def start(self, *flags: str, version: str = "") -> str:
        """Start a node; return the address of its cluster."""
        patched = f"import ray; ray.__version__ = {version!r}\n" if version else ""
        code = f"{patched}from ray.scripts.scripts import main; main()"
        common = ["--num-cpus", "1", "--disable-usage-stats"]
        done = subprocess.run(
            [sys.executable, "-c", code, "start", *common, *flags],
            env=bare_environment(**self.settings, PYTHONPATH=str(REPOSITORY)),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return (self.folder / "ray" / "ray_current_cluster").read_text()

    def head(self, version: str = "") -> str:
        """Start a cluster of one node; return its address."""
        return self.start("--head", "--port", "0", "--include-dashboard", "false", version=version)


@pytest.fixture
def ray() -> Iterator[Ray]:
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # short: sockets are in it
    yield Ray(folder)
    for pid in pids(str(folder)):
        with_kill(pid)
    shutil.rmtree(folder, ignore_errors=True)


Program = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def program(provider: FakeProvider, ray: Ray, tmp_path: Path) -> Program:
    """Starts `main.py --engine ray` on questions, in a process of its own."""
    write_questions(tmp_path / "questions.jsonl", 200)

    def start(*flags: str, engine: str = "ray") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable, str(REPOSITORY / "main.py"), "--dataset", "questions.jsonl",
                "--model", "gpt-4o-mini", "--display", "none", "--engine", engine, *flags,
            ],
            env=bare_environment(
                **ray.settings,
                OPENAI_API_KEY="sk-a-key-of-this-test",
                OPENAI_BASE_URL=provider.openai_base_url,
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    return start


def pids(*parts: str) -> list[int]:
    """The processes whose command line or environment holds one of some texts."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            said = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if any(part.encode() in said for part in parts) and int(path.name) != os.getpid():
            found.append(int(path.name))
    return found


def workers(ray: Ray) -> list[int]:
    """The processes of a cluster's workers."""
    said = [(pid, Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in pids(str(ray.folder))]
    return [pid for pid, line in said if line.startswith(b"ray::Worker")]


def with_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def records(output: str) -> list[dict[str, Any]]:
    (array,) = Path(output).glob("*.json")
    return [
        {name: value for name, value in record.items() if name not in NOT_COMPARED}
        for record in json.loads(array.read_text())
    ]


def rows(output: str) -> list[dict[str, Any]]:
    (path,) = Path(output).glob("*/calls.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def spent(output: str) -> dict[str, int]:
    (path,) = Path(output).glob("*/run.json")
    of_run: dict[str, int] = json.loads(path.read_text())["spent"]
    return of_run


@pytest.mark.parametrize("count", [2, 4])
def test_records_are_those_of_one_process(
    count: int, program: Program, provider: FakeProvider, ray: Ray
) -> None:
    flags = ("--num-samples", "24", "--exaid", "turn_end", "--max-connections", "5")
    assert ended(program(*flags, "--output-dir", "local", engine="local"))[0] == 0
    provider.reset()
    provider.latency = 0.02
    status, out, err = ended(
        program(*flags, "--output-dir", "ray", "--cache", "off", "--ray-workers", str(count))
    )
    assert status == 0, err
    assert "24 of 24 questions summarised" in out
    assert records("ray") == records("local")
    assert 1 < provider.max_in_flight <= 5
    billed = [row for row in rows("ray") if not row["cached"]]
    assert sum(row["input_tokens"] for row in billed) == provider.totals.input
    assert len(list(Path("ray").glob("*/traces/*"))) == len(list(Path("ray").glob("*/exaid/*")))
    assert b"sk-a-key" not in b"".join(
        path.read_bytes() for path in ray.folder.rglob("*") if path.is_file()
    )


def test_a_study_on_a_cluster(provider: FakeProvider, ray: Ray, program: Program) -> None:
    study = {
        "datasets": ["questions.jsonl"], "models": ["gpt-4o-mini"],
        "methods": ["basic", "majority_vote"], "num-samples": 12, "engine": "ray",
        "ray-workers": 2, "max-connections": 4,
    }  # fmt: skip
    Path("study.yaml").write_text(json.dumps(study))
    provider.latency = 0.02
    process = subprocess.run(
        [sys.executable, str(REPOSITORY / "study.py"), "study.yaml", "--display", "none"],
        env=bare_environment(
            **ray.settings,
            MDAGENTS_EXAID="off",
            OPENAI_API_KEY="test-key",
            OPENAI_BASE_URL=provider.openai_base_url,
        ),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert process.returncode == 0, process.stderr
    assert provider.max_in_flight <= 4
    # The recruiter and the experts of a vote are those of the team: they are asked once.
    assert len(provider.calls) == 12 * 5
    rows = Path("evaluation/study.csv").read_text().splitlines()
    assert len(rows) == 3


def test_a_node_is_lost_and_a_worker_killed(
    program: Program, provider: FakeProvider, ray: Ray
) -> None:
    address = ray.head()
    before = set(pids("raylet/raylet"))
    ray.start("--address", address)
    (second,) = {pid for pid in pids("raylet/raylet") if is_raylet(pid)} - before
    ray.start("--address", address)
    provider.latency = 0.03
    flags = ("--exaid", "off", "--difficulty", "basic", "--max-connections", "9")
    process = program(*flags, "--output-dir", "ray", "--ray-address", address)
    provider.wait_for_calls(300)
    with_kill(second)
    provider.wait_for_calls(500)
    with_kill(workers(ray)[0])
    status, out, err = ended(process)
    assert status == 0, err
    assert "answered 200" in out
    assert provider.max_in_flight <= 9
    booked = [row for row in rows("ray") if not row["cached"]]
    assert spent("ray")["input_tokens"] == sum(row["input_tokens"] for row in booked)
    # Made twice: calls of the questions that the two had, whose replies had not come back.
    most = 2 * 6 * 5
    assert 1000 <= len(provider.calls) <= 1000 + most
    ended(program(*flags, "--output-dir", "local", engine="local"))
    assert [r["predicted"] for r in records("ray")] == [r["predicted"] for r in records("local")]


def is_raylet(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").resolve().name == "raylet"


def test_a_driver_that_is_killed_goes_on_and_so_does_one_process(
    program: Program, provider: FakeProvider, ray: Ray
) -> None:
    provider.latency = 0.05
    flags = (
        "--num-samples", "60", "--exaid", "off", "--difficulty", "basic", "--output-dir", "ray",
    )  # fmt: skip
    process = program(*flags)
    provider.wait_for_calls(80)
    process.kill()
    ended(process)
    process = program(*flags)
    provider.wait_for_calls(len(provider.calls) + 40)
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130, err
    assert "to resume" in err
    status, out, err = ended(program(*flags, engine="local"))
    assert status == 0, err
    assert "answered 60" in out
    assert len({record["question_id"] for record in records("ray")}) == 60
    deadline = time.monotonic() + 60
    while pids(str(ray.folder)) and time.monotonic() < deadline:
        time.sleep(0.5)  # Ray's own processes notice that their driver is gone
    assert workers(ray) == []


def test_a_cluster_of_another_version(program: Program, ray: Ray) -> None:
    address = ray.head(version="2.1.0")
    status, out, err = ended(program("--ray-address", address))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "the cluster has Ray 2.1.0" in err


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:9", "nothing answers there"),
        ("auto", "part of no Ray cluster"),
        ("head", "write HOST:PORT"),
        ("ray://127.0.0.1:10001", "write HOST:PORT"),
    ],
)
def test_a_wrong_address(address: str, said: str, program: Program) -> None:
    status, out, err = ended(program("--ray-address", address))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "The actor died because of an error raised in its creation task\n"
            "ModuleNotFoundError: No module named 'mdagents'\n",
            "a machine of the cluster has no mdagents: install this program there",
        ),
        (
            "The actor died because of an error raised in its creation task\nOSError: no file\n",
            "a worker cannot be started: OSError: no file",
        ),
    ],
)
def test_a_worker_that_cannot_be_started(text: str, said: str) -> None:
    assert str(ray_workers.as_lost(RuntimeError(text))).startswith(said)


def test_without_ray_a_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"needs ray: .* pip install 'mdagents-bench\[ray\]'"):
        ray_workers.load_ray("")
