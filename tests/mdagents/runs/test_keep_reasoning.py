"""`--keep-reasoning`: what is kept where, and who never sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdagents.settings import EXAID_ROLES
from tests.fake_provider import FakeProvider
from tests.mdagents.pages.test_report import report, text_of, transcripts
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

BASIC = ("--num-samples", "1", "--difficulty", "basic", "--model", "gpt-5.5-pro")
EXAID = ("--exaid", "turn_end")


def rows() -> list[dict[str, object]]:
    ledger = max(Path("output").glob("*/calls.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]


def kept() -> list[object]:
    return [row.get("reasoning") for row in rows()]


def test_it_is_kept_on_request_and_reaches_nobody(provider: FakeProvider, run: Run) -> None:
    provider.reasoning_tokens = 50
    status, _, err = run(*BASIC, *EXAID, "--keep-reasoning")
    assert status == 0, err
    assert set(kept()) == {"Thinking."}
    assert {call.body["reasoning"]["summary"] for call in provider.calls} == {"auto"}
    (page,) = transcripts(report()).values()
    assert page.count('<details class="thoughts"') == sum(
        row["role"] not in EXAID_ROLES for row in rows()
    )
    assert "hidden reasoning, which no other agent saw Thinking." in text_of(page)
    assert not any("Thinking." in json.dumps(call.body["input"]) for call in provider.calls)
    assert "Thinking." not in json.dumps(records())
    for name in ("*/summaries.jsonl", "*/traces/*"):
        for path in Path("output").glob(name):
            assert b"Thinking." not in path.read_bytes()


def test_it_is_kept_in_the_cache_only_where_it_is_in_the_ledger(
    provider: FakeProvider, run: Run
) -> None:
    provider.reasoning_tokens = 50
    assert run(*BASIC)[0] == 0
    assert set(kept()) == {None}
    assert not any("reasoning" in call.body for call in provider.calls)
    sent = len(provider.calls)
    assert run(*BASIC, "--keep-reasoning", "--fresh")[0] == 0
    assert len(provider.calls) == sent, "a cache serves both"
    assert set(kept()) == {None}


def test_a_reply_from_the_cache_has_it(provider: FakeProvider, run: Run) -> None:
    provider.reasoning_tokens = 50
    assert run(*BASIC, "--keep-reasoning")[0] == 0
    sent = len(provider.calls)
    assert run(*BASIC, "--keep-reasoning", "--fresh")[0] == 0
    assert len(provider.calls) == sent
    assert set(kept()) == {"Thinking."}
