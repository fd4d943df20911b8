"""Example 4 of the specification, as it stands there, on the embedded model and on an endpoint."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest

from tests.conftest import CACHE_DIR, REPOSITORY
from tests.demos.cdss_example.team import script
from tests.fake_provider import FakeProvider

PAGE = (REPOSITORY / "docs" / "how-to" / "cdss.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

# The connections of `get_llm` end with the process.
pytestmark = [pytest.mark.sweep, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def run(number: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run an example of the page; return the lines that it prints."""
    exec(compile(EXAMPLES[number], f"docs/how-to/cdss.md, example {number}", "exec"), {})
    gc.collect()  # what was not closed, while its warnings are ignored
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def scripted(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    script(provider, ["laboratory", "synthesis"])
    return provider


def test_example_4(scripted: FakeProvider, capsys: pytest.CaptureFixture[str]) -> None:
    action, agents, summaries = run(0, capsys)
    assert action == "Final recommendation: ECG now, troponin again."
    nodes = ["orchestrator", "laboratory", "orchestrator", "synthesis"]
    assert agents == f"Agents called: {nodes}"
    assert re.fullmatch(r"Total summaries: [1-9]", summaries)


def test_what_happens_is_told(scripted: FakeProvider, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(1, capsys)
    assert lines[0] == "1 orchestrator"
    assert "Troponin T 86 ng/L is six times the limit of the norm." in lines
    assert lines[-1] == "emergency {} False"


def test_there_is_no_further_example() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.embedded
def test_example_4_on_the_embedded_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MDAGENTS_CACHE_DIR", str(CACHE_DIR))
    assert Path(CACHE_DIR).is_dir()
    action, agents, summaries = run(0, capsys)
    assert re.fullmatch(r"Final recommendation: \S.*", action)
    assert agents.endswith("'synthesis']")
    assert re.fullmatch(r"Total summaries: \d", summaries)
