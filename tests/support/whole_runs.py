"""Whole runs of the program: on which questions, in a process of their own, what they leave."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mdagents.teams.methods import declared
from mdagents.teams.names import baseline_names
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

Run = Callable[..., tuple[int, str, str]]
"""Calls `main` on the fake provider and gives (exit status, stdout, stderr)."""
ROUND_TABLE = {"expert-1": "gpt-4o-mini", "expert-2": "gpt-4.1-mini"}
"""Role -> model: what `--method reconcile` has to be told."""
WITH_TRAIN_SPLIT = [name for name in baseline_names() if declared(name).exemplars]
"""Methods that a question alone is not enough for."""
SAMPLE = REPOSITORY / "data" / "medqa" / "sample.jsonl"


def records(output: Path = Path("output")) -> list[dict[str, Any]]:
    """The records of the only run in a folder."""
    (array,) = output.glob("*.json")
    loaded: list[dict[str, Any]] = json.loads(array.read_text())
    return loaded


def asked_for(method: str) -> list[str]:
    """The flags that ask for a method, with all that it has to be told."""
    seats = ROUND_TABLE if declared(method).seats else {}
    named = (flag for role, model in seats.items() for flag in ("--model-role", f"{role}={model}"))
    return ["--method", method, *named]


def program(provider: FakeProvider, *arguments: str) -> subprocess.Popen[str]:
    """`python main.py` in a process of its own, its working directory that of the test."""
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE), *arguments],
        env=bare_environment(
            MDAGENTS_EXAID="off",
            OPENAI_API_KEY="test-key",
            OPENAI_BASE_URL=provider.openai_base_url,
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
