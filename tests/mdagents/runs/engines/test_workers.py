"""Runs that workers answer, over real processes and the fake provider: on this machine, on Ray."""

from __future__ import annotations

import json
import random
import signal
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.mdagents.runs.engines.conftest import (
    KEY,
    Machine,
    ended,
    records,
    sent,
    spent,
    wait_until,
    with_kill,
)

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found the Linux way"),
]
BASIC = ("--exaid", "off", "--difficulty", "basic")


def test_records_are_those_of_one_process(
    transport: tuple[str, ...], machine: Machine, provider: FakeProvider
) -> None:
    flags = ("--num-samples", "24", "--exaid", "turn_end", "--max-connections", "5")
    assert ended(machine.start(*flags, "--output-dir", "one"))[0] == 0
    provider.reset()
    provider.latency = 0.02
    status, out, err = ended(
        machine.start(*flags, "--output-dir", "several", "--cache", "off", *transport)
    )
    assert status == 0, err
    assert "24 of 24 questions summarized" in out
    assert records("several") == records("one")
    assert 1 < provider.max_in_flight <= 5
    billed = sent("several")
    assert sum(row["input_tokens"] for row in billed) == provider.totals.input
    folder = Path("several")
    assert len(list(folder.glob("*/traces/*"))) == len(list(folder.glob("*/exaid/*"))) == 24
    written = (path for path in machine.folder.rglob("*") if path.is_file())
    assert KEY.encode() not in b"".join(path.read_bytes() for path in written)


def test_a_study(transport: tuple[str, ...], machine: Machine, provider: FakeProvider) -> None:
    pairs = zip(transport[::2], transport[1::2], strict=True)
    study = {
        "datasets": ["questions.jsonl"], "models": ["gpt-4o-mini"],
        "methods": ["basic", "majority_vote"], "num-samples": 12, "max-connections": 4,
        **{flag.removeprefix("--"): value for flag, value in pairs},
    }  # fmt: skip
    Path("study.yaml").write_text(json.dumps(study))
    provider.latency = 0.02
    command = [sys.executable, str(REPOSITORY / "study.py"), "study.yaml", "--display", "none"]
    status, _, err = ended(machine.program(command, OPENAI_API_KEY=KEY, MDAGENTS_EXAID="off"))
    assert status == 0, err
    assert provider.max_in_flight <= 4
    # The recruiter and the experts of a vote are those of the team: they are asked once.
    assert len(provider.calls) == 12 * 5
    assert len(Path("evaluation/study.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize("seed", [1, 2])
def test_workers_are_killed_at_random_moments(
    seed: int, transport: tuple[str, ...], machine: Machine, provider: FakeProvider
) -> None:
    provider.latency = 0.05
    rng, kills = random.Random(seed), 4
    flags = (*BASIC, "--num-samples", "120", "--max-connections", "9")
    process = machine.start(*flags, "--output-dir", "killed", *transport)
    for _ in range(kills):
        provider.wait_for_calls(len(provider.calls) + rng.randrange(20, 50))
        with_kill(rng.choice(machine.workers()))  # also one that starts
    status, out, err = ended(process)
    assert status == 0, err
    # A question that was there at three deaths is given up: at the third and the fourth, one.
    given_up = [record["error"] for record in records("killed") if record["status"] != "answered"]
    assert len(given_up) <= kills - 2, out
    assert set(given_up) <= {"3 workers died while they answered this question"}
    status, out, err = ended(machine.start(*flags, "--output-dir", "killed", "--retry-errors"))
    assert status == 0, err
    assert "answered 120" in out
    assert provider.max_in_flight <= 9
    # Calls whose replies had not come back, or had not been reported, are made again.
    assert 600 <= len(provider.calls) <= 600 + kills * 30
    booked = sum(row["input_tokens"] for row in sent("killed"))
    assert spent("killed")["input_tokens"] == booked
    again = provider.totals.input - booked
    assert 0 <= again <= kills * 30 * max(row["input_tokens"] for row in sent("killed"))
    ended(machine.start(*flags, "--output-dir", "one"))
    assert records("killed") == records("one")


def test_a_driver_that_is_killed_goes_on_and_so_does_one_process(
    transport: tuple[str, ...], machine: Machine, provider: FakeProvider
) -> None:
    provider.latency = 0.05
    flags = (*BASIC, "--num-samples", "60", "--output-dir", "output")
    process = machine.start(*flags, *transport)
    provider.wait_for_calls(80)
    process.kill()
    ended(process)
    wait_until(lambda: not machine.workers())
    process = machine.start(*flags, *transport)
    provider.wait_for_calls(len(provider.calls) + 40)
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130, err
    assert "to resume" in err
    status, out, err = ended(machine.start(*flags))
    assert status == 0, err
    assert "answered 60" in out
    assert len({record["question_id"] for record in records("output")}) == 60
    wait_until(lambda: not machine.workers())
