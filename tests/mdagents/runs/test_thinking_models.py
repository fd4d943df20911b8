"""Runs against an endpoint that thinks before it answers, with default flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.sweep

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


def test_how_much_to_think_is_sent_by_role_and_is_part_of_the_run(
    provider: FakeProvider, run: Run
) -> None:
    usual = ("--num-samples", "1", "--difficulty", "basic", "--model", "gpt-5")
    assert run(*usual)[0] == 0
    assert all("reasoning_effort" not in call.body for call in provider.calls)
    provider.reset()
    status, _, err = run(*usual, "--reasoning-effort", "expert=low,decision=high")
    assert status == 0, err
    sent = [call.body.get("reasoning_effort") for call in provider.calls]
    assert set(sent) >= {"low", "high"}, "the cache of the first run is not used"
    assert "reasoning_effort=decision=high,expert=low" in " ".join(err.split())
    names = {path.parent.name for path in Path("output").glob("*/run.json")}
    assert len(names) == 2
