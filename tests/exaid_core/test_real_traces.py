"""The real traces, followed in real order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest

from exaid_core.config import ExaidConfig
from exaid_core.exaid import EXAID
from exaid_core.policy import TriggerPolicy
from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from exaid_core.trace.bus import TraceBus, Turn
from exaid_core.trace.events import EventKind, TraceEvent
from exaid_core.trace.traces import Trace, read_trace
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelRegistry
from tests.conftest import CACHE_DIR, REAL_TRACES
from tests.exaid_core.models import DOWN, SHIFT, WAIT, Slow, make_exaid, model, newest_block, reply
from tests.support.function_model import FunctionModel
from tests.support.virtual_time import virtual_time

read_once = cache(read_trace)
traces = pytest.mark.parametrize("path", REAL_TRACES, ids=lambda path: path.name)


def wordy_summarizer() -> FunctionModel:
    """Repeats what is new in every field, at length; now and then it is down."""
    outcomes = cycle([None, None, DOWN, None])

    def answer(request: ChatRequest) -> ChatReply:
        failure = next(outcomes)
        if failure is not None:
            raise failure
        text = " ".join(text for _, text in newest_block(request))
        return reply(SummaryDraft(**{name: text[: limit + 40] for name, limit in LIMITS.items()}))

    return FunctionModel(answer)


def publish(bus: TraceBus, turns: dict[int, Turn], event: TraceEvent) -> None:
    """Publish the events of a trace on a bus."""
    match event.kind:
        case EventKind.START:
            turns[event.turn_id] = bus.start_turn(event.agent_id)
        case EventKind.DELTA:
            turns[event.turn_id].say(event.text)
        case EventKind.END:
            turns[event.turn_id].end()


def assert_fields_are_bounded(exaid: EXAID) -> None:
    for summary in exaid.summaries:
        for name, limit in LIMITS.items():
            assert 0 < len(getattr(summary, name)) <= limit


def assert_all_is_covered_or_counted(exaid: EXAID, trace: Trace) -> None:
    """Each delta is in one summary or in the buffer, or has no words; the tail is counted."""
    seqs = [
        seq
        for summary in exaid.summaries
        for first, last in summary.source_seqs
        for seq in range(first, last + 1)
    ]
    held = exaid.buffer_agent.held()
    seqs += [seq for segment in held for seq in segment.seqs]
    assert len(seqs) == len(set(seqs))
    texts = {event.seq: event.text for event in trace.events if event.kind is EventKind.DELTA}
    assert set(seqs) <= texts.keys()
    assert not "".join(texts[seq] for seq in texts.keys() - set(seqs)).strip()
    letters = sum(len("".join(texts[seq].split())) for seq in set(seqs))
    lost = sum(len("".join(segment.text.split())) for segment in held)
    assert exaid.tail_loss() == lost / letters


@pytest.mark.sweep
@traces
@pytest.mark.parametrize("policy", TriggerPolicy)
@virtual_time
async def test_a_trace_in_its_own_time(path: Path, policy: TriggerPolicy) -> None:
    trace = read_once(path)
    t0 = trace.events[0].t_ms
    loop = asyncio.get_running_loop()

    def clock() -> int:
        return t0 + round(1000 * loop.time())

    judge = Slow(model(WAIT, SHIFT, WAIT, DOWN, SHIFT), lambda: 0.7)
    exaid = make_exaid(
        judge,
        Slow(wordy_summarizer(), lambda: 1.6),
        policy=policy,
        linger=0.5,
        case_id=trace.meta.case_id,
        now_ms=clock,
    )
    failures: list[Exception] = []
    heard: list[TraceEvent] = []
    bus = TraceBus(clock, failures.append)
    bus.subscribe(heard.append)
    bus.subscribe(exaid.on_event)
    turns: dict[int, Turn] = {}
    for event in trace.events:
        await asyncio.sleep(max(0.0, (event.t_ms - t0) / 1000 - loop.time()))
        publish(bus, turns, event)
    await exaid.close(30)

    assert failures == []
    assert heard == list(trace.events)
    assert_fields_are_bounded(exaid)
    assert_all_is_covered_or_counted(exaid, trace)
    assert len(exaid.summaries) >= 3
    assert any(summary.truncated_fields for summary in exaid.summaries)
    assert {agent for summary in exaid.summaries for agent in summary.agents} <= {
        turn.agent_id for turn in trace.turns
    }
    starts = [event.start_seq for event in exaid.log.summaries if event.schema_ok]
    assert starts == sorted(starts), "what was said first is summarised first"


# The embedded model


@pytest.fixture
async def embedded(make_runtime: Callable[..., Runtime]) -> AsyncIterator[ChatModel]:
    registry = ModelRegistry(make_runtime(environment=Environment(cache_dir=CACHE_DIR)))
    yield registry.model(ModelSpec("local", "smollm2-135m-instruct"))
    await registry.aclose()


@pytest.mark.embedded
@pytest.mark.skipif(not REAL_TRACES, reason="the traces are not here")
async def test_the_beginning_of_a_trace_on_the_embedded_model(
    embedded: ChatModel, rows: list[CallRow]
) -> None:
    trace = read_trace(REAL_TRACES[0])
    t_ms = trace.events[0].t_ms
    exaid = EXAID(
        buffer_llm=embedded,
        summarizer_llm=embedded,
        config=ExaidConfig(linger=0.0),
        case_id=trace.meta.case_id,
        now_ms=lambda: t_ms,
    )
    failures: list[Exception] = []
    bus = TraceBus(lambda: t_ms, failures.append)
    bus.subscribe(exaid.on_event)
    turns: dict[int, Turn] = {}
    for event in trace.events[:200]:  # the first turn, and the beginning of the second
        t_ms = event.t_ms
        publish(bus, turns, event)
    await exaid.received_trace("nurse", "The blood pressure has not changed since noon.")
    turns[2].say("\nThe patient is in cardiac arrest.")
    turns[2].end()
    await exaid.close(120)

    assert failures == []
    assert exaid.summaries
    assert_fields_are_bounded(exaid)
    assert {decision.failure_mode for decision in exaid.log.decisions} == {None}
    assert exaid.log.decisions[-1].trigger == "lexical_alert"
    assert all(event.schema_ok for event in exaid.log.summaries)
    assert exaid.tail_loss() == 0.0
    assert {(row.case_id, row.outcome) for row in rows} == {(trace.meta.case_id, "ok")}
    assert {row.role for row in rows} == {"buffer_agent", "summarizer"}
