"""Runs the examples of a page as they stand there."""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
from collections.abc import Callable

import pytest

from tests.docs.page import Page
from tests.fake_provider import FakeProvider

Run = Callable[[int], str]


@pytest.fixture
def run(
    request: pytest.FixtureRequest,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs an example of the module's `PAGE` by its number there; gives what it prints."""
    page: Page = request.module.PAGE
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")

    def run_example(number: int) -> str:
        name = f"docs/{page.name}, example {number}"
        # As a notebook does: an example may await.
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(page.examples[number], name, "exec", flags, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, {}))
        else:
            exec(code, {})
        gc.collect()  # what was not closed is warned of now, where warnings may be ignored
        return capsys.readouterr().out

    return run_example
