"""The program of docs/how-to/opentelemetry.md prints the spans of a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process


def test_the_program_prints_the_spans(provider: FakeProvider) -> None:
    page = REPOSITORY / "docs" / "how-to" / "opentelemetry.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    Path("page.py").write_text(code.replace('model="local"', 'model="gpt-4o-mini"'))
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "page.py"],
        env=bare_environment(
            PYTHONPATH=str(REPOSITORY),
            OPENAI_API_KEY="test-key",
            OPENAI_BASE_URL=provider.openai_base_url,
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    names = re.findall(r'^    "name": "(\S+)', ended.stdout, re.MULTILINE)
    assert sorted(set(names)) == ["chat", "invoke_agent", "invoke_workflow", "run"]
