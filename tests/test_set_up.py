"""What `make` does before it runs anything: shown in a line a step, and never left half-done."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from scripts.set_up import StepError, Steps, reason, set_up, settings_of_pip
from tests.conftest import REPOSITORY

NOISE = "WARNING: Location 'file:///somewhere' is ignored: it is neither a file nor a directory."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def says(text: str, status: int = 0) -> list[str]:
    """A command with that output and exit status."""
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"]


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[io.TextIOWrapper]:
    with (tmp_path / "lock").open("a+") as file:
        yield file


@pytest.mark.process
def test_a_step_is_a_line_without_what_its_commands_say(lock: io.TextIOWrapper) -> None:
    shown = io.StringIO()
    steps = Steps(lock, shown)
    steps.run("1/2 cups: of tea", says(NOISE), says("Downloading a cup"))
    steps.run("2/2 milk", says("moo"), may_be_done=True)
    heading, *lines = shown.getvalue().splitlines()
    assert heading == "set up (the first time only)"
    assert lines == ["  1/2 cups: of tea ... done in 0 s", "  2/2 milk ... done in 0 s"]


@pytest.mark.process
def test_what_is_done_already_is_not_shown(lock: io.TextIOWrapper) -> None:
    shown = io.StringIO()
    Steps(lock, shown).run("3/3 model", says("there"), may_be_done=True)
    assert shown.getvalue() == ""
    minutes = count(step=60)
    Steps(lock, shown, lambda: next(minutes)).run("3/3 model", says("new"), may_be_done=True)
    assert "3/3 model ... done in 1" in shown.getvalue()


@pytest.mark.process
def test_on_a_terminal_the_line_moves(
    lock: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    shown = Terminal()
    Steps(lock, shown).run("1/1 cups", says(f"Downloading {80 * 'x'}"))
    rows = shown.getvalue().replace("\r\x1b[K", "\n").splitlines()
    assert any(" s  Downloading xxx" in row for row in rows)
    assert rows[-1].startswith("  1/1 cups ... done in ")
    assert max(map(len, rows)) < 60, "it never needs a second row"


@pytest.mark.process
def test_a_step_that_fails_says_why_and_is_begun_again(lock: io.TextIOWrapper) -> None:
    shown = io.StringIO()
    with pytest.raises(StepError) as failure:
        Steps(lock, shown).run("2/3 packages: those", says(f"{NOISE}\nERROR: no cups", 1), says(""))
    assert str(failure.value) == "no cups"
    assert shown.getvalue().endswith("2/3 packages: those ... failed\n")
    lock.seek(0)
    assert Steps(lock, shown).unfinished == "2/3 packages"


@pytest.mark.parametrize(
    ("output", "why", "advice"),
    [
        (
            "ERROR: Could not find a version\nERROR: No matching distribution found for uv",
            "No matching distribution",
            "PyPI",
        ),
        ("error: Request failed\n  cause: dns error", "cause: dns error", "PyPI"),
        ("error: cannot write\n  cause: No space left on device (os error 28)", "space", "no room"),
        ("created because ensurepip is not\navailable.", "ensurepip", "apt install python3-venv"),
        ("/usr/bin/python3: No module named venv", "venv", "apt install python3-venv"),
        ("Error: [Errno 13] Permission denied: '.venv'", "denied", "you may write to"),
        ("/clone/.venv/bin/python: No module named ensurepip", "ensurepip", "python3-venv"),
        (
            "Traceback (most recent call last):\n    fp.write(whl)\n"
            "OSError: [Errno 28] No space left on device",
            "OSError: [Errno 28] No space left on device",
            "TMPDIR",
        ),
        (
            "ERROR: [Errno 122] Disk quota exceeded\n"
            "subprocess.CalledProcessError: Command '['.venv/bin/python', '-c', 'pip']' returned "
            "non-zero exit status 1.",
            "[Errno 122] Disk quota exceeded\nno room",
            "no room",
        ),
        (
            "error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer",
            "UnknownIssuer",
            "PIP_CERT",
        ),
        (
            "WARNING: SSLError(certificate verify failed)\nERROR: No matching distribution",
            "No matching distribution",
            "PIP_CERT",
        ),
        ("error: there is no version of anthropic==2.14.0", "no version", "exclude-newer"),
        ("something new", "something new", ""),
    ],
)
def test_a_reason_ends_with_what_to_do(output: str, why: str, advice: str) -> None:
    said = reason(output.splitlines())
    assert why in said
    assert advice in said.splitlines()[-1]
    assert not said.lower().startswith("error")


def test_packages_come_from_where_pip_is_told_to_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "SSL_CERT_FILE", "ALL_PROXY", "UV_INSECURE_HOST"):
        monkeypatch.delenv(name, raising=False)
    listed = """:env:.cert='/env.pem'
