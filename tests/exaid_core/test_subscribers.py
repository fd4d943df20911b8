"""Subscribers get EXAID's summaries in order, without delay for anybody, until the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core import AgentSummary, TraceBus
from exaid_core.health import Failure, Monitor
from exaid_core.subscribers import Subscribers
from exaid_core.sync import SyncExaid
from tests.exaid_core.models import SHIFT, STABLE, Slow, make_exaid, model, watched_bus
from tests.support.virtual_time import virtual_time


class Told:
    """A subscriber that keeps what it is told."""

    def __init__(self) -> None:
        self.summaries: list[AgentSummary] = []

    def __call__(self, summary: AgentSummary) -> None:
        self.summaries.append(summary)

    async def later(self, summary: AgentSummary) -> None:
        """Keep the summary after five seconds."""
        await asyncio.sleep(5)
        self.summaries.append(summary)


@virtual_time
async def test_all_subscribers_are_told_in_order() -> None:
    first, second, third = Told(), Told(), Told()
    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=first)
    exaid.subscribe(second)
    exaid.subscribe(third.later)
    for _ in range(3):
        await exaid.received_trace("a", "Fever.")
    assert asyncio.get_running_loop().time() == 0, "nobody waits for a subscriber"
    assert first.summaries == second.summaries == exaid.summaries
    assert third.summaries == []
    await exaid.close()
    assert third.summaries == exaid.summaries, "the end waits for them"
    assert asyncio.get_running_loop().time() == 15, "one summary after the other"


@virtual_time
async def test_what_agents_say_is_told_before_it_is_judged() -> None:
    failures: list[Failure] = []
    told: list[tuple[str, str]] = []
    exaid = make_exaid(model(SHIFT), model(STABLE), on_error=failures.append)
    exaid.subscribe_text(lambda agent_id, text: told.append((agent_id, text)))
    exaid.subscribe_text(lambda agent_id, text: 1 / 0)
    await exaid.received_trace("a", "Fever.")
    await exaid.on_new_token("b", "Cou")
    bus = TraceBus()
    bus.subscribe(exaid.on_event)
    turn = bus.start_turn("c")
    turn.say("Pain.")
    turn.end()
    assert told == [("a", "Fever."), ("b", "Cou"), ("c", "Pain.")]
    assert [one.source for one in failures] == ["subscriber"] * 3
    await exaid.close()
    await exaid.received_trace("a", "Too late.")
    assert len(told) == 3


@virtual_time
async def test_a_subscriber_that_leaves_is_told_no_more() -> None:
    told = Told()
    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=told)
    await exaid.received_trace("a", "Fever.")
    exaid.unsubscribe(told)
    await exaid.received_trace("a", "Cough.")
    assert len(told.summaries) == 1
    with pytest.raises(ValueError, match="is no subscriber"):
        exaid.unsubscribe(told)


@virtual_time
async def test_the_end_waits_for_a_subscriber_that_has_left() -> None:
    told = Told()
    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=told.later)
    for _ in range(2):
        await exaid.received_trace("a", "Fever.")
    exaid.unsubscribe(told.later)
    await exaid.close()
    assert told.summaries == exaid.summaries
    assert len(asyncio.all_tasks()) == 1, "nothing is left at work"


@pytest.mark.parametrize("is_async", [False, True])
@virtual_time
async def test_a_subscriber_that_raises_harms_nobody_and_is_told_of(is_async: bool) -> None:
    def breaks(summary: AgentSummary) -> None:
        raise RuntimeError(summary.status_action)

    async def breaks_later(summary: AgentSummary) -> None:
        await asyncio.sleep(1)
        raise RuntimeError(summary.status_action)

    failures: list[Failure] = []
    told = Told()
    first = breaks_later if is_async else breaks
    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=first, on_error=failures.append)
    exaid.subscribe(told)
    assert await exaid.received_trace("a", "Fever.") is not None
    bus = watched_bus(exaid)
    turn = bus.start_turn("b")
    turn.say("Cough.")
    turn.end()
    await asyncio.sleep(10)
    assert [summary.agents for summary in told.summaries] == [("a",), ("b",)]
    assert exaid.tail_loss() == 0.0
    await exaid.close(1)
    assert {(failure.source, failure.message) for failure in failures} == {
        ("subscriber", "RuntimeError: Under review.")
    }
    assert exaid.health.state == "ok", "its models work"


@virtual_time
async def test_the_end_does_not_wait_for_a_subscriber_longer_than_it_may() -> None:
    async def hangs(summary: AgentSummary) -> None:
        await asyncio.sleep(1e9)

    failures: list[Failure] = []
    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=hangs, on_error=failures.append)
    for _ in range(3):
        await exaid.received_trace("a", "Fever.")
    await exaid.close(7)
    assert asyncio.get_running_loop().time() == 7
    assert len(asyncio.all_tasks()) == 1, "nothing is left at work"
    (failure,) = failures
    assert failure.source == "subscriber"
    assert failure.message == "TimeoutError: stopped before it was done; summaries left: 3"


@virtual_time
async def test_the_end_is_bounded_for_a_subscriber_that_does_not_stop() -> None:
    released = asyncio.Event()

    async def goes_on(summary: AgentSummary) -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=goes_on)
    await exaid.received_trace("a", "Fever.")
    await exaid.close(7)
    assert asyncio.get_running_loop().time() == 8, "a second to stop, and no more"
    released.set()


@pytest.mark.parametrize("steps", range(8))
async def test_stopped_at_any_step_of_the_loop_a_subscriber_is_told_no_more(steps: int) -> None:
    told = Told()

    async def at_once(summary: AgentSummary) -> None:
        told(summary)

    failures: list[Failure] = []
    subscribers = Subscribers(Monitor(failures.append))
    subscribers.add(at_once)
    for _ in range(3):
        subscribers.tell(AgentSummary())
    for _ in range(steps):
        await asyncio.sleep(0)
    before = len(told.summaries)
    await subscribers.stop()
    await asyncio.sleep(0.01)
    assert len(told.summaries) == before
    assert len(failures) == (before < 3)


@pytest.mark.sweep
@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(0, 30))
@virtual_time
async def test_cancelled_at_any_moment_nothing_is_left_at_work(pauses: list[int], end: int) -> None:
    told = Told()
    write = Slow(model(STABLE), lambda: 2.0)
    exaid = make_exaid(Slow(model(SHIFT), lambda: 1.0), write, on_summary=told.later)

    async def use() -> None:
        async with exaid:
            for pause in pauses:
                await exaid.received_trace("a", "Fever.")
                await asyncio.sleep(pause)

    task = asyncio.create_task(use())
    await asyncio.sleep(end)
    task.cancel()
    await asyncio.wait([task])
    assert len(asyncio.all_tasks()) == 1
    ranges = [bounds for summary in exaid.summaries for bounds in summary.source_seqs]
    covered = [seq for first, last in ranges for seq in range(first, last + 1)]
    held = [segment.seqs[0] for segment in exaid.buffer_agent.held()]
    assert len(set(covered + held)) == len(covered + held), "nothing twice"
    assert (exaid.tail_loss() > 0) >= bool(held)


@virtual_time
async def test_a_subscriber_that_is_cancelled_by_itself_is_told_of_the_next() -> None:
    told = Told()

    async def cancelled_once(summary: AgentSummary) -> None:
        told(summary)
        await asyncio.sleep(1)
        if len(told.summaries) == 1:
            raise asyncio.CancelledError

    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=cancelled_once)
    for _ in range(3):
        await exaid.received_trace("a", "Fever.")
    await exaid.close()
    assert told.summaries == exaid.summaries


@virtual_time
async def test_a_plain_subscriber_that_is_cancelled_does_not_cancel_the_decision() -> None:
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    failures: list[Failure] = []
    exaid = make_exaid(model(SHIFT), model(STABLE), on_error=failures.append)
    exaid.subscribe(lambda summary: gone.result())
    assert await exaid.received_trace("a", "Fever.") is not None
    await exaid.close()
    assert [failure.message for failure in failures] == ["TimeoutError: cancelled by itself"]


@virtual_time
async def test_a_subscriber_may_close_what_it_listens_to() -> None:
    async def closes(summary: AgentSummary) -> None:
        await exaid.close()

    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=closes)
    await exaid.received_trace("a", "Fever.")
    await asyncio.sleep(1)
    await exaid.close()
    assert len(asyncio.all_tasks()) == 1


def test_a_subscriber_may_ask_its_sync_exaid_but_not_wait_for_it() -> None:
    seen: list[object] = []

    def asks(summary: AgentSummary) -> None:
        seen.append(exaid.tail_loss())
        # Waiting for the loop from its own thread never ends (empicano/aiomqtt 174).
        for wait in (exaid.finalize, exaid.close):
            with pytest.raises(RuntimeError, match="cannot wait for it"):
                wait()
        seen.append("refused")

    with SyncExaid(buffer_llm=model(SHIFT), summarizer_llm=model(STABLE), on_summary=asks) as exaid:
        exaid.received_trace("a", "Fever.")
    assert seen == [0.0, "refused"]
