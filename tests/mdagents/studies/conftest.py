"""Calls `study.py` on the fake provider, in this process or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mdagents.studies.program import main
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.whole_runs import SAMPLE

Study = Callable[..., tuple[int, str, str]]
"""Writes the file of a study, calls the program, and gives (exit status, stdout, stderr)."""

FILE = Path("teams.yaml")
SMALL: dict[str, Any] = {
    "datasets": [str(SAMPLE)],
    "models": ["gpt-4o-mini", "gpt-4.1-mini"],
    "methods": ["zero_shot", "cot_sc", "basic"],
    "num-samples": 3,
    "exaid": "off",
}


def write_study(**changes: Any) -> None:
    """Write the small study with changes; None leaves a key out."""
    content = {key: value for key, value in {**SMALL, **changes}.items() if value is not None}
    FILE.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture
def study(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Study:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)

    def call(*arguments: str, **changes: Any) -> tuple[int, str, str]:
        write_study(**changes)
        status = main([str(FILE), *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def program(provider: FakeProvider, *arguments: str) -> subprocess.Popen[str]:
    """`python study.py` in a process of its own, its working directory that of the test."""
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "study.py"), str(FILE), *arguments],
        env=bare_environment(OPENAI_API_KEY="test-key", OPENAI_BASE_URL=provider.openai_base_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def records_of_runs(output: Path = Path("output")) -> dict[str, list[dict[str, Any]]]:
    """Name of a run -> its records, without what a clock or an interruption changes."""
    return {
        file.stem: [
            {k: v for k, v in record.items() if k not in ("wall_seconds", "restart")}
            for record in json.loads(file.read_text())
        ]
        for file in output.glob("*.json")
    }
