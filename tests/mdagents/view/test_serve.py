"""`python view.py`: where it listens, whom it answers, and every way in which it is stopped."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mdagents.agents.case import make_case_id
from mdagents.agents.events import Started
from mdagents.datasets.questions import Question
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.pages.from_records import Recorded
from mdagents.view.app import make_app
from mdagents.view.results import read_recorded
from mdagents.view.serve import end_with_run, make_server
from mdagents_llm.errors import ConfigError
from mdagents_llm.web.address import PORT, has_screen, listen, note_of
from tests.fake_provider import FakeProvider
from tests.mdagents.view.served import (
    ITEM,
    VIEW,
    address_in,
    children,
    end,
    feed,
    start,
    streams,
    view,
    write_end,
)
from tests.support.browser import CHROMIUM, open_page
from tests.support.whole_runs import Run

SIGINT, SIGTERM = signal.SIGINT, signal.SIGTERM
QUESTION = Question("12", "Why?", {"A": "One", "B": "Two"}, "A", {"A": "A", "B": "B"})

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="signals")]


@pytest.fixture
def followed(provider: FakeProvider, run: Run) -> Iterator[Path]:
    """The folder of a run whose feed has a line."""
    assert run("--num-samples", "2", "--difficulty", "basic", "--token-limit", "1")[0] == 1
    (folder,) = (path for path in Path("output").iterdir() if (path / "run.json").is_file())
    with LiveFeed(folder / LIVE_FILE, lambda: 1_763_840_000_000, print) as feed:
        feed.happened(("12", 1), Started(QUESTION))
        feed.write()
        yield folder


@pytest.mark.parametrize(
    "numbers",
    [(SIGINT,), (SIGINT, SIGINT), (SIGINT,) * 9, (SIGTERM,)],
    ids=["Ctrl-C", "twice", "impatient", "SIGTERM"],
)
@pytest.mark.parametrize("readers", [0, 3])
def test_a_signal_ends_it_without_a_word(
    numbers: tuple[int, ...], readers: int, followed: Path
) -> None:
    with view() as (process, address):
        with streams(f"{address}/runs/{followed.name}/events", readers) as wait_for_end:
            assert end(process, *numbers) == (0, "", "")
            wait_for_end()
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{address}/api/runs")


def test_a_reader_of_its_output_that_goes_away_does_not_end_it(followed: Path) -> None:
    with view() as (process, address):
        assert process.stdout is not None
        process.stdout.close()
        assert httpx2.get(f"{address}/api/runs").status_code == 200
        process.send_signal(SIGINT)
        assert process.wait(30) == 0


def test_output_that_nobody_can_read_does_not_end_it(followed: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*VIEW, "--view-port", str(port)]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    with subprocess.Popen(shell, stderr=subprocess.PIPE, text=True) as process:
        transport = httpx2.HTTPTransport(retries=8)
        with httpx2.Client(transport=transport, timeout=30) as client:
            assert client.get(f"http://127.0.0.1:{port}/api/runs").status_code == 200
        process.send_signal(SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_streams_may_be_cut_at_any_moment_and_nothing_is_left(followed: Path) -> None:
    """Thirty servers in this process, each ended in the middle of something."""
    seeded = random.Random(17)

    async def read(client: httpx2.AsyncClient, url: str) -> None:
        try:
            async with client.stream("GET", url, timeout=30) as response:
                async for _ in response.aiter_lines():
                    pass
        except httpx2.HTTPError:
            pass  # cut

    async def once() -> None:
        place = listen(port=0)
        server = make_server(make_app(Path("output"), hosts=place.hosts, token=place.token))
        serving = asyncio.ensure_future(server.serve(sockets=[place.socket]))
        async with httpx2.AsyncClient() as client:
            url = place.url(f"/runs/{followed.name}/events")
            readers = [asyncio.ensure_future(read(client, url)) for _ in range(4)]
            await asyncio.sleep(seeded.random() / 5)
            for reader in seeded.sample(readers, 2):
                reader.cancel()
            server.should_exit = True
            await serving
            await asyncio.wait(readers, timeout=30)

    asyncio.run(once())  # what is made once is there now

    def held() -> tuple[int, int, list[int]]:
        gc.collect()  # runs in this process have made the collector rare
        files = len(list(Path("/proc/self/fd").iterdir()))
        return files, threading.active_count(), children(os.getpid())

    before = held()
    for _ in range(30):
        asyncio.run(once())
    assert held() == before


def test_the_end_of_a_run_waits_for_what_its_pages_show_at_last(
    unfinished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_slowly(*arguments: Any) -> Recorded | None:
        time.sleep(1.5)  # three looks of the streams at whether the server ends
        return read_recorded(*arguments)

    monkeypatch.setattr("mdagents.view.app.read_recorded", read_slowly)

    async def told() -> list[str]:
        place = listen(port=0)
        app = make_app(Path("output"), again="python view.py output")
        server = make_server(app)
        serving = asyncio.ensure_future(server.serve(sockets=[place.socket]))
        url = place.url(f"/runs/{unfinished.name}/events?case={make_case_id(*ITEM)}")
        lines: list[str] = []
        async with httpx2.AsyncClient() as client, client.stream("GET", url) as response:
            write_end(unfinished, "2026-01-01T00:00:00Z", finished=True)
            ending = asyncio.ensure_future(end_with_run(server, app.state.watches))
            lines += [line async for line in response.aiter_lines()]
        await asyncio.gather(ending, serving)
        return lines

    with feed(unfinished) as tell:
        tell(Started(QUESTION))
        lines = asyncio.run(told())
    assert "event: end" in lines
    assert "The run is finished; the view ends with the run" in lines[-2]


# -- where it listens -----------------------------------------------------------------------------


def test_a_port_that_is_taken_by_a_view_is_said_and_the_next_one_used(followed: Path) -> None:
    with view() as (_, first), socket.socket() as other:
        httpx2.get(f"{first}/api/runs", timeout=30)  # it prints its address before it can answer
        port = first.rpartition(":")[2]
        status, out, err = end(start("--view-port", port))
        assert (status, out) == (2, "")
        assert err == (
            f"error: port {port} is taken by another view, {first}; leave --view-port out\n"
        )
        other.bind(("127.0.0.1", 0))
        other.listen()
        status, _, err = end(start("--view-port", str(other.getsockname()[1])))
        assert status == 2
        assert " is taken by another program; " in err
        assert err.count("\n") == 1


def test_without_a_port_the_next_free_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("output").mkdir()
    with view() as (_, address):
        httpx2.get(f"{address}/api/runs", timeout=30)
        taken = int(address.rpartition(":")[2])
        monkeypatch.setattr("mdagents_llm.web.address.PORT", taken)
        place = listen()
        with place.socket:
            assert place.port > taken
            assert note_of(place, None) == f"NOTE: port {taken} is taken by another view, {address}"
            assert note_of(place, 1) == ""


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("", 65536, "--view-port is 65536 but must be from 0"),
        ("", -1, "--view-port is -1 but must be from 0"),
        ("no.such.host.invalid", 0, "cannot listen at no.such.host.invalid, port 0: "),
        ("192.0.2.1", 0, "cannot listen at 192.0.2.1, port 0: "),
        (".", 0, "cannot listen at ., port 0: "),
        ("x" * 300, 0, "cannot listen at "),
    ],
)
def test_where_it_cannot_listen_it_says_so(host: str, port: int, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}") as raised:
        listen(host, port)
    assert "\n" not in str(raised.value)


def test_an_address_that_browsers_do_not_open_is_refused() -> None:
    for host in ("fe80::1", "fe80::1%lo", "[fe80::1%lo]"):
        with pytest.raises(ConfigError, match=r"^cannot listen at fe80::1\S*: it is a link-local"):
            listen(host, 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6")
def test_all_addresses_of_ipv6_are_those_of_ipv4_as_well(followed: Path) -> None:
    with view("--view-host", "::") as (_, printed):
        query = printed.partition("?")[2]
        port = printed.partition("/?")[0].rpartition(":")[2]
        for host in ("127.0.0.1", "[::1]"):
            url = f"http://{host}:{port}/api/runs?{query}"
            assert httpx2.get(url).status_code == 200, host


def test_what_is_no_folder_of_runs(followed: Path) -> None:
    status, out, err = end(start("outptu"))
    assert (status, out) == (2, "")
    assert err == "error: there is no folder outptu; give a folder with runs or traces\n"
    Path("empty").mkdir()
    with view("empty") as (process, address):
        assert httpx2.get(f"{address}/api/runs").json()["runs"] == []
        shutil.copytree(followed, Path("empty") / followed.name)
        assert len(httpx2.get(f"{address}/api/runs").json()["runs"]) == 1
        _, _, err = end(process, SIGINT)
        assert err == "NOTE: there is no run in empty yet; it is shown as soon as there is\n"


def test_a_library_that_is_missing_is_one_line(tmp_path: Path) -> None:
    Path("output").mkdir()
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError(name='uvicorn')")
    status, out, err = end(start(PYTHONPATH=str(tmp_path)))
    assert (status, out) == (2, "")
    way_on = f"{sys.executable} -m pip install 'mdagents-bench[view]'"
    assert err == f"error: the live view needs uvicorn: {way_on}\n"


def test_a_run_that_is_named_is_the_page(followed: Path) -> None:
    with view(str(followed)) as (_, address):
        root, path = address.split("/runs/")
        assert path == followed.name
        assert httpx2.get(f"{root}/api/runs/{path}").status_code == 200
    odd = followed.rename(followed.with_name(os.fsdecode(b"caf\xe9")))
    with view(str(odd)) as (_, address):
        root, path = address.split("/runs/")
        assert path == "caf%E9"
        assert httpx2.get(f"{root}/api/runs/{path}").status_code == 200


@pytest.mark.parametrize(
    ("variables", "platform", "there_is"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "a 1 b 22"}, "linux", False),
        ({}, "darwin", True),
        ({"SSH_TTY": "/dev/ttys1"}, "darwin", False),
    ],
)
def test_a_browser_needs_a_screen(variables: dict[str, str], platform: str, there_is: bool) -> None:
    assert has_screen(variables, platform) is there_is


@pytest.mark.parametrize("flags", [(), ("--no-open",)], ids=" ".join)
def test_a_browser_is_opened_once_where_there_is_a_screen(
    flags: tuple[str, ...], followed: Path, tmp_path: Path
) -> None:
    browser = tmp_path / "firefox"
    browser.write_text('#!/bin/sh\necho "$@" >>opened\n')
    browser.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    with start("--view-port", "0", *flags, PATH=path, DISPLAY=":0", BROWSER="firefox") as process:
        assert process.stdout is not None
        address = address_in(process.stdout.readline())
        opened = Path("opened")
        httpx2.get(f"{address}/api/runs")
        while not flags and not opened.is_file():
            assert process.poll() is None
            select.select([], [], [], 0.02)
        end(process, SIGINT)
        if flags:
            assert not opened.is_file()
        else:
            assert opened.read_text().split()[-1:] == [address]


# -- who is answered ------------------------------------------------------------------------------


def test_another_host_needs_the_token_which_then_is_a_cookie(followed: Path) -> None:
    with view("--view-host", "0.0.0.0") as (process, printed):
        url, token = printed.split("?token=")
        assert len(token) > 40
        port = url.rstrip("/").rpartition(":")[2]
        local = f"http://127.0.0.1:{port}"
        as_page = {"accept": "text/html,*/*"}
        with httpx2.Client() as client:
            assert client.get(f"{local}/api/runs").status_code == 401
            assert client.get(f"{local}/api/runs?token=x{token}").status_code == 401
            assert client.get(f"{local}/api/runs?token={token}").json()["runs"]
            assert client.get(f"{local}/api/runs").status_code == 401, "only a page keeps it"
            given = client.get(f"{local}/runs/x%20y?a=1&token={token}", headers=as_page)
            assert given.headers["refresh"] == "0; url=/runs/x%20y?a=1", "a proxy has TLS"
            other = client.get(f"{local}//evil.example/?token={token}", headers=as_page)
            assert other.headers["refresh"] == "0; url=/evil.example/"
            flags = {part.strip() for part in given.headers["set-cookie"].lower().split(";")[1:]}
            assert {"httponly", "samesite=strict", "path=/"} <= flags
            assert given.headers["referrer-policy"] == "no-referrer"
            assert client.get(f"{local}/api/runs").status_code == 200
            host = {"host": f"{socket.gethostname()}:{port}"}
            evil = client.get(f"{local}/api/runs", headers={"host": f"evil.example:{port}"})
            assert evil.status_code == 400
            assert "start it with --view-host NAME" in evil.text
        named = httpx2.get(f"{local}/api/runs?token={token}", headers=host)
        assert named.status_code == 200
        assert end(process, SIGINT) == (0, "", ""), "no address is logged, and so no token"


def test_two_views_of_one_machine_keep_their_tokens_apart(followed: Path) -> None:
    client = httpx2.Client(headers={"accept": "text/html"})
    wide = ("--view-host", "0.0.0.0")
    with client, view(*wide) as (_, first), view(*wide) as (_, second):
        ports = []
        for printed in (first, second):
            url, token = printed.split("?token=")
            ports.append(url.rstrip("/").rpartition(":")[2])
            client.get(f"http://127.0.0.1:{ports[-1]}/?token={token}")
        answers = [client.get(f"http://127.0.0.1:{port}/api/runs") for port in ports]
    assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "[::1]"])
def test_this_machine_alone_needs_no_token(host: str, followed: Path) -> None:
    try:
        listen(host, 0).socket.close()
    except ConfigError:
        pytest.skip(f"{host} is not there")
    with view("--view-host", host) as (_, address):
        assert host.strip("[]") in address
        assert "token" not in address
        assert httpx2.get(f"{address}/api/runs").status_code == 200


@pytest.fixture
async def elsewhere() -> AsyncIterator[str]:
    """Another site, whose page has a link in it; `{}` in the path is where the link leads."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].partition(b"?")[2]
        page = b"<a href='" + target + b"'>the run</a>"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
        writer.write(page)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}"  # not the site 127.0.0.1


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
async def test_a_link_from_anywhere_opens_the_page_and_leaves_no_token_in_sight(
    followed: Path, elsewhere: str
) -> None:
    with view("--view-host", "0.0.0.0") as (_, printed):
        url, token = printed.split("?token=")
        local = f"http://127.0.0.1:{url.rstrip('/').rpartition(':')[2]}"
        async with open_page() as page:
            await page.goto(f"{elsewhere}/?{local}/api/runs?token={token}")
            await page.click("a")
            await page.wait_for_url(f"{local}/api/runs")
            assert followed.name in await page.content()
            answer = await page.reload()
            assert answer is not None
            assert answer.status == 200
            history = await page.evaluate("history.length")
            assert history <= 3, "the address with the token is not in the history"


def test_the_program_starts_at_the_port_of_the_documents() -> None:
    assert PORT == 7576
