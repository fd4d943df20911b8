"""The commands and the example of docs/how-to/inspect.md run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page import Page
from tests.fake_provider import FakeProvider

pytestmark = pytest.mark.process

PAGE = Page("inspect.md")


def _run(provider: FakeProvider, *command: str) -> str:
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": provider.openai_base_url,
            "INSPECT_DISPLAY": "plain",
            "INSPECT_CACHE_DIR": "cache",
            "XDG_DATA_HOME": str(Path("data").absolute()),
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_evaluation_by_the_command_line(provider: FakeProvider) -> None:
    command, *_ = re.findall(r"^\.venv/bin/inspect (eval mdagents/.*)$", PAGE.text, re.MULTILINE)
    program = [sys.executable, "-m", "inspect_ai"]
    told = _run(provider, *program, *shlex.split(command.replace("limit=5", "limit=1")))
    tokens = provider.totals.input + provider.totals.output
    assert f"{tokens:,} tokens" in told
    for name in ("accuracy", "answered", "refused", "agreement"):
        assert name in told
    (log,) = Path("logs").iterdir()
    assert "medqa-sample" in log.name


def test_a_team_in_python(provider: FakeProvider) -> None:
    (example,) = PAGE.examples
    told = _run(provider, sys.executable, "-c", example)
    assert "accuracy" in told
    assert len(provider.calls) == 6
    assert {call.model for call in provider.calls} == {"gpt-4o-mini"}
