"""`--view`: the process beside a run ends with it in every way, and its failures cost nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx2
import pytest
from playwright.async_api import expect

from scripts import first_run
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.mdagents.view.served import address_in, is_running, kill, start, view_of
from tests.support.browser import CHROMIUM, open_page, problems
from tests.support.environment import bare_environment
from tests.support.whole_runs import SAMPLE, Run, program, records

VIEWED = ("--view", "--view-port", "0", "--difficulty", "basic")
STREAM = re.compile("/events")  # a page that hears of nothing yet cannot be told of the end
AGAIN = "the view ends with the run; to see it again: python "
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


def address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("view  "):
            return address_in(line)
    raise AssertionError("the run ended without an address")


@contextmanager
def at_work(provider: FakeProvider, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run whose calls wait, and the address of its page; its view answers."""
    hold = provider.hold()
    with program(provider, "--num-samples", "2", *VIEWED, *arguments) as process:
        try:
            page = address(process)
            root, name = page.split("/runs/")
            assert httpx2.get(f"{root}/api/runs/{name}").json()["state"] == "running"
            yield process, page
        finally:
            hold.release()
            process.kill()


def ends(pid: int) -> bool:
    """Whether a process ends within a time that is long."""
    latest = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < latest:
        select.select([], [], [], 0.02)
    return not is_running(pid)


@pytest.mark.process
def test_the_view_shows_the_run_and_ends_with_it(provider: FakeProvider, run: Run) -> None:
    with program(provider, "--num-samples", "2", *VIEWED) as process:
        page = address(process)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/runs/[\w.-]+", page)
        child = view_of(process.pid)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert ends(child)
    assert page.endswith(records_name())
    assert err.splitlines()[-1].startswith(AGAIN)
    assert err.splitlines()[-1].endswith("view.py output")
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(page)
    assert run("--num-samples", "2", *VIEWED[3:])[0] == 0
    assert not [word for word in out.split() if "http" in word], "stdout is for results"


def records_name() -> str:
    (array,) = Path("output").glob("*.json")
    return array.stem


@pytest.mark.process
@pytest.mark.parametrize(
    ("numbers", "status"),
    [([signal.SIGINT] * 2, 130), ([signal.SIGTERM] * 2, 143), ([signal.SIGKILL], -signal.SIGKILL)],
    ids=["Ctrl-C twice", "SIGTERM twice", "kill -9"],
)
def test_it_ends_however_the_run_ends(
    numbers: list[int], status: int, provider: FakeProvider
) -> None:
    with at_work(provider) as (process, page):
        child = view_of(process.pid)
        with httpx2.stream("GET", f"{page}/events", timeout=30):
            for number in numbers:
                process.send_signal(number)
            assert process.wait(60) == status
            assert ends(child)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(page)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
async def test_an_open_page_is_told_how_the_run_ended(provider: FakeProvider) -> None:
    hold = provider.hold()
    flags = ("--num-samples", "2", *VIEWED, "--max-samples", "2")
    with program(provider, *flags) as process:
        url = address(process)
        child = view_of(process.pid)
        async with open_page() as page, open_page() as question:
            for one in (page, question):
                async with one.expect_response(STREAM):
                    await one.goto(url)
            async with question.expect_response(STREAM):
                await question.click("#under-way a")
            await expect(question.locator("#state")).to_contain_text("speak")
            hold.release()
            for one in (page, question):
                said = one.locator("#connection")
                await expect(said).to_contain_text(
                    "The run is finished; the view ends with the run"
                )
                await expect(said).to_have_text(
                    re.compile("to see it again: python view.py output$")
                )
            assert await asyncio.to_thread(ends, child)
            assert process.wait(60) == 0
            await expect(page.locator("#head .state")).to_contain_text("finished 2 of 2")
            await expect(page.locator("#list tbody tr")).to_have_count(2)
            await expect(page.locator("#under-way article")).to_have_count(0)
            await expect(question.locator("#state")).to_contain_text("Decided")
            await expect(question.locator("#top .figures")).to_contain_text("tokens")  # of records
            await question.locator("#moment").fill("0")
            await expect(question.locator("#end")).to_be_hidden()
            for one in (page, question):
                await expect(one.locator("#connection")).to_contain_text("is finished")
                assert await problems(one) == []


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGINT, "The run was interrupted; the view ends"), (signal.SIGKILL, "the view ends")],
    ids=["Ctrl-C twice", "kill -9"],
)
async def test_an_open_page_is_told_that_the_run_was_stopped(
    number: int, words: str, provider: FakeProvider
) -> None:
    with at_work(provider) as (process, url):
        async with open_page() as page:
            async with page.expect_response(STREAM):
                await page.goto(url)
            await expect(page.locator("#under-way article")).not_to_have_count(0)
            process.send_signal(number)
            if number == signal.SIGINT:
                process.send_signal(number)
            process.wait(60)
            await expect(page.locator("#connection")).to_contain_text(words)
            await expect(page.locator("#under-way article")).not_to_have_count(0)
            assert await problems(page) == []


