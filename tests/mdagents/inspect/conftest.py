"""Evaluations by the real Inspect, whose models are at the fake provider."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fake_provider import FakeProvider

MODEL = "openai-api/fake/gpt-test"
"""The model in Inspect: its provider for servers that speak as OpenAI does."""

Evaluate = Callable[..., Any]
"""Evaluates a task, `medqa-sample` unless another is given, with these parameters and options."""


@pytest.fixture
def as_in_inspect(
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Point Inspect at the fake provider, and leave nothing of it behind."""
    monkeypatch.setenv("FAKE_API_KEY", "test-key")
    monkeypatch.setenv("FAKE_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    # Inspect's log is that of the process: later tests write to it as well.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture
def evaluate(as_in_inspect: None) -> Evaluate:
    """Evaluates with Inspect and gives the log."""

    def call(task: object = "mdagents/medqa-sample", **options: Any) -> Any:
        names = {"team", "exaid", "limit"}
        given = {name: options.pop(name) for name in names & options.keys()}
        if isinstance(task, str):
            given = {"limit": 1} | given
        return asyncio.run(_evaluated(task, given | options.pop("parameters", {}), options))

    return call


async def _evaluated(task: Any, parameters: Mapping[str, object], options: dict[str, Any]) -> Any:
    """Evaluate a task, and close the connections of its models."""
    from inspect_ai import eval_async
    from inspect_ai.model import get_model

    async with AsyncExitStack() as opened:
        models = {
            role: await opened.enter_async_context(get_model(name, memoize=False))
            for role, name in {"": MODEL, **options.pop("model_roles", {})}.items()
        }
        (log,) = await eval_async(
            task,
            model=options.pop("model", models.pop("")),
            model_roles=models,
            task_args=dict(parameters),
            log_dir="logs",
            **{"max_retries": 4} | options,
        )
    return log
