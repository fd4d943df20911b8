"""EXAID when models fail, when its observers fail, and when time is up."""

from __future__ import annotations

import asyncio

import pytest

from mdagents_llm.clock import Clock
from mdagents_llm.layers.attempt import Attempt
from mdagents_llm.ledger import CallRow, Ledger
from tests.exaid_core.models import (
    DOWN,
    NO_ALARM,
    SHIFT,
    STABLE,
    WAIT,
    Slow,
    make_exaid,
    model,
    newest_block,
    watched_bus,
)
from tests.support.virtual_time import virtual_time


@virtual_time
async def test_a_failed_summary_puts_its_segments_back() -> None:
    write = model(DOWN, STABLE)
    exaid = make_exaid(model(SHIFT), write)
    assert await exaid.received_trace("a", "Fever.") is None
    assert exaid.latest_summary() == "No summaries yet."
    assert exaid.buffer_agent.peek() == ["| a | Fever."]
    assert exaid.tail_loss() == 1.0
    summary = await exaid.received_trace("b", "Cough.")
    assert summary is not None
    assert newest_block(write.requests[1]) == [("a", "Fever."), ("b", "Cough.")]
    assert summary.source_seqs == ((0, 1),)
    first, second = exaid.log.summaries
    assert (first.schema_ok, first.schema_error) == (False, "the provider is down")
    assert (second.schema_ok, second.latest_summary_event_id) == (True, None)


@virtual_time
async def test_an_alarm_whose_summary_failed_comes_again() -> None:
    exaid = make_exaid(model(NO_ALARM), model(DOWN, STABLE))
    assert await exaid.received_trace("nurse", "He is in cardiac arrest.") is None
    assert exaid.missed_alerts() == 1
    summary = await exaid.received_trace("doctor", "The weather is fine.")
    assert summary is not None
    assert summary.agents == ("nurse", "doctor")
    assert exaid.missed_alerts() == 0


@virtual_time
async def test_what_no_summary_covers_is_counted() -> None:
    exaid = make_exaid(model(SHIFT, WAIT), model(STABLE, DOWN))
    assert (exaid.tail_loss(), exaid.missed_alerts()) == (0.0, 0)
    await exaid.received_trace("a", "x" * 30)
    assert exaid.tail_loss() == 0.0
    await exaid.received_trace("a", "x" * 5)
    assert exaid.tail_loss() == 5 / 35
    await exaid.received_trace("b", "Asystole.")  # 9 letters
    await exaid.received_trace("b", "Still in asystole.")  # 16 letters
    assert exaid.tail_loss() == 30 / 60
    assert exaid.missed_alerts() == 2


@virtual_time
async def test_a_caller_who_gives_up_takes_nothing_along() -> None:
    exaid = make_exaid(Slow(model(SHIFT), lambda: 10.0), model(STABLE))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(exaid.received_trace("a", "Fever."), timeout=1)
    await asyncio.sleep(20)
    assert exaid.summaries[0].agents == ("a",)


# The end


@virtual_time
async def test_closing_in_time_summarises_the_rest() -> None:
    exaid = make_exaid(Slow(model(WAIT), lambda: 10.0), Slow(model(STABLE), lambda: 10.0))
    bus = watched_bus(exaid)
    bus.start_turn("a").say("Fever.")
    await exaid.close(30)
    assert asyncio.get_running_loop().time() == 10, "the tail needs no decision"
    assert exaid.summaries[0].agents == ("a",)
    assert exaid.tail_loss() == 0.0


@virtual_time
async def test_closing_cancels_what_is_under_way_and_books_it() -> None:
    rows: list[CallRow] = []
    clock = Clock(monotonic=asyncio.get_running_loop().time)
    write = Attempt(
        Slow(model(STABLE), lambda: 100.0),
        Ledger(rows.append),
        provider="openai",
        model="m",
        price=lambda _: None,
        clock=clock,
    )
    exaid = make_exaid(model(SHIFT, WAIT), write, case_id="case-7", coalesce=False)
    texts = ["He is in asystole.", "Cough.", "Rash."]
    waiting = [asyncio.create_task(exaid.received_trace("a", text)) for text in texts]
    await asyncio.sleep(1)
    await exaid.close(5)
    assert asyncio.get_running_loop().time() == 6
    assert await asyncio.gather(*waiting) == [None, None, None]
    (row,) = rows
    assert (row.case_id, row.role, row.outcome, row.latency) == (
        "case-7",
        "summarizer",
        "aborted",
        6.0,
    )
    assert (exaid.summaries, exaid.log.summaries) == ([], [])
    assert (exaid.tail_loss(), exaid.missed_alerts()) == (1.0, 1)


@virtual_time
async def test_what_comes_after_the_end_is_not_taken() -> None:
    judge = model(SHIFT)
    exaid = make_exaid(judge, model(STABLE))
    bus = watched_bus(exaid)
    await exaid.close(1)
    bus.start_turn("a").say("Fever.")
    assert await exaid.received_trace("a", "Fever.") is None
    assert await exaid.on_new_token("a", "Fever.") is None
    await exaid.flush_agent("a")
    await exaid.close(1)
    await asyncio.sleep(100)
    assert (judge.requests, exaid.log.flushes) == ([], [])


@virtual_time
async def test_a_tail_that_is_cut_off_is_counted() -> None:
    exaid = make_exaid(Slow(model(WAIT), lambda: 100.0), model(STABLE))
    bus = watched_bus(exaid)
    turn = bus.start_turn("a")
    turn.say("Fever.")
    turn.end()
    await asyncio.sleep(1)
    bus.start_turn("b").say("Asystole.")
    await exaid.close(5)
    assert (exaid.tail_loss(), exaid.missed_alerts()) == (1.0, 1)
