"""Text for which a model has no room: it is summarised in parts, and nothing is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exaid_core.policy import TriggerPolicy
from mdagents_llm.chat import ChatReply, ChatRequest
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.text import clean
from tests.exaid_core.models import (
    DOWN,
    SHIFT,
    STABLE,
    TOO_LONG,
    Said,
    make_exaid,
    model,
    newest_block,
    reply,
)
from tests.support.function_model import FunctionModel
from tests.support.virtual_time import virtual_time


def with_room_for(characters: int) -> FunctionModel:
    """A model that takes prompts up to that length."""

    def answer(request: ChatRequest) -> ChatReply:
        if sum(len(message.content) for message in request.messages) > characters:
            raise TOO_LONG
        return reply(STABLE)

    return FunctionModel(answer)


def told(write: FunctionModel, exaid: Any) -> list[Said]:
    """What the prompts of the summaries held, in order."""
    sizes = [event.schema_ok for event in exaid.log.summaries]
    blocks = [newest_block(request) for request in write.requests]
    return [said for block, worked in zip(blocks, sizes, strict=True) if worked for said in block]


@pytest.mark.sweep
@pytest.mark.parametrize("word", ["Nothing new. ", "無新的情況", "x", "ไม่มีอะไรใหม่"])
@virtual_time
async def test_a_text_that_is_too_long_is_summarised_in_parts(word: str) -> None:
    text = f"Admitted at noon. {word * (40_000 // len(word))} He is in cardiac arrest."
    write = with_room_for(9_000)
    exaid = make_exaid(model(SHIFT), write)
    last = await exaid.received_trace("doctor", text)
    assert "".join(text for _, text in told(write, exaid)) == text
    assert exaid.tail_loss() == 0
    *first, final = exaid.summaries
    assert len(first) > 3
    assert final is last
    assert all((summary.clipped, summary.source_seqs) == (True, ()) for summary in first)
    assert (final.clipped, final.source_seqs) == (False, ((0, 0),))
    assert exaid.log.summaries[-1].source_seqs == (0,)


@virtual_time
async def test_the_size_that_fits_is_remembered() -> None:
    write = with_room_for(9_000)
    exaid = make_exaid(model(SHIFT), write)
    for _ in range(2):
        refused = sum(not event.schema_ok for event in exaid.log.summaries)
        await exaid.received_trace("doctor", "Nothing new. " * 3_000)
    assert sum(not event.schema_ok for event in exaid.log.summaries) == refused


@pytest.mark.sweep
@virtual_time
async def test_short_segments_are_parted_between_agents() -> None:
    write = with_room_for(9_000)
    exaid = make_exaid(model(SHIFT), write, policy=TriggerPolicy.FULL_EXAID, max_buffer_ctu=9_000)
    for number in range(50):
        await exaid.on_new_token(f"doctor-{number}", "Fever and a cough. " * 40)
    await exaid.finalize()
    assert len(told(write, exaid)) == 50
    assert not any(summary.clipped for summary in exaid.summaries)
    done = [event for event in exaid.log.summaries if event.schema_ok]
    covered = [seq for event in done for seq in event.source_seqs or ()]
    assert covered == list(range(50))


@virtual_time
async def test_a_part_that_fails_leaves_its_text_and_what_follows_uncovered() -> None:
    text = "Nothing new. " * 2_000
    write = model(TOO_LONG, TOO_LONG, STABLE, DOWN, STABLE)
    exaid = make_exaid(model(SHIFT), write)
    summary = await exaid.received_trace("doctor", text)
    assert summary is not None
    assert summary.clipped
    assert 0.7 < exaid.tail_loss() < 0.8
    await exaid.finalize()
    assert exaid.tail_loss() == 0
    assert exaid.summaries[-1].source_seqs == ((0, 0),)


@virtual_time
async def test_a_model_with_room_for_nothing_is_not_asked_for_ever() -> None:
    write = with_room_for(0)
    exaid = make_exaid(model(SHIFT), write)
    assert await exaid.received_trace("doctor", "Nothing new. " * 3_000) is None
    assert len(write.requests) < 12
    assert exaid.tail_loss() == 1


@pytest.mark.sweep
@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=3_000), min_size=1, max_size=6), st.integers(3_500, 12_000))
@virtual_time
async def test_no_text_gets_lost_or_doubled(texts: list[str], room: int) -> None:
    write = with_room_for(room)
    exaid = make_exaid(model(SHIFT), write, max_buffer_ctu=10_000)
    for text in texts:
        await exaid.received_trace("doctor", text)
    await exaid.finalize()
    said = "".join(text for _, text in told(write, exaid))
    assert exaid.tail_loss() == 0
    assert said == "".join(clean(text) for text in texts if text.strip())


@pytest.mark.sweep
@virtual_time
async def test_one_text_that_the_model_refuses_keeps_no_other_from_a_summary() -> None:
    def answer(request: ChatRequest) -> ChatReply:
        if any("poison" in text for _, text in newest_block(request)):
            raise ProviderError("filtered", kind=ErrorKind.BAD_REQUEST, status=400)
        return reply(STABLE)

    write = FunctionModel(answer)
    exaid = make_exaid(model(SHIFT), write)
    await exaid.received_trace("chemist", "He drank poison.")
    for number in range(80):
        await exaid.received_trace("doctor", f"Fever and cough on day {number}. " * 10)
    await exaid.received_trace("nurse", "He is in cardiac arrest.")
    await exaid.finalize()
    assert exaid.missed_alerts() == 0
    assert exaid.tail_loss() < 0.1
    assert "chemist" not in {agent for summary in exaid.summaries for agent in summary.agents}
    sent = sum(len(message.content) for request in write.requests for message in request.messages)
    said = sum(len(text) for request in write.requests[:1] for _, text in newest_block(request))
    assert sent < 8 * (said + 80 * 280) + 1_500 * len(write.requests)


@virtual_time
async def test_an_alert_is_that_of_the_part_that_reports_it() -> None:
    text = f"He is in cardiac arrest. {'Nothing new. ' * 2_000}"
    exaid = make_exaid(model(SHIFT), model(TOO_LONG, TOO_LONG, STABLE, DOWN))
    await exaid.received_trace("doctor", text)
    assert exaid.summaries[0].alerts == ("cardiac arrest",)
    assert exaid.missed_alerts() == 0
    assert exaid.alerts == 1
