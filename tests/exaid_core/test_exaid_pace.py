"""When EXAID makes its calls: with a team on the same connections, and at the end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from exaid_core import worker
from exaid_core.exaid import EXAID
from exaid_core.policy import TriggerPolicy
from exaid_core.recording import read_recording
from exaid_core.token_gate.token_gate import GateProfile
from exaid_core.tokenizer import count_words
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.events import TraceEvent
from exaid_core.trace.files import write_gz
from exaid_core.trace.traces import write_trace
from mdagents_llm.chat import ChatReply, ChatRequest, OnText
from mdagents_llm.config import LLMRole
from mdagents_llm.layers.gate import Urgency
from tests.exaid_core.models import (
    DOWN,
    SHIFT,
    STABLE,
    WAIT,
    Slow,
    make_exaid,
    model,
    newest_block,
    watched_bus,
)
from tests.support.virtual_time import now_ms, virtual_time

WORDS = GateProfile(min_words=4, max_words=6, silence_timer=1.0, max_wait_timeout=4.0)


@virtual_time
async def test_the_first_summary_is_begun_soon_and_without_a_judgement() -> None:
    judge = model(WAIT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS, linger=0.5, first_after=4.0)
    bus = watched_bus(exaid)
    bus.start_turn("router").say("It is fever.")
    await asyncio.sleep(3.9)
    assert exaid.summaries == []
    await asyncio.sleep(0.2)
    assert len(exaid.summaries) == 1
    assert judge.requests == []
    assert [decision.trigger for decision in exaid.log.decisions] == ["first_text"]
    assert exaid.log.decisions[0].llm_usage.prompt_ctu == 0
    bus.start_turn("doctor").say("It is fever and rash.")
    await asyncio.sleep(5)
    assert len(judge.requests) == 1, "what comes later is judged"


@virtual_time
async def test_enough_words_need_not_wait_for_the_first_summary() -> None:
    exaid = make_exaid(model(WAIT), model(STABLE), gate=WORDS, linger=0.5, first_after=4.0)
    bus = watched_bus(exaid)
    bus.start_turn("doctor").say(" ".join(["fever"] * WORDS.min_words) + ".")
    await asyncio.sleep(0.1)
    assert len(exaid.summaries) == 1


class OneRoom:
    """Room for one call at a time, handed out by a test."""

    def __init__(self) -> None:
        self.asked: list[Urgency] = []
        self.roles: list[LLMRole] = []
        self.free = asyncio.Event()

    def __call__(self, role: LLMRole, urgency: Urgency) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def room() -> AsyncIterator[None]:
            self.asked.append(urgency)
            self.roles.append(role)
            await self.free.wait()
            yield

        return room()


@virtual_time
async def test_a_call_is_made_up_when_there_is_room_for_it() -> None:
    room, write = OneRoom(), model(STABLE)
    exaid = make_exaid(model(WAIT), write, gate=WORDS, linger=0.5, first_after=1.0, room=room)
    bus = watched_bus(exaid)
    for seconds in range(3):
        await asyncio.sleep(2)
        bus.start_turn("doctor").say(f"It is fever since day {seconds}.")
    assert exaid.summaries == []
    room.free.set()
    await asyncio.sleep(0.1)
    (summary,) = exaid.summaries
    assert len(newest_block(write.requests[0])) == 3, "all that was said by then"
    assert summary.source_seqs
    assert room.roles == [LLMRole.SUMMARIZER]
    bus.start_turn("doctor").say("It is fever and rash.")
    await asyncio.sleep(1)
    await exaid.finalize()
    assert room.roles == [LLMRole.SUMMARIZER, LLMRole.BUFFER_AGENT, LLMRole.SUMMARIZER]


@virtual_time
async def test_text_that_has_waited_long_is_summarised_without_a_judgement() -> None:
    room, judge = OneRoom(), model(SHIFT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS, behind_after=6.0, room=room)
    bus = watched_bus(exaid)
    bus.start_turn("doctor").say("It is fever and cough.")
    await asyncio.sleep(5.9)
    room.free.set()
    await asyncio.sleep(0.05)
    assert len(judge.requests) == 1
    room.free.clear()
    bus.start_turn("doctor").say("It is fever and rash.")
    await asyncio.sleep(6.1)
    room.free.set()
    await asyncio.sleep(0.05)
    assert len(judge.requests) == 1
    assert exaid.log.decisions[-1].trigger == "behind"
    assert len(exaid.summaries) == 2


@virtual_time
async def test_alarms_go_first_then_first_summaries_then_what_waits_longest() -> None:
    room = OneRoom()
    exaids = {}
    room.free.set()
    for name in ("old", "new", "alarm", "first"):
        exaids[name] = make_exaid(model(SHIFT), model(STABLE), gate=WORDS, room=room)
        if name != "first":
            await exaids[name].received_trace("doctor", "Fever.")
    room.free.clear()
    room.asked.clear()
    for name in ("old", "new", "alarm", "first"):
        await asyncio.sleep(1)
        text = "He is in cardiac arrest." if name == "alarm" else "It is fever and cough."
        watched_bus(exaids[name]).start_turn("doctor").say(text)
    await asyncio.sleep(0.1)
    urgencies = dict(zip(exaids, (urgency() for urgency in room.asked), strict=True))
    assert sorted(urgencies, key=urgencies.__getitem__) == ["alarm", "first", "old", "new"]
    room.free.set()
    await asyncio.sleep(1)


@virtual_time
async def test_at_the_end_what_waits_is_summarised_without_a_judgement() -> None:
    room, judge = OneRoom(), model(WAIT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS, linger=0.5, room=room)
    bus = watched_bus(exaid)
    for word in ("fever", "cough", "rash"):
        bus.start_turn("doctor").say(f"It is {word} and pain.")
        await asyncio.sleep(0.7)
    closing = asyncio.ensure_future(exaid.close())
    await asyncio.sleep(0.1)
    room.free.set()
    await closing
    assert judge.requests == []
    assert len(exaid.summaries) == 1
    assert exaid.tail_loss() == 0


@virtual_time
async def test_a_case_that_is_over_is_summarised_from_its_events() -> None:
    heard: list[TraceEvent] = []
    bus = TraceBus(now_ms)
    bus.subscribe(heard.append)
    for number in range(6):
        turn = bus.start_turn(f"expert-{number}")
        for word in f"Fever of 39.{number} since yesterday, and a cough that does not end.".split():
            turn.say(word + " ")
            await asyncio.sleep(0.3)
        turn.end()
    judge, write = model(SHIFT), model(STABLE)
    exaid = make_exaid(judge, write, gate=WORDS, max_buffer_ctu=20)
    await exaid.take_trace(heard)
    assert judge.requests == []
    assert exaid.tail_loss() == 0
    assert {agent for s in exaid.summaries for agent in s.agents} == {
        f"expert-{number}" for number in range(6)
    }
    assert 2 <= len(exaid.summaries) <= 4, "no more than the size of a prompt asks for"
    assert {decision.trigger for decision in exaid.log.decisions} == {"behind"}


def share_not_covered(exaid: EXAID) -> float:
    """The share of the logged text that is in no summary, by the sources of the summaries."""
    covered = {
        seq
        for summary in exaid.summaries
        for first, last in summary.source_seqs
        for seq in range(first, last + 1)
    }
    flushes = exaid.log.flushes
    lost = sum(f.accumulated_ctu for f in flushes if f.start_seq not in covered)
    return lost / sum(f.accumulated_ctu for f in flushes) if flushes else 0.0


@pytest.mark.sweep
@virtual_time
async def test_stopped_at_any_moment_nothing_is_left_at_work() -> None:
    for hundredths in range(0, 700, 7):
        room = OneRoom()
        slow = Slow(model(SHIFT), lambda: 0.7)
        write = Slow(model(STABLE), lambda: 0.9)
        exaid = make_exaid(slow, write, gate=WORDS, linger=0.5, first_after=1.0, room=room)
        bus = watched_bus(exaid)

        async def speak(bus: TraceBus = bus, room: OneRoom = room) -> None:
            for number in range(5):
                bus.start_turn("doctor").say(f"It is fever of 39.{number} degrees.")
                await asyncio.sleep(1)
                if number == 2:
                    room.free.set()

        speaking = asyncio.ensure_future(speak())
        await asyncio.sleep(hundredths / 100)
        closing = asyncio.ensure_future(exaid.close())
        await asyncio.sleep(0.3)
        closing.cancel()
        await asyncio.wait([closing])
        speaking.cancel()
        await asyncio.wait([speaking])
        assert asyncio.all_tasks() == {asyncio.current_task()}, hundredths
        assert exaid.tail_loss() == share_not_covered(exaid), hundredths


@virtual_time
async def test_what_is_left_of_a_trace_counts_as_not_covered() -> None:
    heard: list[TraceEvent] = []
    bus = TraceBus(now_ms)
    bus.subscribe(heard.append)
    for number in range(9):
        turn = bus.start_turn(f"expert-{number}")
        turn.say("He is in cardiac arrest." if number == 8 else "It is fever and cough, day nine.")
        turn.end()
    exaid = make_exaid(model(SHIFT), Slow(model(STABLE), lambda: 9.0), gate=WORDS, max_buffer_ctu=9)
    taking = asyncio.ensure_future(exaid.take_trace(heard))
    await asyncio.sleep(1)
    taking.cancel()
    await asyncio.wait([taking])
    assert (exaid.tail_loss(), exaid.missed_alerts(), exaid.alerts) == (1.0, 1, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("policy", TriggerPolicy)
@virtual_time
async def test_a_replay_cut_short_at_any_moment_counts_what_it_left(
    tmp_path: Path, policy: TriggerPolicy
) -> None:
    heard: list[TraceEvent] = []
    live = make_exaid(model(WAIT, SHIFT), model(STABLE), gate=WORDS, policy=policy, chunk_ctu=9)
    bus = watched_bus(live)
    bus.subscribe(heard.append)
    for number in range(6):
        turn = bus.start_turn(f"expert-{number}")
        turn.say(f"It is fever of 39.{number} degrees.")
        turn.end()
        await asyncio.sleep(1)
    await live.close()
    run: dict[str, Any] = {"created_at": "2025-12-24T22:26:50Z", "mas_run_id": "mas_1"}
    trace_path, log_path = tmp_path / "trace.gz", tmp_path / "log.gz"
    write_trace(trace_path, heard, case_id="case-live", mac_commit="abc", model="m", **run)
    write_gz(log_path, live.log.lines(eval_run_id="eval-1", **run))
    recording = read_recording(trace_path, log_path)
    calls = len(live.log.decisions) + len(live.log.summaries)
    for tenths in range(0, 10 * calls + 10, 3):
        judge = Slow(model(WAIT, SHIFT), lambda: 1.0)
        exaid = make_exaid(judge, Slow(model(STABLE), lambda: 1.0), policy=policy)
        with suppress(TimeoutError):
            await asyncio.wait_for(exaid.replay(recording), tenths / 10)
        assert exaid.tail_loss() == share_not_covered(exaid), tenths
    assert exaid.summaries == live.summaries


@virtual_time
async def test_one_who_waits_is_released_even_if_stopping_is_interrupted() -> None:
    class Tough:
        """A model that needs a while to stop."""

        async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(5)
            raise DOWN

    exaid = make_exaid(Tough(), model(STABLE))
    waiting = [asyncio.ensure_future(exaid.received_trace("a", text)) for text in ("One.", "Two.")]
    await asyncio.sleep(1)
    waiting.append(asyncio.ensure_future(exaid.received_trace("a", "Three.")))
    await asyncio.sleep(1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(exaid.stop(), 1)
    assert await asyncio.gather(*waiting) == [None] * 3
    assert exaid.tail_loss() == 1.0


@virtual_time
async def test_stopping_begins_no_call() -> None:
    room, judge, write = OneRoom(), model(WAIT), model(STABLE)
    exaid = make_exaid(judge, write, gate=WORDS, room=room)
    watched_bus(exaid).start_turn("doctor").say("It is fever and cough.")
    await asyncio.sleep(0.1)
    room.free.set()
    bus = watched_bus(exaid)
    for agent_id in ("nurse", "surgeon"):
        bus.start_turn(agent_id).say("And pain")  # which is still in the gate
    await exaid.stop()
    await exaid.flush_agent("nurse")
    await asyncio.sleep(10)
    assert judge.requests == write.requests == []
    assert exaid.tail_loss() == 1.0


@virtual_time
@pytest.mark.parametrize("wait", ["for room", "for the judge"])
async def test_a_case_that_was_stopped_is_freed_at_once(wait: str) -> None:
    """A run that is behind suspends cases by the thousand."""

    @asynccontextmanager
    async def full(*_: object) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    def workers() -> list[worker.Worker]:
        return [one for one in gc.get_objects() if isinstance(one, worker.Worker)]

    others = workers()  # of tests whose errors are constants with a traceback
    room = full if wait == "for room" else None
    exaid = make_exaid(Slow(model(WAIT), lambda: 60.0), model(STABLE), gate=WORDS, room=room)
    watched_bus(exaid).start_turn("doctor").say("It is fever and cough.")
    await asyncio.sleep(1)
    assert len(workers()) == len(others) + 1
    gc.disable()
    try:
        await exaid.stop()
        await asyncio.sleep(1)
        del exaid
        assert len(workers()) == len(others)
    finally:
        gc.enable()


@virtual_time
async def test_a_summarizer_that_fails_at_first_is_not_sent_all_text_again_each_time() -> None:
    judge, write = model(WAIT), model(DOWN)
    exaid = make_exaid(judge, write, gate=WORDS, linger=0.5, first_after=1.0)
    bus = watched_bus(exaid)
    for day in range(8):
        bus.start_turn("doctor").say(f"It is fever since day {day}.")
        await asyncio.sleep(2)
    assert len(write.requests) == 1
    assert len(judge.requests) == 7
    await exaid.stop()


@virtual_time
async def test_text_that_waits_for_the_first_summary_is_not_counted_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []

    def counting(text: str) -> int:
        counted.append(text)
        return count_words(text)

    monkeypatch.setattr(worker, "count_words", counting)
    write = Slow(model(STABLE), lambda: 60.0)
    exaid = make_exaid(model(WAIT), write, gate=WORDS, linger=0.5, first_after=1.0)
    turn = watched_bus(exaid).start_turn("doctor")
    for _ in range(500):
        turn.say("病人有过敏性休克，答案是C。")
        await asyncio.sleep(0.01)
    assert 0 < len(counted) < 1_000
    await exaid.stop()
