"""What holds for all three teams."""

from __future__ import annotations

import pytest

from mdagents.settings import Difficulty
from mdagents_llm.ledger import CallRow
from tests.fake_provider import FakeProvider
from tests.mdagents.conftest import Solve


@pytest.mark.sweep
@pytest.mark.parametrize("difficulty", list(Difficulty))
async def test_the_gold_letter_is_in_no_prompt_and_the_ledger_agrees_with_the_provider(
    provider: FakeProvider, solve: Solve, rows: list[CallRow], difficulty: Difficulty
) -> None:
    await solve(difficulty)
    assert sum(row.usage.input_tokens for row in rows) == provider.totals.input
    assert sum(row.usage.output_tokens for row in rows) == provider.totals.output
    assert len(rows) == len(provider.calls)
    assert not any("gold" in call.text.lower() for call in provider.calls)