@pytest.mark.process
def test_it_outlives_a_ctrl_c_while_questions_finish(provider: FakeProvider) -> None:
    with at_work(provider) as (process, page):
        os.kill(process.pid, signal.SIGINT)
        assert process.stderr is not None
        assert any("stopping: questions in progress" in line for line in process.stderr)
        child = view_of(process.pid)
        assert os.getsid(child) != os.getsid(process.pid), "no Ctrl-C of the terminal reaches it"
        root, _ = page.split("/runs/")
        assert httpx2.get(f"{root}/api/runs").status_code == 200


@pytest.mark.process
def test_a_view_that_is_killed_is_said_and_the_run_goes_on(provider: FakeProvider) -> None:
    hold = provider.hold()
    with program(provider, "--num-samples", "2", *VIEWED) as process:
        address(process)
        child = view_of(process.pid)
        kill(child)
        assert process.stderr is not None
        note = next(line for line in process.stderr if line.startswith("NOTE: there is no"))
        hold.release()
        process.communicate()
    assert note == "NOTE: there is no live view any more: its process ended with -9\n"
    assert process.returncode == 0
    assert len(records()) == 2


@pytest.mark.process
def test_a_view_that_dies_at_the_end_is_said_instead_of_what_comes_next(
    provider: FakeProvider,
) -> None:
    hold = provider.hold()
    with program(provider, "--num-samples", "1", *VIEWED) as process:
        address(process)
        child = view_of(process.pid)
        hold.release()
        assert process.stderr is not None
        assert any(" calls, " in line for line in process.stderr)
        kill(child)
        _, err = process.communicate()
    note = "NOTE: there is no live view any more: its process ended with -9"
    assert [line for line in err.splitlines() if "view" in line] == [note]


@pytest.mark.process
def test_a_port_that_is_taken_is_a_note(provider: FakeProvider) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        flags = ("--view", "--view-port", str(port), "--difficulty", "basic")
        with program(provider, "--num-samples", "1", *flags) as process:
            _, err = process.communicate()
    assert process.returncode == 0
    (note,) = (line for line in err.splitlines() if "live view" in line)
    assert note.startswith(f"NOTE: there is no live view: port {port} is taken by another program;")
    assert AGAIN not in err


@pytest.mark.process
def test_a_library_that_is_missing_is_a_note(provider: FakeProvider, tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('No module uvicorn')")
    hold = provider.hold()
    command = [sys.executable, str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE)]
    with subprocess.Popen(
        [*command, "--num-samples", "1"],
        env=bare_environment(
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL=provider.openai_base_url,
            PYTHONPATH=str(tmp_path),
            MDAGENTS_VIEW="1",
            MDAGENTS_VIEW_PORT="0",
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        note = next(line for line in process.stderr if line.startswith("NOTE: there is no live"))
        hold.release()
        process.communicate()
    assert note.endswith("any more: ModuleNotFoundError: No module uvicorn\n")
    assert process.returncode == 0


@pytest.mark.process
def test_a_run_without_a_view_loads_no_server(provider: FakeProvider) -> None:
    code = (
        "import sys; from mdagents.runs.program import main; "
        f"main(['--dataset', {str(SAMPLE)!r}, '--num-samples', '1', '--difficulty', 'basic', *{{}}]"
        ", skip=[], show_interaction_table=False); "
        "print({'starlette', 'uvicorn', 'sse_starlette', 'watchfiles', 'webbrowser'}"
        " & set(sys.modules), file=sys.stderr)"
    )
    for flags in ([], ["--view", "--view-port", "0", "--fresh"]):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("{}", repr(flags))],
            env=bare_environment(
                OPENAI_API_KEY="k",
                OPENAI_BASE_URL=provider.openai_base_url,
                PYTHONPATH=str(REPOSITORY),
            ),
            capture_output=True,
            text=True,
        )
        assert done.stderr.splitlines()[-1] == "set()", done.stderr


@pytest.mark.process
def test_the_address_is_said_to_those_who_asked_for_no_display(provider: FakeProvider) -> None:
    flags = ("--display", "none", "--view-host", "0.0.0.0")
    with program(provider, "--num-samples", "1", *VIEWED, *flags) as process:
        _, err = process.communicate()
    assert process.returncode == 0
    assert re.findall(r"^view .*$", err, re.MULTILINE) == [
        line for line in err.splitlines() if re.search(r"http://\S+/runs/\S+\?token=\S{40,}$", line)
    ]
    run_folder = next(Path("output").glob("*/run.json")).parent
    kept = b"".join(path.read_bytes() for path in run_folder.rglob("*") if path.is_file())
    (token,) = re.findall(r"token=(\S+)", err)
    assert token.encode() not in kept


@pytest.mark.process
def test_a_view_of_another_run_is_at_the_next_port(provider: FakeProvider) -> None:
    Path("output").mkdir()
    with start("--no-open") as first:
        assert first.stdout is not None
        taken = address_in(first.stdout.readline())
        with program(provider, "--num-samples", "1", "--view", "--difficulty", "basic") as process:
            assert not address(process).startswith(f"{taken}/")
            process.communicate()
        first.kill()
    assert process.returncode == 0


