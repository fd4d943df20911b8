"""Inspect's tokens are those of our ledger and those that the server has billed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fake_provider import FakeProvider
from tests.mdagents.inspect.conftest import MODEL, Evaluate
from tests.support.whole_runs import Run

pytestmark = pytest.mark.sweep

Tokens = tuple[int, int, int, int]
"""Input, output, cached input and reasoning."""


def _of_inspect(usages: Mapping[str, Any]) -> Tokens:
    """Inspect's input tokens exclude the prompt cache."""
    read = written = cached = reasoning = 0
    for use in usages.values():
        prompt = use.input_tokens + (use.input_tokens_cache_read or 0)
        assert use.total_tokens == prompt + use.output_tokens
        read, written = read + prompt, written + use.output_tokens
        cached += use.input_tokens_cache_read or 0
        reasoning += use.reasoning_tokens or 0
    return read, written, cached, reasoning


def _of_ledger(log: Any) -> Tokens:
    """Tokens of all samples by the ledger, without those that Inspect's cache served."""
    total = [0, 0, 0, 0]
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
    for sample in log.samples:
        tokens = sample.store["TeamOutcome:tokens"]
        for place, name in enumerate(names):
            total[place] += sum(tokens[kind][name] for kind in ("team", "exaid"))
            total[place] -= tokens["cached"][name]
    return total[0], total[1], total[2], total[3]


def _billed(provider: FakeProvider, before: int = 0) -> Tokens:
    used = [call.usage for call in provider.calls[before:] if call.status == 200]
    return (
        sum(use.input for use in used),
        sum(use.output for use in used),
        sum(use.cached_input for use in used),
        sum(use.reasoning for use in used),
    )


def _agree(log: Any, provider: FakeProvider, before: int = 0) -> Tokens:
    billed = _billed(provider, before)
    assert _of_ledger(log) == billed
    assert _of_inspect(log.stats.model_usage) == billed
    per_sample = [_of_inspect(sample.model_usage) for sample in log.samples]
    assert tuple(map(sum, zip(*per_sample, strict=True))) == billed
    return billed


def test_of_each_team_with_exaid_reasoning_a_prompt_cache_and_retries(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    provider.reasoning_tokens, provider.prompt_cache = 7, True
    for team in ("basic", "intermediate", "advanced"):
        before = len(provider.calls)
        for fault in ("429", "500", "reset", "invalid_schema", "empty"):
            provider.fail_next(fault)
        log = evaluate(team=team, exaid="turn_end")
        assert [call.outcome for call in provider.calls[before:]].count("429") == 1
        billed = _agree(log, provider, before)
        assert min(billed) > 0
        (sample,) = log.samples
        assert sample.scores["option"].answer in "ABCD"
        assert sample.store["TeamOutcome:tokens"]["exaid"]["input_tokens"] > 0


def test_replies_of_inspects_cache_cost_nothing(provider: FakeProvider, evaluate: Evaluate) -> None:
    provider.reasoning_tokens = 3
    first = evaluate(team="basic", cache=True)
    billed = _agree(first, provider)
    again = evaluate(team="basic", cache=True)
    assert len(provider.calls) == len(first.samples) * 6
    assert _of_ledger(again) == (0, 0, 0, 0) == _of_inspect(again.stats.model_usage)
    (sample,) = again.samples
    cached = sample.store["TeamOutcome:tokens"]["cached"]
    assert (cached["input_tokens"], cached["output_tokens"]) == billed[:2]
    assert sample.scores["option"].answer == first.samples[0].scores["option"].answer


def test_the_reply_that_reaches_a_limit_is_booked(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    for limit in ({"token_limit": 1200}, {"turn_limit": 3}, {"message_limit": 1}):
        before = len(provider.calls)
        log = evaluate(team="basic", **limit)
        (sample,) = log.samples
        assert f"{sample.limit.type}_limit" in limit
        used = _billed(provider, before)
        # Calls that were in progress when another one reached the limit are in neither count.
        assert _of_ledger(log) == _of_inspect(sample.model_usage)
        assert _of_ledger(log)[0] <= used[0]
        score = sample.scores["option"]
        assert (score.value, score.answer, score.reason) == ("N", "", "limit")


def test_a_run_of_ours_on_a_model_of_inspect(
    provider: FakeProvider, as_in_inspect: None, run: Run
) -> None:
    provider.reasoning_tokens, provider.prompt_cache = 7, True
    settings = ("--limit", "2", "--difficulty", "intermediate", "--display", "none")
    status, _, _ = run("--model", f"inspect/{MODEL}", *settings)
    assert status == 0
    (file,) = Path("output").glob("*/calls.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == len(provider.calls)
    for name, billed in (("input_tokens", "input"), ("output_tokens", "output"),
                         ("cached_input_tokens", "cached_input")):  # fmt: skip
        assert sum(row[name] for row in rows) == sum(
            getattr(call.usage, billed) for call in provider.calls
        )
