"""With concurrent agents and slow models no text is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from itertools import chain, cycle
from typing import Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exaid_core.exaid import EXAID
from exaid_core.policy import TriggerPolicy
from exaid_core.run_log import text_hash
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.token_gate.token_gate import FlushReason, GateProfile
from exaid_core.trace.bus import TraceBus
from mdagents_llm.chat import ChatReply, ChatRequest, OnText
from tests.exaid_core.models import (
    DOWN,
    SHIFT,
    STABLE,
    WAIT,
    Outcome,
    Said,
    Slow,
    make_exaid,
    model,
    newest_block,
    reply,
)
from tests.support.virtual_time import now_ms, virtual_time

Action = Literal["trace", "token", "flush", "finalize"]
GATE = GateProfile(min_words=4, max_words=6, silence_timer=2.0, max_wait_timeout=5.0)


class Plan(NamedTuple):
    """What agents do and how models answer; delays in seconds."""

    agents: list[list[tuple[int, Action]]]
    judge: list[Outcome]
    write: list[Outcome]
    delays: list[int]
    policy: TriggerPolicy
    coalesce: bool
    linger: float


def plans(*actions: Action) -> st.SearchStrategy[Plan]:
    pauses = st.sampled_from([0, 0, 1, 3])
    steps = st.lists(st.tuples(pauses, st.sampled_from(actions)), min_size=1, max_size=8)
    return st.builds(
        Plan,
        agents=st.lists(steps, min_size=2, max_size=3),
        judge=st.lists(
            st.sampled_from([SHIFT, WAIT, DOWN, RuntimeError("broken")]), min_size=1, max_size=5
        ),
        write=st.lists(st.sampled_from([STABLE, STABLE, DOWN]), min_size=1, max_size=4),
        delays=st.lists(st.integers(0, 4), min_size=1, max_size=5),
        policy=st.sampled_from(TriggerPolicy),
        coalesce=st.booleans(),
        linger=st.sampled_from([0.0, 0.5]),
    )


class Models:
    """Both models of EXAID; knows what has been summarised."""

    def __init__(self, judge: Sequence[Outcome], write: Sequence[Outcome]) -> None:
        self.summarised: list[list[Said]] = []
        self._outcomes = {"buffer_agent": cycle(judge), "summarizer": cycle(write)}

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        outcome = next(self._outcomes[request.labels.role])
        if isinstance(outcome, Exception):
            raise outcome
        if request.labels.role == "summarizer":
            self.summarised.append(newest_block(request))
        return reply(outcome)


class OneAtATime(Slow):
    """Slow models of which only one is at work at any time."""

    is_busy = False

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        assert not self.is_busy, "two calls at once"
        self.is_busy = True
        try:
            return await super().generate(request, on_text)
        finally:
            self.is_busy = False


def exaid_for(plan: Plan, models: Models) -> EXAID:
    delays = cycle(plan.delays)
    both = OneAtATime(models, lambda: next(delays))
    return make_exaid(
        both,
        both,
        gate=GATE,
        chunk_ctu=4,
        policy=plan.policy,
        coalesce=plan.coalesce,
        linger=plan.linger,
    )


def assert_nothing_is_lost(exaid: EXAID, models: Models, said: Sequence[Said]) -> None:
    """Each chunk is in one summary or in the buffer, in the order in which it was let through."""
    covered = list(chain.from_iterable(models.summarised))
    left = [(segment.agent_id, segment.text) for segment in exaid.buffer_agent.held()]
    hashes = [text_hash(text) for _, text in covered + left]
    assert hashes == [flush.text_hash for flush in exaid.log.flushes]
    for agent in {name for name, _ in said}:
        parts = [text for name, text in covered + left if name == agent]
        assert "".join(parts) == "".join(text for name, text in said if name == agent)

    assert len(models.summarised) == len(exaid.summaries)
    for block, summary in zip(models.summarised, exaid.summaries, strict=True):
        assert summary.agents == tuple(dict.fromkeys(agent for agent, _ in block))
    seqs = [seq for summary in exaid.summaries for seq in seqs_of(summary)]
    seqs += [seq for segment in exaid.buffer_agent.held() for seq in segment.seqs]
    assert sorted(seqs) == list(range(len(said))), "each piece of text has one place"


def seqs_of(summary: AgentSummary) -> list[int]:
    return [seq for first, last in summary.source_seqs for seq in range(first, last + 1)]


def assert_decisions_are_in_order(exaid: EXAID, plan: Plan) -> None:
    parked = {
        flush.flush_index
        for flush in exaid.log.flushes
        if flush.trigger_reason is FlushReason.END_OF_TRACE
    }
    judged = [index for decision in exaid.log.decisions for index in decision.covered or ()]
    to_be_judged = [i for i in range(len(exaid.log.flushes)) if i not in parked]
    if plan.coalesce:  # at the end, text that nobody waits for is summarised without a judgement
        assert judged == [index for index in to_be_judged if index in judged]
        return
    if exaid.log.decisions:
        assert judged == to_be_judged
    assert all(len(decision.covered or ()) == 1 for decision in exaid.log.decisions)


@pytest.mark.sweep
@settings(deadline=None)
@given(plans("trace", "token", "token", "flush", "finalize"), st.booleans())
@virtual_time
async def test_agents_that_wait_for_decisions(plan: Plan, finalize: bool) -> None:
    models = Models(plan.judge, plan.write)
    exaid = exaid_for(plan, models)
    said: list[Said] = []

    async def speak(agent: str, steps: Sequence[tuple[int, Action]]) -> None:
        for number, (pause, action) in enumerate(steps):
            await asyncio.sleep(pause)
            text = f"{agent}{number} it is. "
            before = len(exaid.summaries)
            match action:
                case "trace":
                    said.append((agent, text))
                    summary = await exaid.received_trace(agent, text)
                case "token":
                    said.append((agent, text))
                    summary = await exaid.on_new_token(agent, text)
                case "flush":
                    await exaid.flush_agent(agent)
                    continue
                case "finalize":
                    summary = await exaid.finalize()
            assert summary is None or summary in exaid.summaries[before:]
            if summary is not None and action != "finalize":
                assert agent in summary.agents

    async with asyncio.TaskGroup() as group:
        for agent, steps in zip("abc", plan.agents, strict=False):
            group.create_task(speak(agent, steps))
    await exaid.finalize()  # what is still in the gates
    if finalize:
        for _ in plan.write:  # one of them is no failure, or all are
            await exaid.finalize()
        assert set(plan.write) == {DOWN} or not exaid.buffer_agent.held()
    assert_nothing_is_lost(exaid, models, said)
    assert_decisions_are_in_order(exaid, plan)


@pytest.mark.sweep
@settings(deadline=None)
@given(plans("token"))
@virtual_time
async def test_agents_on_a_bus(plan: Plan) -> None:
    models = Models(plan.judge, plan.write)
    exaid = exaid_for(plan, models)
    failures: list[Exception] = []
    bus = TraceBus(now_ms, failures.append)
    bus.subscribe(exaid.on_event)
    said: list[Said] = []

    async def speak(agent: str, steps: Sequence[tuple[int, Action]]) -> None:
        turn = bus.start_turn(agent)
        for number, (pause, _) in enumerate(steps):
            await asyncio.sleep(pause)
            text = f"{agent}{number} it is. "
            said.append((agent, text))
            turn.say(text)
            if number == 3:
                turn.end()
                turn = bus.start_turn(agent)
        turn.end()

    async with asyncio.TaskGroup() as group:
        for agent, steps in zip("abc", plan.agents, strict=False):
            group.create_task(speak(agent, steps))
    await asyncio.sleep(10_000)
    assert not failures
    covered = list(chain.from_iterable(models.summarised))
    left = [(segment.agent_id, segment.text) for segment in exaid.buffer_agent.held()]
    for agent in "abc":
        parts = [text for name, text in covered + left if name == agent]
        assert "".join(parts) == "".join(text for name, text in said if name == agent)
    hashes = [text_hash(text) for _, text in covered + left]
    assert hashes == [flush.text_hash for flush in exaid.log.flushes]
    assert_decisions_are_in_order(exaid, plan)


@pytest.mark.sweep
@settings(deadline=None)
@given(plans("trace", "token", "flush"), st.integers(0, 12))
@virtual_time
async def test_closing_at_any_time_loses_sight_of_nothing(plan: Plan, seconds: int) -> None:
    models = Models(plan.judge, plan.write)
    exaid = exaid_for(plan, models)

    async def speak(agent: str, steps: Sequence[tuple[int, Action]]) -> None:
        for pause, action in steps:
            await asyncio.sleep(pause)
            match action:
                case "trace":
                    await exaid.received_trace(agent, "Four")
                case "token":
                    await exaid.on_new_token(agent, "Four")
                case _:
                    await exaid.flush_agent(agent)

    speakers = [
        asyncio.create_task(speak(agent, steps))
        for agent, steps in zip("abc", plan.agents, strict=False)
    ]
    await asyncio.sleep(3.5)
    before = asyncio.get_running_loop().time()
    await exaid.close(seconds)
    assert asyncio.get_running_loop().time() - before <= seconds
    await asyncio.gather(*speakers)  # none of them waits forever
    assert len(exaid.summaries) == len(models.summarised)
    said = sum(flush.accumulated_ctu for flush in exaid.log.flushes)
    covered = sum(len(text) for block in models.summarised for _, text in block) / len("Four")
    assert exaid.tail_loss() == pytest.approx((said - covered) / said if said else 0.0)


# Examples


@pytest.mark.parametrize("coalesce", [True, False])
@virtual_time
async def test_what_arrives_during_a_decision_is_judged_together(coalesce: bool) -> None:
    judge = model(WAIT, SHIFT)
    exaid = make_exaid(Slow(judge, lambda: 10.0), model(STABLE), coalesce=coalesce)
    texts = {"a": "Fever.", "b": "Cough.", "c": "Rash."}
    summaries = await asyncio.gather(
        *(exaid.received_trace(agent, text) for agent, text in texts.items())
    )
    if coalesce:
        assert [newest_block(request) for request in judge.requests] == [
            [("a", "Fever."), ("b", "Cough."), ("c", "Rash.")]
        ]
        assert summaries == [None, None, None]
        return
    assert [newest_block(request) for request in judge.requests] == [[s] for s in texts.items()]
    assert summaries[0] is None
    assert summaries[1] is not None
    assert summaries[1].agents == ("a", "b")
    assert summaries[2] is not None
    assert summaries[2].agents == ("c",)


@virtual_time
async def test_parked_text_keeps_its_place() -> None:
    write = model(STABLE)
    exaid = make_exaid(Slow(model(WAIT, SHIFT), lambda: 10.0), write, gate=GATE)
    async with asyncio.TaskGroup() as group:
        group.create_task(exaid.received_trace("a", "Fever."))
        await asyncio.sleep(1)
        await exaid.on_new_token("b", "Cough.")
        group.create_task(exaid.flush_agent("b"))
        await asyncio.sleep(1)
        group.create_task(exaid.received_trace("c", "Rash."))
    assert newest_block(write.requests[0]) == [("a", "Fever."), ("b", "Cough."), ("c", "Rash.")]
    assert [decision.covered for decision in exaid.log.decisions] == [(0,), (2,)]


@virtual_time
async def test_what_comes_while_the_rest_is_summarised_waits_for_its_turn() -> None:
    both = OneAtATime(Models([WAIT, SHIFT], [STABLE]), lambda: 10.0)
    exaid = make_exaid(both, both)
    await exaid.received_trace("a", "Fever.")
    first, second = await asyncio.gather(exaid.finalize(), exaid.received_trace("b", "Cough."))
    assert first is not None
    assert second is not None
    assert [first.agents, second.agents] == [("a",), ("b",)]
    assert exaid.summaries == [first, second]


@virtual_time
async def test_a_failed_summary_keeps_its_place_before_what_came_meanwhile() -> None:
    models = Models([SHIFT], [DOWN, STABLE])
    exaid = make_exaid(Slow(models, lambda: 10.0), Slow(models, lambda: 10.0))
    summaries = await asyncio.gather(
        exaid.received_trace("a", "Fever."), _later(5, exaid.received_trace("b", "Cough."))
    )
    assert summaries[0] is None
    assert summaries[1] is exaid.latest_summary()
    assert models.summarised == [[("a", "Fever."), ("b", "Cough.")]]


async def _later(seconds: float, call: Awaitable[AgentSummary | None]) -> AgentSummary | None:
    await asyncio.sleep(seconds)
    return await call
