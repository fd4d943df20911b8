"""The examples of docs/how-to/langchain.md run as they stand."""

from __future__ import annotations

import re

import pytest

from tests.docs.conftest import Run
from tests.docs.page import Page
from tests.fake_provider import FakeProvider

PAGE = Page("langchain.md")

# The connections of `get_llm` end with the process.
pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_a_model(run: Run, provider: FakeProvider) -> None:
    text, counts = run(0).splitlines()
    [call] = provider.calls
    assert text == call.reply
    assert counts == f"{call.usage.total} gpt-4o-mini"


def test_structured_output(run: Run) -> None:
    assert re.fullmatch(r"Triage (emergency|urgent|routine)\n", run(1))


def test_tools(run: Run, provider: FakeProvider) -> None:
    call = {"name": "heart_rate", "args": {"patient": "Ann"}}
    provider.when('"tool_results": [{', {"reply": {"answer": "130 beats in a minute."}})
    provider.when("heart beat", {"reply": {"tool_calls": [call]}})
    assert run(2).splitlines() == [
        "human How fast does Ann's heart beat?",
        "ai ['heart_rate']",
        "tool Ann: 130 bpm",
        "ai 130 beats in a minute.",
    ]


def test_streams(run: Run, provider: FakeProvider) -> None:
    assert run(3) == provider.calls[0].reply


def test_there_is_no_further_example() -> None:
    assert len(PAGE.examples) == 4
