"""What programs print reaches any screen: streams of any encoding, and readers that are gone."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.terminal.printing import (
    fails_in_one_line,
    interrupted,
    print_result,
    reaches_any_screen,
)
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.process

ALL_PROGRAMS = [
    ["main.py"],
    ["evaluate_text_output.py"],
    ["split_test_data.py"],
    ["extract_by_question_id.py"],
    ["-m", "mdagents"],
    ["-m", "mdagents", "data", "download"],
    ["-m", "mdagents", "export"],
    ["-m", "evals.cli.replay"],
    ["-m", "mdagents_llm.local_model.weights"],
]


def help_of(program: list[str], redirection: str = "", **variables: str) -> tuple[int, str, str]:
    """Call a program with `--help` in a shell: its exit status under pipefail, and both outputs."""
    done = subprocess.run(
        [
            "bash",
            "-c",
            f'set -o pipefail; "$@" --help {redirection}',
            "-",
            sys.executable,
            *program,
        ],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)} | variables,
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("program", ALL_PROGRAMS, ids=lambda words: words[-1])
def test_help_is_printed_in_ascii_where_the_terminal_has_nothing_else(program: list[str]) -> None:
    status, out, err = help_of(program, PYTHONIOENCODING="ascii")
    assert (status, err) == (0, "")
    assert "usage: " in out
    assert out.isascii()


@pytest.mark.parametrize("program", ALL_PROGRAMS, ids=lambda words: words[-1])
def test_nobody_needs_to_read_the_help(program: list[str]) -> None:
    assert help_of(program, "| true") == (0, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("program", ALL_PROGRAMS, ids=lambda words: words[-1])
def test_help_that_cannot_be_written_is_an_error_in_one_line(program: list[str]) -> None:
    status, _, err = help_of(program, ">/dev/full")
    assert status == 1
    assert err == "error: the results could not be printed: No space left on device\n"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", '- -> "x" ... Sjogren >= ?? ?'),
        ("cp1252", "– -> “x” … Sjögren >= ?? ?"),
        ("utf-8", "– → “x” … Sjögren ≥ 肝臓 ?"),
    ],
)
def test_what_a_stream_cannot_encode_is_replaced(
    monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    monkeypatch.setattr(sys, "stdout", screen)

    @reaches_any_screen
    def program() -> int:
        print_result("– → “x” … Sjögren ≥ 肝臓 \ud800")
        return 0

    assert program() == 0
    assert screen.buffer.getvalue().decode(encoding) == shown + "\n"


@given(st.text(st.characters(exclude_categories=())), st.sampled_from(["ascii", "cp1252", "utf-8"]))
def test_any_text_is_printed(text: str, encoding: str) -> None:
    @reaches_any_screen
    def program() -> int:
        print_result(text)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        assert program() == 0


_INTERRUPTED = """
import os, signal, sys
from mdagents_llm.terminal.printing import fails_in_one_line

class Impatient:
    def write(self, text):
        os.kill(os.getpid(), signal.SIGINT)
    def flush(self):
        pass

@fails_in_one_line
def main():
    os.kill(os.getpid(), signal.SIGINT)

if len(sys.argv) > 1:
    sys.stderr = Impatient()
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("again", "status", "err"),
    [
        ((), 130, "interrupted; run the same command again\n"),
        (("again",), -signal.SIGINT, ""),
    ],
)
def test_ctrl_c_ends_without_traceback_even_if_it_comes_twice(
    again: tuple[str, ...], status: int, err: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, *again],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", err)


def test_the_handler_of_the_caller_is_restored(capsys: pytest.CaptureFixture[str]) -> None:
    @fails_in_one_line
    def main() -> int:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    assert main() == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert capsys.readouterr().err == "interrupted; run the same command again\n"


def test_ctrl_c_within_an_import_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def advice() -> str:
        raise AttributeError("partially initialized module 'yaml' has no attribute 'error'")

    assert interrupted(advice) == 130
    assert capsys.readouterr().err == "interrupted; run the same command again\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only there can it be deleted while in use")
def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "mdagents", "export", "run.json"]
    done = subprocess.run(
        ["bash", "-c", 'rmdir "$PWD" && "$@"', "-", *call],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the working directory no longer exists; ")
    assert done.stderr.count("\n") == 1


def test_another_missing_file_is_not_taken_for_the_working_directory() -> None:
    @fails_in_one_line
    def main() -> int:
        return len(Path("missing").read_bytes())

    with pytest.raises(FileNotFoundError):
        main()


@pytest.mark.parametrize("program", ["view", "export", "data check", "score --input", "ratings"])
def test_a_name_that_no_file_can_have_is_one_line(program: str, tmp_path: Path) -> None:
    # Public reports: EleutherAI/lm-evaluation-harness 1454 and 2966.
    more = ["ratings.csv"] if program == "ratings" else []
    done = subprocess.run(
        [sys.executable, "-m", "mdagents", *program.split(), "a" * 300, *more],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {'a' * 300}")
    assert line.endswith(" cannot be used: File name too long")


def test_debugging_shows_where_a_file_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @fails_in_one_line
    def main() -> int:
        return len(Path("a" * 300).read_bytes())

    with pytest.raises(OSError, match="File name too long"):
        main()
    monkeypatch.delenv("MDAGENTS_DEBUG")
    assert main() == 2
