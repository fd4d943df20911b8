"""A companion system without its packages says in one line how to start it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from demos.toolkit.packages import needs_demos
from mdagents_llm import interpreter
from mdagents_llm.errors import ConfigError


def said(error: ImportError) -> str:
    with pytest.raises(ConfigError) as caught, needs_demos("Medagen"):
        raise error
    return str(caught.value)


def test_in_the_environment_of_the_clone_the_same_command_works_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpreter, "ENVIRONMENT", Path(sys.prefix))
    line = said(ModuleNotFoundError("No module", name="fastapi.routing"))
    assert line.startswith("Medagen needs fastapi: type make demo in ")
    assert line.endswith(", then the same command")


def test_in_another_environment_the_python_of_the_clone_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(interpreter, "ENVIRONMENT", tmp_path / ".venv")
    line = said(ModuleNotFoundError("No module", name="langgraph"))
    assert line.startswith("Medagen needs langgraph: type make demo in ")
    assert f"{Path('.venv', 'bin', 'python')}" in line


@pytest.mark.parametrize("name", ["demos.medagen.no_such", "json.no_such", None])
def test_a_mistake_of_ours_is_not_hidden(name: str | None) -> None:
    with pytest.raises(ImportError, match="mistake"), needs_demos("Medagen"):
        raise ImportError("mistake", name=name)
