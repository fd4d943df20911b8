"""The method of docs/tutorials/own-method.md is built and run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mdagents.cli.score import main as evaluate
from mdagents.runs.program import main
from tests.conftest import REPOSITORY
from tests.docs.page import Page
from tests.fake_provider import FakeProvider, depth

pytestmark = pytest.mark.process

PAGE = Page("own-method.md")


def test_the_page(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (method,) = PAGE.examples
    assert len([line for line in method.splitlines() if line]) <= 32, "about 30 lines, as promised"
    Path("two_opinions.py").write_text(method)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("MDAGENTS_EXAID", "off")
    commands = re.findall(r"^python (\S+) (.*)$", PAGE.text, re.MULTILINE)
    assert [program for program, _ in commands] == [
        "main.py", "main.py", "main.py", "evaluate_text_output.py",
    ]  # fmt: skip
    assert "--dry-run" in commands.pop(0)[1]
    here = ["--data-dir", str(REPOSITORY / "data")]
    provider.latency = 0.02
    for _, flags in commands[:2]:
        arguments = [*flags.replace("20", "2").split(), *here]
        assert main(arguments, skip=(), show_interaction_table=False) == 0
    own, cot = sorted(Path("output").glob("*.json"), reverse=True)
    records = json.loads(own.read_text())
    assert "two_opinions" in own.name
    assert [record["status"] for record in records] == ["answered"] * 2
    for record in records:
        differ = len({opinion["answer"] for opinion in record["opinions"]}) > 1
        assert record["calls"] == 2 + differ
        assert (record["routed_by"], record["difficulty"]) == ("method", None)
    assert depth(provider.calls) >= 1
    capsys.readouterr()
    assert evaluate(["--compare", str(own), str(cot)]) == 0
    assert "two_opinions" in capsys.readouterr().out
