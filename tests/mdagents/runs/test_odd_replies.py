"""A run of 200 questions at an endpoint of which one reply in twenty is of no use.

Nothing is lost that a run at a sound endpoint answers, and the ledger is what was served.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

import pytest
from aiohttp import web

from tests.fake_provider import FakeProvider
from tests.fake_provider.chat_api import ChatApi
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.sweep

QUESTIONS = 200
EVERY = 20
GOOD = {
    "choices": [{"message": {"content": "Answer: A"}, "finish_reason": "stop"}],
    "content": [{"type": "text", "text": "Answer: A"}],
    "candidates": [{"content": {"parts": [{"text": "Answer: A"}]}, "finishReason": "STOP"}],
}
ODD = [
    (200, json.dumps(GOOD | {"usage": {"prompt_tokens": -5, "completion_tokens": 1}})[:-40]),
    (200, "[" * 100_000),
    (200, "<html>busy</html>"),
    (500, "[" * 100_000),
    (503, "<html>503</html>"),
    (429, "{}"),
    (529, json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "No"}})),
    (200, json.dumps({"error": {"code": 429, "message": "Rate limit exceeded"}})),
    (200, json.dumps({"error": {"code": 502, "message": "Provider returned error"}})),
    (500, json.dumps({"error": "SyntaxError", "message": "Expected ','", "status": 500})),
    (408, ""),
]
MODELS = {
    "openai": "gpt-4o-mini",
    "responses": "gpt-5.5-pro",
    "vllm": "vllm/some-model",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash-lite",
}


class OddProvider(FakeProvider):
    """Answers one request in `EVERY` by a reply of no use."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = 0
        self._number = count()
        self._replies = cycle(ODD)

    async def _serve(self, api: ChatApi, http: web.Request) -> web.StreamResponse:
        if next(self._number) % EVERY != EVERY // 2:
            return await super()._serve(api, http)
        await http.read()
        self.odd += 1
        status, text = next(self._replies)
        kind = "text/html" if text.startswith("<") else "application/json"
        headers = {"retry-after": "0"} if status == 429 else {}
        return web.Response(status=status, text=text, content_type=kind, headers=headers)


@pytest.fixture
def provider() -> Iterator[OddProvider]:
    """In place of the one that answers everything."""
    with OddProvider() as server:
        yield server


@pytest.mark.parametrize("wire", MODELS)
def test_one_reply_in_twenty_is_of_no_use(
    wire: str, provider: OddProvider, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, address in (
        ("VLLM", provider.openai_base_url),
        ("ANTHROPIC", provider.anthropic_base_url),
        ("GOOGLE_GEMINI", provider.gemini_base_url),
    ):
        monkeypatch.setenv(f"{name}_BASE_URL", address)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    monkeypatch.setenv("GOOGLE_API_KEY", "test-key")
    file = tmp_path / "questions.jsonl"
    file.write_text(
        "".join(
            json.dumps(
                {
                    "question": f"A patient of {n} years coughs. What helps?",
                    "options": {"A": "Honey", "B": "Tea", "C": "Rest", "D": "Salt"},
                    "answer_idx": "ABCD"[n % 4],
                }
            )
            + "\n"
            for n in range(QUESTIONS)
        )
    )
    status, _, err = run(
        *("--dataset", str(file), "--method", "zero_shot", "--exaid", "off"),
        *("--num-samples", str(QUESTIONS), "--model", MODELS[wire], "--cache", "off"),
    )
    assert status == 0, err
    found = records()
    assert len(found) == QUESTIONS
    assert {record["status"] for record in found} == {"answered"}
    assert provider.odd >= QUESTIONS // EVERY
    (ledger,) = Path("output").glob("*/calls.jsonl")
    rows = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    assert len(rows) == QUESTIONS + provider.odd
    assert sum(row["input_tokens"] for row in rows) == provider.totals.input
    assert sum(row["output_tokens"] for row in rows) == provider.totals.output


class BrokenOff(FakeProvider):
    """Breaks every reply off, and reports its tokens."""

    async def _serve(self, api: ChatApi, http: web.Request) -> web.StreamResponse:
        await http.read()
        choice = {"message": {"content": "The ans"}, "finish_reason": "abort"}
        usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
        return web.json_response({"model": "m", "choices": [choice], "usage": usage})


def test_the_tokens_of_unusable_replies_are_in_all_totals_and_reach_the_limit(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BrokenOff() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_base_url)
        status, _, _ = run(
            *("--num-samples", "10", "--method", "zero_shot", "--exaid", "off", "--max-samples"),
            *("1", "--max-retries", "0", "--token-limit", "200", "--cache", "off"),
        )
    assert status == 1
    (ledger,) = Path("output").glob("*/calls.jsonl")
    rows = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    assert {row["outcome"] for row in rows} == {"unusable"}
    assert len(rows) == 4, "240 tokens are above the limit"
    manifest = json.loads(ledger.with_name("run.json").read_text())
    spent = manifest["spent"]
    assert (spent["calls"], spent["failed_attempts"]) == (4, 4)
    assert spent["input_tokens"] + spent["output_tokens"] == 240
    assert manifest["totals"]["total_tokens"] == 240
    assert {record["status"] for record in records()} == {"api_error"}
    assert sum(record["token_usage"]["total_tokens"] for record in records()) == 240
