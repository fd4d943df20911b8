"""The notebooks of docs/notebooks run from top to bottom, and are kept with their outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts.run_notebooks import FOLDER, run
from tests.fake_provider import FakeProvider

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
EXPECTED = {
    "compare-and-frontier": (
        "<RunComparison 2 runs, 12 questions: ",
        "p (McNemar)",
        "on_frontier",
        "Accuracy against",
    ),
    "exaid-over-a-trace": ("13 turns", "summaries;", ">status action<", "AgentSummary("),
    "run-and-table": (
        "<RunResult 6 questions, ",
        "They are not MedQA",
        "sample-006",
        "as in the result: ",
        "SampleRecord(question_id=",
    ),
}
"""Name of a notebook -> what its outputs have, whichever model answers."""
_MACHINE = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|usr|Users|var)/|\b[A-Z]:\\|ipykernel_\d")


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def text_of(notebook: Any) -> str:
    """All text of the outputs; a picture is left out."""
    parts = []
    for output in outputs(notebook):
        parts.append(output.get("text", ""))
        parts += [v for kind, v in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join(parts)


def pictures(notebook: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_the_outputs_of_a_run(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    assert len(content) < 150_000
    assert not _MACHINE.search(content)
    assert " at 0x" not in content
    notebook = nbformat.reads(content, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "run from top to bottom"
    assert not any("execution" in cell.metadata for cell in notebook.cells), "no times"
    assert outputs(notebook)
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    for part in EXPECTED[path.stem]:
        assert part in text_of(notebook)
    assert pictures(notebook) == (path.stem == "compare-and-frontier")


def test_each_notebook_is_expected() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(EXPECTED)


@pytest.mark.process
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    for proxy in ("http_proxy", "https_proxy"):  # nothing but the fake provider is reached
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    notebook = run(path, tmp_path)
    for part in EXPECTED[path.stem]:
        assert part in text_of(notebook)
    if path.stem == "compare-and-frontier":
        assert "Accuracy against cost" in text_of(notebook)
        assert pictures(notebook) == 1
    assert provider.calls
