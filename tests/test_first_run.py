"""What a new user sees who stops `make run`, and what it says is next.

What a whole one prints is compared with its tutorial, in tests/docs/test_tutorials.py.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import first_run
from tests.conftest import CACHE_DIR, REPOSITORY
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process

FOLDERS = ("--output-dir", "output", "--evaluation-dir", "evaluation")


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "scripts" / "first_run.py"), *FOLDERS],
        env=bare_environment(MDAGENTS_CACHE_DIR=str(CACHE_DIR)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.long
@pytest.mark.embedded
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_first_run_that_is_stopped_says_how_to_go_on(stop: signal.Signals) -> None:
    with start() as process:
        assert process.stdout is not None
        for line in process.stdout:
            if " started: " in line:
                break
        process.send_signal(stop)
        out, _ = process.communicate()
    assert process.returncode == 128 + stop
    assert "Traceback" not in out
    assert re.search(r"to resume: .*\.venv/bin/python main.py --model local --preset small", out)
    assert not Path("evaluation").exists()


def test_the_next_commands_say_what_they_cost() -> None:
    text = first_run.what_next()
    told = re.search(
        r"^100 questions cost about (\S+–\S+ USD): (.*?) \(--exaid",
        text,
        re.DOTALL | re.MULTILINE,
    )
    assert told is not None
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    assert f"Those 100 questions cost about {told[1]}, depending" in readme
    assert f": {' '.join(told[2].split())}." in readme, "the same parts in both places"
    assert max(map(len, text.split("\n"))) <= 80
