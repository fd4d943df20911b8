"""EXAID in programs of all kinds: with threads, with several loops, with subscribers."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core import EXAID, AgentSummary, ExaidConfig, TriggerPolicy
from exaid_core.health import Failure, Monitor
from exaid_core.schema.agent_summary import SummaryDraft
from exaid_core.subscribers import Subscribers
from exaid_core.sync import SyncExaid
from infra.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from tests.exaid_core.models import (
    SHIFT,
    STABLE,
    WAIT,
    Slow,
    asks_for,
    make_exaid,
    model,
    watched_bus,
)
from tests.fake_provider import FakeProvider
from tests.support.virtual_time import virtual_time


class Told:
    """A subscriber that keeps what it is told."""

    def __init__(self) -> None:
        self.summaries: list[AgentSummary] = []

    def __call__(self, summary: AgentSummary) -> None:
        self.summaries.append(summary)

    async def later(self, summary: AgentSummary) -> None:
        """The same, after a while."""
        await asyncio.sleep(5)
        self.summaries.append(summary)


def covered_seqs(summaries: Iterable[AgentSummary]) -> list[int]:
    """The sequence numbers that summaries are made from."""
    ranges = [bounds for summary in summaries for bounds in summary.source_seqs]
    return [seq for first, last in ranges for seq in range(first, last + 1)]


# Subscribers


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
    covered = [
        seq
        for summary in exaid.summaries
        for first, last in summary.source_seqs
        for seq in range(first, last + 1)
    ]
    held = [segment.seqs[0] for segment in exaid.buffer_agent.held()]
    assert len(set(covered + held)) == len(covered + held), "nothing twice"
    assert (exaid.tail_loss() > 0) >= bool(held)


# The block


@virtual_time
async def test_the_end_of_a_block_summarises_the_rest() -> None:
    async with make_exaid(model(WAIT), model(STABLE)) as exaid:
        assert await exaid.received_trace("a", "Fever.") is None
    assert exaid.tail_loss() == 0
    assert await exaid.received_trace("a", "Fever.") is None


@virtual_time
async def test_an_error_in_a_block_ends_it_at_once() -> None:
    exaid = make_exaid(model(WAIT), Slow(model(STABLE), lambda: 1e9))

    async def use() -> None:
        async with exaid:
            await exaid.received_trace("a", "Fever.")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await use()
    assert asyncio.get_running_loop().time() == 0
    assert exaid.tail_loss() == 1


# Loops and threads


def test_a_second_event_loop_is_refused_in_one_sentence() -> None:
    exaid = EXAID(buffer_llm=model(WAIT), summarizer_llm=model(STABLE))
    asyncio.run(exaid.received_trace("a", "Fever."))
    calls: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = (
        partial(exaid.received_trace, "a", "Fever."),
        partial(exaid.on_new_token, "a", "Fever."),
        exaid.finalize,
        exaid.close,
    )
    for call in calls:
        with pytest.raises(RuntimeError, match="another event loop: make one EXAID for each"):
            asyncio.run(call())


def test_threads_share_one_exaid() -> None:
    with SyncExaid(buffer_llm=model(SHIFT), summarizer_llm=model(STABLE)) as exaid:
        with ThreadPoolExecutor(8) as pool:
            done = list(
                pool.map(lambda i: exaid.received_trace(f"agent-{i % 8}", "Fever."), range(80))
            )
        assert all(isinstance(summary, AgentSummary) for summary in done)
        assert sum(exaid.get_agent_trace_count(f"agent-{i}") for i in range(8)) == 80
        assert exaid.health.state == "ok"
    covered = {
        seq
        for summary in exaid.get_all_summaries()
        for a, b in summary.source_seqs
        for seq in range(a, b + 1)
    }
    assert covered == set(range(80))
    assert exaid.tail_loss() == exaid.missed_alerts() == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "EXAID"]


def test_without_an_event_loop_it_does_what_the_other_does() -> None:
    told = Told()
    with SyncExaid(buffer_llm=model(WAIT), summarizer_llm=model(STABLE)) as exaid:
        exaid.subscribe(told)
        assert exaid.latest_summary() == "No summaries yet."
        assert exaid.on_new_token("  a ", "Fever.") is None
        exaid.flush_agent("a")
        summary = exaid.finalize()
        assert summary is not None
        assert exaid.get_summaries_by_agent("a") == told.summaries == [summary]
    exaid.close()
    assert exaid.latest_summary() == summary
    with pytest.raises(RuntimeError, match="is closed"):
        exaid.received_trace("a", "Fever.")


def test_an_error_in_a_sync_block_ends_it_and_its_thread() -> None:
    def use() -> None:
        slow = Slow(model(STABLE), lambda: 60.0)
        with SyncExaid(buffer_llm=model(WAIT), summarizer_llm=slow) as exaid:
            exaid.received_trace("a", "Fever.")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()
    assert not [thread for thread in threading.enumerate() if thread.name == "EXAID"]


def test_a_wrong_argument_leaves_no_thread() -> None:
    with pytest.raises(TypeError, match="method generate"):
        SyncExaid(buffer_llm="gpt-4o")
    assert not [thread for thread in threading.enumerate() if thread.name == "EXAID"]


# Arguments


@pytest.mark.parametrize("wrong", [None, 5, b"Fever.", ["Fever."]])
@virtual_time
async def test_what_is_no_text_is_refused_in_a_sentence(wrong: Any) -> None:
    exaid = make_exaid(model(WAIT), model(STABLE))
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=f"text must be a string, not {kind}"):
        await exaid.received_trace("a", wrong)
    with pytest.raises(TypeError, match=f"text must be a string, not {kind}"):
        await exaid.on_new_token("a", wrong)
    if wrong is not None:
        with pytest.raises(TypeError, match=f"agent id must be a string, not {kind}"):
            await exaid.received_trace(wrong, "Fever.")
    with pytest.raises(TypeError, match=f"agent id must be a string, not {kind}"):
        await exaid.flush_agent(wrong)
    assert exaid.log.flushes == []


@virtual_time
async def test_an_agent_has_one_id_everywhere() -> None:
    exaid = make_exaid(model(WAIT), model(STABLE))
    await exaid.received_trace("  A  ", "Fever.")
    await exaid.on_new_token("A\u200b", "Cough.")
    await exaid.flush_agent(" A")
    await exaid.finalize()
    assert exaid.get_agent_trace_count("A") == exaid.get_agent_trace_count(" A ") == 2
    assert exaid.summaries[0].agents == ("A",)
    assert exaid.get_summaries_by_agent(" A") == exaid.summaries
    on_a_bus = make_exaid(model(WAIT), model(STABLE))
    bus = watched_bus(on_a_bus)
    for agent_id in ("A ", "A\u200b"):
        bus.start_turn(agent_id).say("Rash.")
    await on_a_bus.close(1)
    assert on_a_bus.summaries[0].agents == ("A",)


# Its own models


async def test_its_own_connections_are_closed_at_the_end(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    provider.when(asks_for("stream_state"), SHIFT.model_dump())
    provider.when(
        asks_for("differential_rationale"), SummaryDraft(status_action="Fever.").model_dump()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with EXAID() as exaid:
            assert await exaid.received_trace("a", "Fever.") is not None
        del exaid
        gc.collect()


@pytest.mark.embedded
async def test_all_roles_share_one_embedded_server(monkeypatch: pytest.MonkeyPatch) -> None:
    from infra.local_model.server import LlamaServer

    started = []
    start = LlamaServer.astart

    async def counted(settings: Any) -> LlamaServer:
        server = await start(settings)
        started.append(server)
        return server

    monkeypatch.setattr(LlamaServer, "astart", counted)
    async with EXAID() as exaid:
        await exaid.received_trace("DoctorAgent", "The troponin is raised: 2.4 ng/mL.")
    assert exaid.summaries
    assert len(started) == 1
    assert started[0].has_ended


# What a stop ends


@virtual_time
async def test_stopping_ends_a_finalize_of_another_task() -> None:
    exaid = make_exaid(model(WAIT), Slow(model(STABLE), lambda: 1e9))
    await exaid.received_trace("a", "Fever.")
    finalizing = asyncio.create_task(exaid.finalize())
    await asyncio.sleep(1)
    await exaid.stop()
    assert await finalizing is None
    assert asyncio.get_running_loop().time() == 1
    assert len(asyncio.all_tasks()) == 1
    assert exaid.tail_loss() == 1


@virtual_time
async def test_text_in_the_gate_counts_as_not_covered_when_all_is_stopped() -> None:
    exaid = make_exaid(model(WAIT), model(STABLE))
    await exaid.on_new_token("nurse", "He is in cardiac arrest.")
    await exaid.stop()
    assert (exaid.tail_loss(), exaid.missed_alerts()) == (1.0, 1)


def test_closing_releases_callers_in_all_threads() -> None:
    slow = Slow(model(SHIFT), lambda: 60.0)
    exaid = SyncExaid(buffer_llm=slow, summarizer_llm=model(STABLE))

    def call(number: int) -> str:
        try:
            exaid.received_trace(f"agent-{number}", "Fever.")
        except (RuntimeError, CancelledError) as error:
            return type(error).__name__
        return "returned"

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call, number) for number in range(4)]
        time.sleep(0.2)
        closings = [pool.submit(exaid.close, 0) for _ in range(4)]
        assert {done.result(timeout=20) for done in calls} <= {
            "returned",
            "RuntimeError",
            "CancelledError",
        }
        assert [done.result(timeout=20) for done in closings] == [None] * 4
    assert not [thread for thread in threading.enumerate() if thread.name == "EXAID"]


def test_a_subscriber_may_ask_its_sync_exaid_but_not_wait_for_it() -> None:
    seen: list[object] = []

    def asks(summary: AgentSummary) -> None:
        seen.append(exaid.tail_loss())
        with pytest.raises(RuntimeError, match="cannot wait for it"):
            exaid.finalize()
        seen.append("refused")

    with SyncExaid(buffer_llm=model(SHIFT), summarizer_llm=model(STABLE), on_summary=asks) as exaid:
        exaid.received_trace("a", "Fever.")
    assert seen == [0.0, "refused"]


@virtual_time
async def test_a_model_that_is_cancelled_by_itself_has_failed() -> None:
    class Cancelled:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            raise asyncio.CancelledError

    exaid = make_exaid(model(SHIFT), Cancelled())
    assert await exaid.received_trace("a", "Fever.") is None
    assert await exaid.received_trace("a", "Cough.") is None
    assert await exaid.finalize() is None
    assert exaid.health.failed == 3


def test_a_call_from_another_loop_takes_nothing_out_of_the_gate() -> None:
    exaid = EXAID(buffer_llm=model(WAIT), summarizer_llm=model(STABLE))

    async def begin() -> None:
        await exaid.on_new_token("nurse", "He is in cardiac")

    asyncio.run(begin())
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(exaid.flush_agent("nurse"))
    assert exaid.get_agent_trace_count("nurse") == 0


def test_an_async_on_error_is_refused() -> None:
    async def later(failure: Failure) -> None:
        pass

    with pytest.raises(TypeError, match="on_error must be a function, not an async one"):
        EXAID(buffer_llm=model(WAIT), summarizer_llm=model(STABLE), on_error=later)


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"config": {"policy": "off"}}, "config must be an ExaidConfig, not dict"),
        ({"on_summary": 3}, "a subscriber must be a function, not int"),
        ({"on_error": 3}, "on_error must be a function, not int"),
        ({"case_id": "patient-7"}, "case_id is 'patient-7' but must be case- and then letters"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        EXAID(**{"buffer_llm": model(WAIT), "summarizer_llm": model(STABLE), **arguments})


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"policy": "off"}, "policy is 'off' but must be full_exaid, turn_end"),
        ({"gate": None}, "gate must be a GateProfile, not NoneType"),
        ({"validators": len}, "validators must be a tuple of functions"),
        ({"call_timeout": "30"}, "call_timeout must be a number, not str"),
        ({"call_timeout": 0}, "call_timeout is 0 but must be above 0"),
        ({"max_buffer_age": None}, "max_buffer_age must be a number, not NoneType"),
        ({"linger": float("nan")}, "linger is nan but must be at least 0"),
        ({"history_k": -1}, "history_k is -1 but must be at least 0"),
    ],
)
def test_a_wrong_setting_is_refused_at_once(setting: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        ExaidConfig(**setting)


def test_a_policy_may_be_given_by_its_name() -> None:
    assert ExaidConfig(policy="turn_end").policy is TriggerPolicy.TURN_END  # type: ignore[arg-type]


@virtual_time
async def test_a_subscriber_may_close_what_it_listens_to() -> None:
    async def closes(summary: AgentSummary) -> None:
        await exaid.close()

    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=closes)
    await exaid.received_trace("a", "Fever.")
    await asyncio.sleep(1)
    await exaid.close()
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "TypeError: generate must return a ChatReply, not NoneType"),
        (
            ChatReply("{}", TokenUsage(), StopReason.STOP, "m", None),
            "the model returned no BufferAnalysis: ChatReply.parsed is NoneType",
        ),
    ],
)
@virtual_time
async def test_a_model_of_ones_own_is_told_what_it_must_return(answer: Any, words: str) -> None:
    class Mine:
        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            return cast("ChatReply", answer)

    exaid = make_exaid(Mine(), model(STABLE))
    await exaid.received_trace("a", "Fever.")
    failure = exaid.health.last_failure
    assert failure is not None
    assert failure.message == words
