"""Runs against servers that nobody here wrote: llama.cpp's, `mockllm`, `mock-llm`.

The mocks are found on the PATH: `pip install mockllm` (0.0.8) and
`npm install -g @dwmkerr/mock-llm` (0.1.29). Nothing is downloaded here; without them their tests
are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from mdagents_llm.local_model import weights
from mdagents_llm.local_model.server import LlamaServer, ServerSettings
from tests.conftest import CACHE_DIR
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

REPLY = json.dumps(
    {
        "experts": [
            {"role": "Dietitian", "expertise": "Knows vitamins."},
            {"role": "Surgeon", "expertise": "Knows gums."},
        ],
        "reasoning": "Scurvy.",
        "analysis": "Both say so.",
        "answer": "A",
        "confidence": 0.9,
    }
)
"""The one reply of the mocks: a recruiter, an expert and an arbitrator each find their fields."""
Served = tuple[str, str, str]
"""Address, key and name of a model."""


@contextmanager
def llama() -> Iterator[Served]:
    gguf = weights.find(CACHE_DIR)
    if gguf is None:
        pytest.skip("no model: python -m mdagents_llm.local_model.weights")
    with closing(asyncio.run(LlamaServer.astart(ServerSettings(gguf)))) as server:
        yield server.base_url, server.api_key, server.model_name


@contextmanager
def mockllm() -> Iterator[Served]:
    """The mock of PyPI: usage in whole replies, none in streams."""
    Path("responses.yml").write_text(
        json.dumps({"responses": {}, "defaults": {"unknown_response": REPLY}})
    )
    port = _free_port()
    with _started("mockllm", "start", "--responses", "responses.yml", "--port", str(port)):
        _wait(port)
        yield f"http://127.0.0.1:{port}/v1", "k", "gpt-4o-mini"


@contextmanager
def mock_llm() -> Iterator[Served]:
    """The mock of npm: never any usage; a whole reply of one chunk in streams."""
    choice = {"message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}
    content = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
    rule = {
        "path": "/v1/chat/completions",
        "method": "POST",
        "match": "@",
        "response": {"status": 200, "content": json.dumps(content)},
    }
    Path("mock-llm.yaml").write_text(json.dumps({"rules": [rule]}))
    port = _free_port()
    with _started("mock-llm", "--config", "mock-llm.yaml", PORT=str(port), HOST="127.0.0.1"):
        _wait(port)
        yield f"http://127.0.0.1:{port}/v1", "k", "m"


@pytest.mark.parametrize(
    ("server", "with_team"),
    [
        pytest.param(llama, False, marks=pytest.mark.embedded),
        (mockllm, False),
        (mockllm, True),
        (mock_llm, False),
        (mock_llm, True),
    ],
)
def test_a_run(
    server: Callable[[], AbstractContextManager[Served]],
    with_team: bool,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ["--method", "zero_shot"]
    if with_team:
        asked = ["--difficulty", "basic", "--preset", "small", "--exaid", "turn_end"]
    with server() as (url, key, model):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        status, _, err = run(
            "--model", model, "--model-base-url", url, "--num-samples", "2", "--display", "none",
            "--max-retries", "1", *asked,
        )  # fmt: skip
    assert "Traceback" not in err
    assert status == 0, err
    # The embedded model may write what is no answer; the mocks always answer.
    allowed = {"answered", "parse_error", "truncated"} if server is llama else {"answered"}
    assert {record["status"] for record in records()} <= allowed


def test_a_refusal_of_the_npm_mock_keeps_its_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its default rule echoes the prompt unescaped: a prompt with quotes is a 500 of its own."""
    with _default_mock_llm() as (url, key, model):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        run("--model", model, "--model-base-url", url, "--num-samples", "1", "--method",
            "zero_shot", "--max-retries", "0", "--display", "none")  # fmt: skip
    (record,) = records()
    assert record["status"] == "api_error"
    assert "SyntaxError" in record["error"]


@contextmanager
def _default_mock_llm() -> Iterator[Served]:
    port = _free_port()
    with _started("mock-llm", PORT=str(port), HOST="127.0.0.1"):
        _wait(port)
        yield f"http://127.0.0.1:{port}/v1", "k", "m"


@contextmanager
def _started(program: str, *arguments: str, **variables: str) -> Iterator[None]:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not on the PATH")
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        [path, *arguments], env=os.environ | variables, stdout=quiet, stderr=quiet
    )
    try:
        yield
    finally:
        child.terminate()
        child.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> None:
    """Wait until a server answers anything."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            httpx2.get(f"http://127.0.0.1:{port}/", timeout=5)
        except httpx2.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing listens at port {port}")
