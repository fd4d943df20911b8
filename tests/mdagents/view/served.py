"""Servers of a view, in processes of their own and in a thread, and feeds that tests write."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.records.manifest import read_manifest
from mdagents.view.app import make_app
from mdagents_llm.clock import epoch_ms
from tests.conftest import REPOSITORY
from tests.support.environment import bare_environment

VIEW = [sys.executable, str(REPOSITORY / "view.py")]
_ADDRESS = re.compile(r"http://\S+")


def address_in(line: str) -> str:
    found = _ADDRESS.search(line)
    assert found, line
    return found[0]


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """`python view.py`, its working directory that of the test."""
    return subprocess.Popen(
        [*VIEW, *arguments],
        env=bare_environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def view(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A view and the address that it prints; any free port unless told otherwise."""
    port = () if "--view-port" in arguments else ("--view-port", "0")
    with start(*arguments, *port) as process:
        try:
            assert process.stdout is not None
            yield process, address_in(process.stdout.readline())
        finally:
            process.kill()


def end(process: subprocess.Popen[str], *numbers: int) -> tuple[int, str, str]:
    """Send signals; return (exit status, what else stood on stdout, stderr)."""
    for number in numbers:
        process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@contextmanager
def streams(url: str, many: int) -> Iterator[Callable[[], None]]:
    """Readers of an event stream, each of which has got one; calling it waits for their end."""
    opened = threading.Semaphore(0)

    def read() -> None:
        try:
            with httpx2.stream("GET", url, timeout=60) as response:
                for line in response.iter_lines():
                    if line.startswith("data:"):
                        opened.release()
        except httpx2.HTTPError:
            pass  # the server is gone

    threads = [threading.Thread(target=read, daemon=True) for _ in range(many)]
    for thread in threads:
        thread.start()

    def wait() -> None:
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()

    for _ in range(many):
        assert opened.acquire(timeout=30)
    yield wait


def children(pid: int) -> list[int]:
    """The processes that a process has started, of any session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended
    return found


def view_of(run: int) -> int:
    """The process of a run's view, once it is there; the run may have others, such as Git."""
    for _ in range(3_000):
        for pid in children(run):
            if "mdagents.view.serve" in command_of(pid):
                return pid
        time.sleep(0.01)
    raise AssertionError(f"process {run} has no view")


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []  # it has ended


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


ITEM = ("12", 1)
"""The question that `feed` tells of."""


@contextmanager
def serving(output: Path = Path("output"), *, port: int = 0, **more: Any) -> Iterator[str]:
    """The address of a server of a folder; `port`: 0 for any free one."""
    config = uvicorn.Config(make_app(output, **more), port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def write_end(
    folder: Path, ended_at: str | None, *, finished: bool = False, reason: str = ""
) -> None:
    """What a run writes at its end, or has not written yet."""
    manifest = read_manifest(folder)
    assert manifest is not None
    manifest.invocations[-1].ended_at = ended_at
    manifest.invocations[-1].reason = reason
    manifest.finished = finished
    anew = folder / "run.json.new"
    anew.write_text(manifest.model_dump_json())
    anew.replace(folder / "run.json")


@contextmanager
def feed(folder: Path) -> Iterator[Callable[..., None]]:
    with LiveFeed(folder / LIVE_FILE, epoch_ms, print) as written:

        def tell(*events: Any) -> None:
            for event in events:
                written.happened(ITEM, event)
            written.write()

        yield tell
