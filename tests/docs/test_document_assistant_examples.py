"""The example of docs/how-to/document-assistant.md runs as it stands there; so do its commands."""

from __future__ import annotations

import re

import pytest

from demos.document_assistant.commands import HELP
from tests.docs.conftest import Run
from tests.docs.page import Page
from tests.fake_provider import FakeProvider
from tests.support.document_model import document_model

PAGE = Page("document-assistant.md")

# The connections of `get_llm` end with the process.
pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_the_assistant_as_a_library(run: Run, provider: FakeProvider) -> None:
    provider.when(None, document_model)
    printed = run(0)
    assert printed.startswith("reading your message\nsearching documents: ")
    assert "$1,238,450" in printed
    assert "['classify_intent', 'qa_agent', 'update_memory'] ['doc_fin_2025_march']" in printed
    assert "doc_policy_visitors" in printed


def test_there_is_no_further_example() -> None:
    assert len(PAGE.examples) == 1


def test_the_commands_are_those_there_are() -> None:
    known = set(re.findall(r"^  (/\w+)", HELP, re.MULTILINE))
    assert set(re.findall(r"`(/\w+)[ `]", PAGE.text)) == known