download.index-url='https://dead.example/simple'
global.cert='/file.pem'
global.index-url='https://slow.example/simple'
global.find-links='/wheels'
global.target='/elsewhere'
global.trusted-host='mirror.example'
install.index-url='https://mirror.example/simple'
install.user='true'
"""
    assert settings_of_pip(listed) == {
        "PIP_CERT": "/env.pem",
        "SSL_CERT_FILE": "/env.pem",
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "PIP_FIND_LINKS": "/wheels",
        "PIP_TRUSTED_HOST": "mirror.example",
        "UV_INSECURE_HOST": "mirror.example",
    }
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.example/simple")
    assert "UV_DEFAULT_INDEX" not in settings_of_pip(listed)
    assert settings_of_pip("") == {}


@pytest.mark.process
def test_what_cannot_be_started_is_a_step_that_fails(lock: io.TextIOWrapper) -> None:
    shown = io.StringIO()
    with pytest.raises(StepError, match="No such file or directory"):
        Steps(lock, shown).run("2/3 packages: those", ["/no/such/program"])
    assert shown.getvalue().endswith("2/3 packages: those ... failed\n")


@pytest.mark.process
def test_settings_for_other_installations_reach_no_command(
    lock: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_USER", "PIP_TARGET", "PIP_REQUIRE_HASHES"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    unset = "import os, warnings; warnings.warn('x'); assert 'PIP_USER' not in os.environ"
    steps = Steps(lock, io.StringIO())
    steps.run("2/3 packages", [sys.executable, "-c", unset], variables={"PIP_CERT": "x"})


# The environment that is there


class Commands(Steps):
    """Steps that note their commands, of which one fails if it is told to."""

    def __init__(self, lock: io.TextIOWrapper) -> None:
        super().__init__(lock, io.StringIO())
        self.ran: list[str] = []
        self.fails = False

    def run(self, line: str, *commands: Sequence[str], **_: Any) -> None:
        self.ran += [" ".join(command) for command in commands]
        if self.fails and line.startswith("2/3"):
            raise StepError("interrupted")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "clone" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "pip.py").write_text("")
    return folder


@pytest.mark.process
def test_packages_that_were_not_finished_are_installed_again(
    environment: Path, lock: io.TextIOWrapper
) -> None:
    def installs_again(wanted: str, *, fails: bool = False) -> bool | None:
        """Whether packages are installed again; None if they are not installed at all."""
        steps = Commands(lock)
        steps.fails = fails
        with suppress(StepError):
            set_up(environment, steps, wanted)
        installs = [command for command in steps.ran if "uv pip install" in command]
        return "--reinstall" in installs[0] if installs else None

    assert installs_again("run") is False
    assert installs_again("run") is None
    assert installs_again("dev", fails=True) is False
    assert installs_again("run") is True, "it shares packages with the larger selection"
    assert installs_again("run") is None
    (environment / "packages.begun").write_text("")  # killed while it was written
    assert installs_again("dev", fails=True) is True
    assert installs_again("dev") is True
    assert installs_again("dev") is None
    assert installs_again("run") is None


@pytest.mark.process
def test_an_environment_of_another_place_is_refused(
    environment: Path, lock: io.TextIOWrapper
) -> None:
    link = environment.parent.parent / "linked"
    link.symlink_to(environment.parent)
    set_up(link / ".venv", Commands(lock), "run")
    moved = environment.parent.rename(environment.parent.parent / "moved here")
    with pytest.raises(StepError, match=r"was made at .*/clone, .* say make clean"):
        set_up(moved / ".venv", Commands(lock), "run")


@pytest.mark.process
def test_an_environment_of_an_older_python_is_refused(
    environment: Path, lock: io.TextIOWrapper
) -> None:
    python = environment / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\necho hello from sitecustomize\necho 3.10\n")
    python.chmod(0o755)
    with pytest.raises(StepError, match=r"has Python 3\.10, and 3\.11 is needed; say make clean"):
        set_up(environment, Commands(lock), "run")
    python.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(StepError, match="does not work or has no pip; say make clean"):
        set_up(environment, Commands(lock), "run")


def test_an_older_python_can_read_it() -> None:
    source = (REPOSITORY / "scripts" / "set_up.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    assert not any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)
