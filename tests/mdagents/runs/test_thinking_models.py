"""Runs against an endpoint that thinks before it answers, with default flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

SERVERS = ("vllm", "ollama", "lmstudio", "mistral", "")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("hidden", [3000, 12_000])
def test_every_question_is_answered(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, server: str, hidden: int
) -> None:
    provider.reasoning_tokens = hidden
    url = provider.openai_base_url
    monkeypatch.setenv("MISTRAL_API_KEY", "test-key")
    monkeypatch.delenv("OPENAI_BASE_URL")
    if server:
        monkeypatch.setenv(f"{server.upper()}_BASE_URL", url)
        model = ["--model", f"{server}/thinker"]
    else:
        model = ["--model-base-url", url, "--model", "thinker"]
    for method in (["--method", "zero_shot"], ["--exaid", "turn_end"]):
        output = Path(f"output-{method[1]}")
        status, _, err = run(*model, "--num-samples", "3", "--output-dir", str(output), *method)
        assert status == 0, err
        found = records(output)
        assert [record["status"] for record in found] == ["answered"] * 3
