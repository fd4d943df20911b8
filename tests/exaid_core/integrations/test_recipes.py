"""The program of each page of docs/how-to/recipes runs, and prints what the page says."""

from __future__ import annotations

import gc
import os
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from exaid_core.templates import LABELS
from tests.conftest import REPOSITORY
from tests.exaid_core.integrations import autogen_client
from tests.exaid_core.integrations.overhearing import OpenAIChat
from tests.exaid_core.models import WAIT, asks_for
from tests.fake_provider import FakeProvider

PAGES = sorted((REPOSITORY / "docs" / "how-to" / "recipes").glob("*.md"))
_SAID = {
    "triage nurse": "Emergency: chest pain for two hours in a man of 58.",
    "laboratory physician": "Troponin is requested, and open.",
    "cardiologist": "I suspect an acute coronary syndrome. ECG within ten minutes.",
    "attending": "ECG now, then troponin; acute coronary syndrome until excluded.",
}


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_each_framework_has_its_page() -> None:
    names = [page.stem for page in PAGES]
    assert names == ["autogen", "langgraph", "openai-agents", "stream"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_a_recipe_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.fixture
def model_packages(monkeypatch: pytest.MonkeyPatch, provider: FakeProvider) -> None:
    """Puts models of the tests in the place of packages that the project does not need."""

    def chat_openai(**settings: Any) -> OpenAIChat:
        return OpenAIChat(base_url=os.environ["OPENAI_BASE_URL"], **settings)

    stand_ins = {
        "langchain_openai": {"ChatOpenAI": chat_openai},
        "autogen_ext": {},
        "autogen_ext.models": {},
        "autogen_ext.models.openai": vars(autogen_client),
    }
    for name, content in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    for role in ("SUMMARIZER", "BUFFER_AGENT"):
        monkeypatch.setenv(f"{role}_LLM_PROVIDER", "openai")


@pytest.mark.sweep
@pytest.mark.usefixtures("model_packages")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_prints_what_its_page_says(
    page: Path, provider: FakeProvider, capsys: pytest.CaptureFixture[str], fresh_agents_sdk: None
) -> None:
    (program,), (promised,) = blocks(page, "python"), blocks(page, "text")
    lines = dict(line.split(": ", 1) for line in promised.splitlines() if ": " in line)
    summary = {field: lines[label] for field, label in LABELS.items()}
    provider.when(asks_for("stream_state"), WAIT.model_dump())
    provider.when(asks_for("status_action"), summary)
    for who, text in _SAID.items():
        provider.when(partial(_asks_as, who), text)

    exec(compile(program, str(page), "exec", dont_inherit=True), {})
    gc.collect()  # what was not closed is a warning, and so an error

    printed = capsys.readouterr().out
    # A machine that stalls gets a second summary, in which other agents may be.
    shown = printed.split("\n\n")
    assert shown[-1] == promised.split("\n\n")[-1]
    if len(shown) == 2:
        assert printed == promised
    assert {line for text in shown[:-1] for line in text.splitlines()[:6]} == set(
        promised.splitlines()[:6]
    )


@pytest.fixture
def fresh_agents_sdk() -> Any:
    """Undoes what the program of a page has set for the whole process."""
    yield
    from agents import set_default_openai_api

    set_default_openai_api("responses")


def _asks_as(who: str, request: Any) -> bool:
    return request.schema is None and who in request.text
