"""Runs on Ray clusters of several machines, and clusters that cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mdagents.runs.engines import ray_workers
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider
from tests.mdagents.runs.engines.conftest import (
    Machine,
    ended,
    is_running,
    records,
    sent,
    spent,
    wait_until,
    with_kill,
)

pytest.importorskip("ray")

pytestmark = [
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found the Linux way"),
]


def test_a_node_is_lost_and_a_worker_killed(machine: Machine, provider: FakeProvider) -> None:
    address = machine.ray_head(cpus=1)
    before = set(machine.pids("raylet/raylet"))
    machine.ray("--num-cpus", "1", "--address", address)
    (second,) = {pid for pid in machine.pids("raylet/raylet") if is_raylet(pid)} - before
    machine.ray("--num-cpus", "1", "--address", address)
    provider.latency = 0.03
    flags = ("--exaid", "off", "--difficulty", "basic", "--max-connections", "9")
    process = machine.start(*flags, "--output-dir", "ray", "--ray-address", address)
    provider.wait_for_calls(300)
    with_kill(second)
    provider.wait_for_calls(500)
    with_kill(machine.workers()[0])
    status, out, err = ended(process)
    assert status == 0, err
    assert "answered 200" in out
    assert provider.max_in_flight <= 9
    assert spent("ray")["input_tokens"] == sum(row["input_tokens"] for row in sent("ray"))
    # Made twice: calls of the questions that the two had, whose replies had not come back.
    most = 2 * 6 * 5
    assert 1000 <= len(provider.calls) <= 1000 + most
    ended(machine.start(*flags, "--output-dir", "one"))
    assert [r["predicted"] for r in records("ray")] == [r["predicted"] for r in records("one")]


def is_raylet(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").resolve().name == "raylet"


def test_a_cluster_of_another_version(machine: Machine) -> None:
    address = machine.ray_head(cpus=1, version="2.1.0")
    status, out, err = ended(machine.start("--ray-address", address))
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
def test_a_wrong_address(address: str, said: str, machine: Machine) -> None:
    if address == "auto":  # finds a cluster of any program on this machine
        wait_until(lambda: not is_running("gcs_server"), seconds=600)
    status, out, err = ended(machine.start("--ray-address", address))
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
        ray_workers.load_ray()
