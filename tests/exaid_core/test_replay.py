"""A recorded run of EXAID, repeated: it ends with the same summaries, whatever had gone wrong."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exaid_core.exaid import EXAID
from exaid_core.policy import TriggerPolicy
from exaid_core.recording import Recording, read_progress, read_recording
from exaid_core.token_gate.token_gate import GateProfile
from exaid_core.trace.events import TraceEvent
from exaid_core.trace.files import RecordError, write_gz
from exaid_core.trace.traces import read_trace, write_trace
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from tests.exaid_core.models import (
    DOWN,
    SHIFT,
    STABLE,
    TOO_LONG,
    WAIT,
    Outcome,
    make_exaid,
    reply,
    watched_bus,
)
from tests.support.virtual_time import virtual_time

GATE = GateProfile(min_words=4, max_words=6, silence_timer=1.0, max_wait_timeout=4.0)


class Moody:
    """A model with a room for prompts, which fails by chance.

    Args:
        outcomes: In turn.
        room: Characters of the longest prompt that it takes.
    """

    def __init__(self, outcomes: Iterator[Outcome], room: int) -> None:
        self._outcomes = outcomes
        self._room = room

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return or raise the next outcome after a second; refuse a prompt that is too long."""
        if sum(len(message.content) for message in request.messages) > self._room:
            raise TOO_LONG
        outcome = next(self._outcomes)
        await asyncio.sleep(1)
        if isinstance(outcome, Exception):
            raise outcome
        return reply(outcome)


def moody(seed: int, failures: float, room: int, *outcomes: Outcome) -> ChatModel:
    """A model that says one of the outcomes, or fails with that probability."""
    rng = random.Random(seed)

    def draw() -> Iterator[Outcome]:
        while True:
            yield DOWN if rng.random() < failures else rng.choice(outcomes)

    return Moody(draw(), room)


@contextmanager
def files(exaid: EXAID, heard: Sequence[TraceEvent]) -> Iterator[tuple[Path, Path]]:
    """The trace and the log of an EXAID."""
    run: dict[str, Any] = {"created_at": "2025-12-24T22:26:50Z", "mas_run_id": "mas_1"}
    with tempfile.TemporaryDirectory() as folder:
        trace_path, log_path = Path(folder) / "trace.gz", Path(folder) / "log.gz"
        write_trace(trace_path, heard, case_id="case-live", mac_commit="abc", model="m", **run)
        write_gz(log_path, exaid.log.lines(eval_run_id="eval-1", **run))
        yield trace_path, log_path


def recorded(exaid: EXAID, heard: Sequence[TraceEvent]) -> Recording:
    """The run of an EXAID by way of its files."""
    with files(exaid, heard) as paths:
        return read_recording(*paths)


@pytest.mark.sweep
@pytest.mark.parametrize("policy", TriggerPolicy)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    failures=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    room=st.sampled_from([2_500, 4_000, 100_000]),
    pauses=st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=1, max_size=12),
    wait=st.sampled_from([0.0, 1.5, 2.5, 60.0]),
)
@virtual_time
async def test_a_run_is_repeated_as_it_was(
    policy: TriggerPolicy, seed: int, failures: float, room: int, pauses: list[float], wait: float
) -> None:
    heard: list[TraceEvent] = []
    common: dict[str, Any] = {"gate": GATE, "policy": policy, "max_buffer_ctu": 60, "chunk_ctu": 9}

    def models() -> tuple[ChatModel, ChatModel]:
        judge = moody(seed, failures, 100_000, WAIT, SHIFT)
        return judge, moody(seed + 1, failures, room, STABLE)

    live = make_exaid(*models(), **common, linger=0.5, first_after=2.0, behind_after=6.0)
    bus = watched_bus(live)
    bus.subscribe(heard.append)
    for number, pause in enumerate(pauses):
        turn = bus.start_turn(f"expert-{number % 3}")
        turn.say(f"It is fever of 39.{number} degrees. " * (1 + 7 * number))
        if number == 5:
            turn.say("He is in cardiac arrest.")
        turn.end()
        await asyncio.sleep(pause)
    with suppress(TimeoutError):
        await live.close(wait)

    again = make_exaid(*models(), **common)
    await again.replay(recorded(live, heard))
    assert again.summaries == live.summaries
    assert [d.decision for d in again.log.decisions] == [d.decision for d in live.log.decisions]
    assert [d.trigger for d in again.log.decisions] == [d.trigger for d in live.log.decisions]
    assert [s.schema_ok for s in again.log.summaries] == [s.schema_ok for s in live.log.summaries]
    assert abs(again.tail_loss() - live.tail_loss()) < 0.01


@pytest.mark.sweep
@pytest.mark.parametrize("policy", TriggerPolicy)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    failures=st.sampled_from([0.0, 0.3, 1.0]),
    room=st.sampled_from([2_500, 100_000]),
    pauses=st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=1, max_size=12),
    after_decision=st.booleans(),
)
@virtual_time
async def test_a_case_is_resumed_without_a_call_that_was_paid_for(
    policy: TriggerPolicy,
    seed: int,
    failures: float,
    room: int,
    pauses: list[float],
    after_decision: bool,
) -> None:
    heard: list[TraceEvent] = []
    common: dict[str, Any] = {"gate": GATE, "policy": policy, "max_buffer_ctu": 60, "chunk_ctu": 9}
    judge = moody(seed, failures, 100_000, WAIT, SHIFT)
    live = make_exaid(judge, moody(seed + 1, failures, room, STABLE), **common, linger=0.5)
    bus = watched_bus(live)
    bus.subscribe(heard.append)
    for number, pause in enumerate(pauses):
        turn = bus.start_turn(f"expert-{number % 3}")
        turn.say(f"It is fever of 39.{number} degrees. " * (1 + 7 * number))
        turn.end()
        await asyncio.sleep(pause)
    await live.stop(after_decision=after_decision)

    with files(live, heard) as (trace_path, log_path):
        trace = read_trace(trace_path)
        progress = read_progress(trace, log_path)
    shouted = [event._replace(text=event.text.upper()) for event in heard]
    with files(live, shouted) as (trace_path, log_path):
        another = read_trace(trace_path)
        with pytest.raises(RecordError, match="not of the text"):
            read_progress(another, log_path)
    reliable = moody(seed + 2, 0.0, 100_000, STABLE)
    again = make_exaid(moody(seed, 0.0, 100_000, WAIT), reliable, **common)
    await again.take_trace(trace.events, progress)

    kept = len(live.summaries)
    assert again.summaries[:kept] == live.summaries
    assert again.tail_loss() == 0
    assert again.alerts == live.alerts
    said = {
        seq for event in again.log.summaries if event.schema_ok for seq in event.source_seqs or ()
    }
    assert said == {event.seq for event in heard if event.text}
    whole = recorded(again, heard)
    repeated = make_exaid(moody(seed, 0.0, 100_000, WAIT), reliable, **common)
    if all(event.schema_ok for event in again.log.summaries):
        await repeated.replay(whole)
        assert len(repeated.summaries) == len(again.summaries)
