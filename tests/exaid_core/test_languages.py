"""Clinical texts in six languages, through all of EXAID."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from mdagents_llm.chat import ChatReply, ChatRequest
from tests.exaid_core.languages import SAMPLES, Sample
from tests.exaid_core.models import NO_ALARM, make_exaid, model, newest_block, reply, watched_bus
from tests.support.function_model import FunctionModel
from tests.support.virtual_time import virtual_time


def repeats_all(request: ChatRequest) -> ChatReply:
    """A summarizer that writes all of the new text into each field."""
    text = " ".join(text for _, text in newest_block(request))
    return reply(SummaryDraft(**dict.fromkeys(LIMITS, text * 3)))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: each.language)
@pytest.mark.parametrize("length", [1, 7], ids=["by character", "by seven characters"])
@virtual_time
async def test_a_text_becomes_summaries_within_their_limits(sample: Sample, length: int) -> None:
    write = FunctionModel(repeats_all)
    exaid = make_exaid(model(NO_ALARM), write)
    turn = watched_bus(exaid).start_turn("医生")
    for start in range(0, len(sample.text), length):
        turn.say(sample.text[start : start + length])
        await asyncio.sleep(0.01)
    turn.end()
    await exaid.close()
    assert exaid.tail_loss() == 0
    assert newest_block(write.requests[0])
    for summary in exaid.summaries:
        for name, limit in LIMITS.items():
            field = getattr(summary, name)
            assert 1 < len(field) <= limit
            assert field.strip("…")


def test_there_are_ten_texts_in_each_of_six_languages() -> None:
    assert Counter(sample.language for sample in SAMPLES) == dict.fromkeys(
        ("ar", "es", "ja", "th", "vi", "zh"), 10
    )
