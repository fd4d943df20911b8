"""EXAID in programs of all kinds: with threads, with several loops, with models of their own."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import pytest

from exaid_core import EXAID, AgentSummary, ExaidConfig, TriggerPolicy
from exaid_core.health import Failure
from exaid_core.schema.agent_summary import SummaryDraft
from exaid_core.sync import SyncExaid
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.records import logged_case_id
from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
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
    told: list[AgentSummary] = []
    with SyncExaid(buffer_llm=model(WAIT), summarizer_llm=model(STABLE)) as exaid:
        exaid.subscribe(told.append)
        assert exaid.latest_summary() == "No summaries yet."
        assert exaid.on_new_token("  a ", "Fever.") is None
        exaid.flush_agent("a")
        summary = exaid.finalize()
        assert summary is not None
        assert exaid.get_summaries_by_agent("a") == told == [summary]
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


@pytest.mark.sweep
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
    from mdagents_llm.local_model.server import LlamaServer

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
    asked = threading.Event()

    def long() -> float:
        asked.set()
        return 60.0

    exaid = SyncExaid(buffer_llm=Slow(model(SHIFT), long), summarizer_llm=model(STABLE))

    def call(number: int) -> str:
        try:
            exaid.received_trace(f"agent-{number}", "Fever.")
        except (RuntimeError, CancelledError) as error:
            return type(error).__name__
        return "returned"

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call, number) for number in range(4)]
        assert asked.wait(timeout=20)
        closings = [pool.submit(exaid.close, 0) for _ in range(4)]
        assert {done.result(timeout=20) for done in calls} <= {
            "returned",
            "RuntimeError",
            "CancelledError",
        }
        assert [done.result(timeout=20) for done in closings] == [None] * 4
    assert not [thread for thread in threading.enumerate() if thread.name == "EXAID"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_after_a_fork_it_refuses_at_once() -> None:
    """As below `gunicorn --preload`; callers waited forever (langfuse/langfuse-python 1654)."""
    with SyncExaid(buffer_llm=model(WAIT), summarizer_llm=model(STABLE)) as exaid:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            refused = 0
            bus = TraceBus(on_failure=lambda error: os._exit(refused))
            bus.subscribe(exaid.on_event)
            for call in (partial(exaid.received_trace, "a", "Fever."), exaid.close):
                try:
                    call()
                except RuntimeError as error:
                    refused += "before a fork" in str(error)
            bus.start_turn("a")
            os._exit(99)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 2
        exaid.received_trace("a", "Fever.")
    assert len(exaid.get_all_summaries()) == 1


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"config": {"policy": "off"}}, "config must be an ExaidConfig, not dict"),
        ({"on_summary": 3}, "a subscriber must be a function, not int"),
        ({"on_error": 3}, "on_error must be a function, not int"),
        ({"case_id": ""}, "case_id is '' but must be 1 to 200 printable characters"),
        ({"case_id": "a\nb"}, "must be 1 to 200 printable characters"),
        ({"case_id": "x" * 201}, "must be 1 to 200 printable characters"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        EXAID(**{"buffer_llm": model(WAIT), "summarizer_llm": model(STABLE), **arguments})


@pytest.mark.parametrize(
    ("case_id", "logged"),
    [
        ("case-7", "case-7"),
        ("7", "case-7-[0-9a-f]{6}"),
        ("case_1", "case-case-1-[0-9a-f]{6}"),
        ("case-7/8", "case-case-7-8-[0-9a-f]{6}"),
        ("3f2a-uuid", "case-3f2a-uuid-[0-9a-f]{6}"),
        ("MRN 00/17, Müller", "case-MRN-00-17-M-ller-[0-9a-f]{6}"),
        ("../../etc/passwd", "case-etc-passwd-[0-9a-f]{6}"),
        ("症例一", "case-[0-9a-f]{6}"),
        ("x" * 200, "case-x{60}-[0-9a-f]{6}"),
    ],
)
def test_any_printable_case_id_is_logged_in_a_safe_form(case_id: str, logged: str) -> None:
    exaid = EXAID(buffer_llm=model(WAIT), summarizer_llm=model(STABLE), case_id=case_id)
    assert re.fullmatch(logged, exaid.log.case_id)
    assert len({logged_case_id(one) for one in (case_id, f"{case_id[1:]}_", "case_1_")}) == 3


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"policy": "off"}, "policy is 'off' but must be full_exaid, turn_end"),
        ({"gate": None}, "gate must be a GateProfile, not NoneType"),
        ({"checks": len}, "checks must be a tuple of functions"),
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


@virtual_time
async def test_text_may_come_by_several_buses_and_methods() -> None:
    exaid = make_exaid(model(WAIT), model(STABLE))
    failures: list[Exception] = []
    buses = [TraceBus(on_failure=failures.append) for _ in range(2)]
    for bus in buses:
        bus.subscribe(exaid.on_event)
    async with exaid:
        for round_ in range(2):
            for bus in buses:
                turn = bus.start_turn("a")
                turn.say(f"Round {round_}.")
                turn.end()
            await exaid.on_new_token("a", "Fever.")
            await exaid.received_trace("b", "Cough.")
    assert failures == []
    seqs = [seq for flush in exaid.log.flushes for seq in range(flush.start_seq, flush.end_seq + 1)]
    assert len(seqs) == len(set(seqs)) >= 8
    assert exaid.tail_loss() == 0
