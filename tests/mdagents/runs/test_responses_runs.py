"""Whole runs by the Responses API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

USUAL = ("--num-samples", "3", "--difficulty", "basic", "--exaid", "turn_end")


@pytest.mark.parametrize("server", ["", "vllm", "ollama", "lmstudio", "xai", "azure"])
@pytest.mark.parametrize("hidden", [0, 3000, 12_000])
def test_every_question_is_answered(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, server: str, hidden: int
) -> None:
    provider.reasoning_tokens = hidden
    url = provider.openai_base_url
    monkeypatch.setenv("XAI_API_KEY", "test-key")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"http://127.0.0.1:{provider.port}")
    model = ["--model", f"{server}/thinker" if server else "thinker"]
    if not server:
        model += ["--model-base-url", url]
    elif server != "azure":
        monkeypatch.setenv(f"{server.upper()}_BASE_URL", url)
    status, _, err = run(*model, "--api", "responses", *USUAL)
    assert status == 0, err
    assert [record["status"] for record in records()] == ["answered"] * 3
    assert all("input" in call.body for call in provider.calls)
    (ledger,) = Path("output").glob("*/calls.jsonl")
    rows = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    assert sum(row["input_tokens"] for row in rows) == provider.totals.input
    assert sum(row["output_tokens"] for row in rows) == provider.totals.output
    assert sum(row["reasoning_tokens"] for row in rows) == provider.totals.reasoning


def test_the_api_by_role_is_part_of_the_run(provider: FakeProvider, run: Run) -> None:
    usual = ("--model", "gpt-4o-mini", *USUAL)
    assert run(*usual)[0] == 0
    assert not any("input" in call.body for call in provider.calls)
    provider.reset()
    status, _, err = run(*usual, "--api", "expert=responses")
    assert status == 0, err
    assert "api=expert=responses" in " ".join(err.split())
    assert {"input" in call.body for call in provider.calls} == {True, False}
    assert len(list(Path("output").glob("*/run.json"))) == 2
