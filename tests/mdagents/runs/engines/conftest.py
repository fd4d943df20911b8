"""Runs whose questions are answered by workers: processes of this machine, or actors of Ray."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import write_questions
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

NOT_COMPARED = ("exaid", "watched", "wall_seconds", "restart")
KEY = "sk-a-key-of-this-test"


class Machine:
    """Starts programs whose processes are found by a folder in their environment.

    Args:
        folder: Their home folder, in which Ray also keeps all of its files.
        provider: Endpoint of all models.
    """

    def __init__(self, folder: Path, provider: FakeProvider) -> None:
        self.folder = folder
        self.settings = {
            "HOME": str(folder),  # for the token of Ray
            "RAY_TMPDIR": str(folder),
            "RAY_USAGE_STATS_ENABLED": "0",
            "OPENAI_BASE_URL": provider.openai_base_url,
        }

    def start(self, *flags: str, **variables: str) -> subprocess.Popen[str]:
        """Start `main.py` on 200 questions."""
        command = [
            sys.executable, str(REPOSITORY / "main.py"), "--dataset", "questions.jsonl",
            "--model", "gpt-4o-mini", "--display", "none", *flags,
        ]  # fmt: skip
        return self.program(command, **{"OPENAI_API_KEY": KEY, **variables})

    def program(self, command: list[str], **variables: str) -> subprocess.Popen[str]:
        """Start any program."""
        return subprocess.Popen(
            command,
            env=bare_environment(**{**self.settings, **variables}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pids(self, *parts: str) -> list[int]:
        """The processes of these programs whose command line holds one of some texts."""
        found, mark = [], f"HOME={self.folder}\0".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                line, environ = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
            except OSError:
                continue
            if mark in environ and (not parts or any(part.encode() in line for part in parts)):
                found.append(int(path.name))
        return found

    def workers(self) -> list[int]:
        """The processes that answer questions for another one."""
        return self.pids("import serve; serve()", "ray::Worker")

    def ray(self, *flags: str, version: str = "") -> str:
        """Start a node of a Ray cluster; return the address of the cluster."""
        patched = f"import ray; ray.__version__ = {version!r}\n" if version else ""
        code = f"{patched}from ray.scripts.scripts import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "start", "--disable-usage-stats", *flags],
            env=bare_environment(**self.settings, PYTHONPATH=str(REPOSITORY)),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return (self.folder / "ray" / "ray_current_cluster").read_text()

    def ray_head(self, cpus: int, version: str = "") -> str:
        """Start a Ray cluster of one node; return its address."""
        only_ray = ("--head", "--port", "0", "--include-dashboard", "false")
        return self.ray(*only_ray, "--num-cpus", str(cpus), version=version)


@pytest.fixture
def machine(provider: FakeProvider, tmp_path: Path) -> Iterator[Machine]:
    write_questions(tmp_path / "questions.jsonl", 200)
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # short: sockets of Ray are in it
    machine = Machine(folder, provider)
    yield machine
    for pid in machine.pids():
        with_kill(pid)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.long)])
def transport(request: pytest.FixtureRequest, machine: Machine) -> tuple[str, ...]:
    """Flags by which 3 workers answer the questions."""
    if request.param == "processes":
        return ("--processes", "3")
    pytest.importorskip("ray")
    return ("--processes", "3", "--ray-address", machine.ray_head(cpus=3))


def with_kill(pid: int) -> None:
    """Send SIGKILL to a process that may have ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a program; return its exit status, stdout and stderr."""
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def is_running(name: str) -> bool:
    """Return whether a program with this name is running on this machine."""
    found = False
    for file in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            found |= file.read_text(encoding="utf-8").strip() == name
    return found


def wait_until(is_true: Any, seconds: float = 180) -> None:
    """Wait for what other processes do.

    Raises:
        TimeoutError: It took longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def records(output: str) -> list[dict[str, Any]]:
    """The records of the run in a folder, without what differs between two runs."""
    (array,) = Path(output).glob("*.json")
    return [
        {name: value for name, value in record.items() if name not in NOT_COMPARED}
        for record in json.loads(array.read_text())
    ]


def sent(output: str) -> list[dict[str, Any]]:
    """The ledger rows of the calls that were sent."""
    (path,) = Path(output).glob("*/calls.jsonl")
    rows = map(json.loads, path.read_text().splitlines())
    return [row for row in rows if not row["cached"]]


def spent(output: str) -> dict[str, int]:
    """What the run in a folder has spent."""
    (path,) = Path(output).glob("*/run.json")
    of_run: dict[str, int] = json.loads(path.read_text())["spent"]
    return of_run
