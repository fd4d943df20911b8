"""Files are found by a pattern as by a shell: hidden ones are not."""

from __future__ import annotations

from pathlib import Path

from mdagents_llm.files.matching import matching


def test_hidden_files_do_not_match() -> None:
    """The files that macOS leaves beside others, as in pybids#1069 and letta-code#3506."""
    folder = Path(".own")
    for name in ("b.json", "a.json", "._a.json", "run/c.json", ".git/d.json", "run/._c.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert matching(folder, "*.json") == [folder / "a.json", folder / "b.json"]
    assert matching(folder, "*/*.json") == [folder / "run/c.json"]
    assert matching(Path("nowhere"), "*") == []
