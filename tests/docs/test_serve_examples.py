"""The example of docs/how-to/serve.md asks a server, as it stands there but for the port."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO

import pytest

from tests.docs.page import Page
from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import serving

PAGE = Page("serve.md")

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_the_example(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    (example,) = PAGE.examples
    assert "http://127.0.0.1:8080/v1" in example
    with serving(["basic"], preset="small") as served, redirect_stdout(StringIO()) as printed:
        exec(example.replace("http://127.0.0.1:8080", served.url), {})
    *_, answer, team, _, _, _, _, last = printed.getvalue().splitlines()
    assert re.fullmatch("Answer: [ABC]", answer)
    assert team == "Team: basic (forced)."
    assert re.fullmatch(r"\d+ \{'[ABC]': \d.*\}", last)