# -- in a terminal --------------------------------------------------------------------------------

# Makes its terminal the one that Ctrl-C comes from, as a shell does.
_IN_FRONT = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


class Terminal:
    """A program in a terminal of its own: what it shows, and keys."""

    def __init__(self, provider: FakeProvider, *arguments: str) -> None:
        self._screen, inside = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_FRONT, *arguments],
            env=bare_environment(
                MDAGENTS_EXAID="off",
                OPENAI_API_KEY="k",
                OPENAI_BASE_URL=provider.openai_base_url,
                PYTHONPATH=str(REPOSITORY),
                TERM="xterm",
            ),
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
        )
        os.close(inside)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            self._read()

    def press(self, keys: bytes) -> None:
        os.write(self._screen, keys)

    def end(self) -> int:
        with contextlib.suppress(OSError):  # the terminal's end
            while True:
                self._read()
        return self.process.wait(30)

    def _read(self) -> None:
        assert select.select([self._screen], [], [], 60)[0], self.shown
        self.shown += os.read(self._screen, 65536).decode(errors="replace")


def main_on(*arguments: str) -> list[str]:
    command = [str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE), "--num-samples", "1"]
    return [*command, *VIEWED, "--no-open", *arguments]


def state_of(terminal: Terminal) -> str:
    """What the view says of the run."""
    root, name = address_in(terminal.shown[terminal.shown.index("view  ") :]).split("/runs/")
    state: str = httpx2.get(f"{root}/api/runs/{name}").json()["state"]
    return state


STAYS = "the live view is still open; press Enter to close it"


@pytest.mark.process
@pytest.mark.parametrize(
    ("key", "display"), [(b"\r", "log"), (b"\x03", "log"), (b"\x04", "full")],
    ids=["Enter", "Ctrl-C", "Ctrl-D"],
)  # fmt: skip
def test_in_a_terminal_the_view_stays_until_a_key(
    key: bytes, display: str, provider: FakeProvider
) -> None:
    with Terminal(provider, *main_on("--display", display)) as terminal:
        terminal.press(b"\r\r")  # while the run is at work: no answer to a later question
        terminal.wait_for(STAYS)
        assert state_of(terminal) == "finished"
        child = view_of(terminal.process.pid)
        terminal.press(key)
        assert terminal.end() == 0
        assert ends(child)
        assert "Traceback" not in terminal.shown


@pytest.mark.process
def test_a_finished_run_is_shown_likewise(provider: FakeProvider) -> None:
    with program(provider, "--num-samples", "1", "--difficulty", "basic") as process:
        process.communicate()
    with Terminal(provider, *main_on("--display", "log")) as terminal:
        terminal.wait_for(STAYS)
        assert "this run is already finished" in terminal.shown
        assert state_of(terminal) == "finished"
        terminal.press(b"\r")
        assert terminal.end() == 0


@pytest.mark.process
def test_ctrl_c_in_a_terminal_leaves_at_once(provider: FakeProvider) -> None:
    hold = provider.hold()
    with Terminal(provider, *main_on("--display", "log")) as terminal:
        terminal.wait_for("view  ")
        hold.wait(1)
        terminal.press(b"\x03")
        terminal.wait_for("stopping: ")
        child = view_of(terminal.process.pid)
        assert is_running(child)
        terminal.press(b"\x03")
        assert terminal.end() == 130
        assert ends(child)
        assert STAYS not in terminal.shown
        hold.release()


FIRST_RUN = f"""
from scripts import first_run
first_run.RUN = ("--dataset", {str(SAMPLE)!r}, "--limit", "1", "--method", "zero_shot", "--view")
raise SystemExit(first_run.main())
"""


@pytest.mark.process
def test_a_first_run_in_a_pipe_ends_by_itself(provider: FakeProvider) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_RUN],
        env=bare_environment(
            MDAGENTS_EXAID="off",
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL=provider.openai_base_url,
            PYTHONPATH=str(REPOSITORY),
        ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith(first_run.what_next().rstrip())
    last = "the view ends with the run; to see it again: .venv/bin/python view.py output"
    assert done.stderr.splitlines()[-1] == last


@pytest.mark.process
def test_a_first_run_is_still_there_after_its_last_words(provider: FakeProvider) -> None:
    with contextlib.ExitStack() as opened:
        both = []
        for method in ("zero_shot", "cot"):  # the second while the first is still there
            program = FIRST_RUN.replace("zero_shot", method)
            shown = opened.enter_context(Terminal(provider, "-c", program))
            shown.wait_for(STAYS)
            assert "view  " in shown.shown, shown.shown
            assert "Next, with a model" in shown.shown.partition("view  ")[2], shown.shown
            assert shown.shown.rstrip().endswith(STAYS)
            assert state_of(shown) == "finished"
            both.append(shown)
        terminal, another = both
        terminal.press(b"\r")
        another.press(b"\x03")
        assert terminal.end() == another.end() == 0
