"""Runs with pictures that workers answer: pictures come with the lease, copies stay here."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider
from tests.mdagents.runs.engines.conftest import Machine, ended, records, with_kill
from tests.support.pictured import png, write_pictured

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found the Linux way"),
]
BASIC = ("--exaid", "off", "--difficulty", "basic")


@pytest.fixture
def pictured() -> list[str]:
    """Flags of 12 questions, each with a picture of its own."""
    contents = [png((20 * n, 255 - 20 * n, 40)) for n in range(12)]
    return write_pictured(contents, "ABCD" * 3)


def test_records_and_copies_are_those_of_one_process(
    transport: tuple[str, ...], machine: Machine, pictured: list[str], tmp_path: Path
) -> None:
    assert ended(machine.start(*pictured, *BASIC, "--output-dir", "one"))[0] == 0
    cold = ("--cache", "off", *transport)
    status, _, err = ended(machine.start(*pictured, *BASIC, "--output-dir", "several", *cold))
    assert status == 0, err
    assert records("several") == records("one")
    assert all(picture["sha256"] for record in records("one") for picture in record["pictures"])
    one, several = (
        {path.name: path.read_bytes() for path in Path(output).glob("*/pictures/*")}
        for output in ("one", "several")
    )
    assert len(one) == 12
    assert several == one


def test_a_picture_that_changed_costs_its_question_alone(
    transport: tuple[str, ...], machine: Machine, provider: FakeProvider, pictured: list[str]
) -> None:
    hold = provider.hold()
    flags = (*pictured, *BASIC, "--max-samples", "3", *transport)
    process = machine.start(*flags)
    hold.wait(1)
    Path("seen/picture-10.png").write_bytes(png((1, 2, 3)))
    hold.release()
    status, _, err = ended(process)
    assert status == 0, err
    by_status = {record["question_id"]: record["status"] for record in records("output")}
    assert by_status.pop("q-10") == "api_error"
    assert set(by_status.values()) == {"answered"}
    assert len(by_status) == 11


def test_workers_are_killed_and_so_is_the_driver(
    transport: tuple[str, ...], machine: Machine, provider: FakeProvider, pictured: list[str]
) -> None:
    provider.latency = 0.05
    flags = (*pictured, *BASIC, "--max-connections", "4")
    process = machine.start(*flags, *transport)
    provider.wait_for_calls(8)
    with_kill(machine.workers()[0])
    provider.wait_for_calls(25)
    process.send_signal(signal.SIGKILL)
    ended(process)
    status, _, err = ended(machine.start(*flags, *transport))
    assert status == 0, err
    assert [record["status"] for record in records("output")] == ["answered"] * 12
    assert len(list(Path("output").glob("*/pictures/*.png"))) == 12


def test_a_stopped_run_ends_while_pictures_are_prepared(
    machine: Machine, provider: FakeProvider, pictured: list[str]
) -> None:
    provider.latency = 0.05
    process = machine.start(*pictured, *BASIC, "--max-samples", "2", "--processes", "2")
    provider.wait_for_calls(5)
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130, err
    assert ended(machine.start(*pictured, *BASIC))[0] == 0
    assert len(records("output")) == 12
