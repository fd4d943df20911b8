"""`python -m demos.medagen.server`: where it listens, and every way in which it is stopped."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.conftest import REPOSITORY
from tests.support.environment import bare_environment

PROGRAM = """
import asyncio, sys
from contextlib import asynccontextmanager
from demos.medagen.server import main
from tests.demos.medagen.scripted import open_scripted

@asynccontextmanager
async def open_slowly(variables):
    kind = variables.get("KIND")
    if kind == "never opens":
        print("opening", flush=True)
        await asyncio.Event().wait()
    async with open_scripted(variables) as assistant:
        yield assistant
    if kind == "never closes":
        print("closing", flush=True)
        await asyncio.Event().wait()

sys.exit(main(sys.argv[1:], open_assistant=open_slowly))
"""
SIGINT, SIGTERM = signal.SIGINT, signal.SIGTERM

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="signals")]


@contextmanager
def program(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        env=bare_environment(PYTHONPATH=str(REPOSITORY), LANG="C.UTF-8", **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def address_of(process: subprocess.Popen[str]) -> str:
    found = re.search(r"http://\S+", line_of(process))
    assert found
    return found[0]


def end(process: subprocess.Popen[str], *numbers: int) -> tuple[int, str, str]:
    for number in numbers:
        process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def chat(address: str) -> ClientConnection:
    """A chat whose turn is under way."""
    socket = connect(f"ws{address.removeprefix('http')}ws/chat", proxy=None)
    socket.send(json.dumps({"text": "WAIT", "user_id": "ann"}))
    assert json.loads(socket.recv())["type"] == "action_start"
    return socket


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_signal_ends_it_without_a_word_also_in_a_turn(number: int) -> None:
    with program("--view-port", "0") as process:
        address = address_of(process)
        assert httpx2.get(f"{address}healthz").status_code == 200
        with chat(address) as socket:
            assert end(process, number) == (0, "", "")
            assert json.loads(socket.recv())["type"] == "observation"
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=30)


def test_while_it_opens_it_can_be_ended_too() -> None:
    with program("--view-port", "0", KIND="never opens") as process:
        assert line_of(process) == "opening\n"
        assert end(process, SIGINT) == (0, "", "")


def test_the_second_signal_ends_it_at_once() -> None:
    with program("--view-port", "0", KIND="never closes") as process:
        address_of(process)
        process.send_signal(SIGINT)
        assert line_of(process) == "closing\n"
        assert end(process, SIGINT) == (130, "", "")


def test_what_went_wrong_is_logged_without_what_a_patient_wrote() -> None:
    with program("--view-port", "0") as process:
        address = address_of(process)
        body = {"text": "BUG my name is Ann", "user_id": "a"}
        assert httpx2.post(f"{address}api/health-check", json=body).status_code == 500
        with connect(f"ws{address.removeprefix('http')}ws/chat", proxy=None) as socket:
            socket.send(json.dumps(body))
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=30)
        status, _, err = end(process, SIGINT)
    assert status == 0
    assert err.count("ZeroDivisionError\n") >= 2
    assert "scripted.py" in err
    assert "Ann" not in err


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        with program("--view-port", port) as process:
            status, out, err = end(process)
    assert (status, out) == (2, "")
    assert err == f"error: port {port} is taken by another program; leave --view-port out\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rate", "0"), "--rate is 0 but must be at least 1"),
        (("--turns", "x"), "--turns is 'x' but must be a whole number"),
        (("--view-port", "70000"), "--view-port is 70000 but must be from 0"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    with program(*arguments) as process:
        status, out, err = end(process)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1


def test_beyond_this_machine_a_token_is_asked_for_also_of_sockets_and_never_logged() -> None:
    with program("--view-port", "0", "--view-host", "0.0.0.0") as process:
        printed = address_of(process)
        token = printed.partition("?token=")[2]
        assert len(token) > 40
        port = re.findall(r":(\d+)/", printed)[0]
        local = f"127.0.0.1:{port}/ws/chat"
        assert httpx2.get(f"http://127.0.0.1:{port}/").status_code == 401
        with pytest.raises(InvalidStatus):
            connect(f"ws://{local}", proxy=None)
        with connect(f"ws://{local}?token={token}", proxy=None) as socket:
            socket.send(json.dumps({"text": "a cold", "user_id": "ann"}))
            assert json.loads(socket.recv())["type"] == "action_start"
        cookie = {"Cookie": f"token-{port}={token}"}
        with connect(f"ws://{local}", proxy=None, additional_headers=cookie):
            pass
        assert end(process, SIGINT) == (0, "", "")
