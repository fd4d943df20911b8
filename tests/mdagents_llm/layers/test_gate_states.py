"""The gate in any order of arrivals, replies, errors, cancellations and time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mdagents_llm.chat import CallLabels, ChatMessage, ChatReply, ChatRequest
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.gate import Connections, Gate
from tests.support.function_model import text_reply
from tests.support.virtual_time import VirtualTimeLoop

TEAM, BACKGROUND = "expert", "summarizer"


class Endpoint:
    """A model whose calls a test ends one by one, in any order."""

    def __init__(self) -> None:
        self.open: list[asyncio.Future[ChatReply]] = []

    async def generate(self, request: ChatRequest, on_text: object = None) -> ChatReply:
        reply: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        self.open.append(reply)
        try:
            return await reply
        finally:
            self.open.remove(reply)


class GateStates(RuleBasedStateMachine):
    """The invariants of the gate after every step, and at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.unhandled: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda loop, context: self.unhandled.append(context))
        self.endpoint = Endpoint()
        self.calls: list[asyncio.Task[Any]] = []
        self.idle: list[asyncio.Event] = []  # reservations over which nothing is sent
        self.make(4, None, None, shared=False)

    def make(
        self, limit: int, requests: float | None, tokens: float | None, *, shared: bool
    ) -> None:
        self.shared = shared
        self.connections = Connections(
            limit,
            self.loop.time,
            requests_per_minute=requests,
            tokens_per_minute=tokens,
            share_one_machine=shared,
        )
        self.gate = Gate(self.endpoint, self.connections, self.loop.time)

    def settle(self, seconds: float = 0.0) -> None:
        async def pass_time() -> None:
            await asyncio.sleep(seconds)
            for _ in range(10):
                await asyncio.sleep(0)

        self.loop.run_until_complete(pass_time())

    def begin(self, work: Any) -> None:
        self.calls.append(self.loop.create_task(work))

    def ask(self, role: str) -> Any:
        labels = CallLabels(role=role, background=role == BACKGROUND)
        request = ChatRequest((ChatMessage("user", "x" * 40),), 5, labels=labels)
        return self.gate.generate(request)

    async def reserve(self, urgency: float, *, uses_it: bool) -> None:
        async with self.connections.reserve(lambda: (urgency,)):
            if uses_it:
                await self.ask(BACKGROUND)
                return
            ends = asyncio.Event()
            self.idle.append(ends)
            try:
                await ends.wait()
            finally:
                self.idle.remove(ends)

    # -- what happens ---------------------------------------------------------------------------

    @precondition(lambda self: not self.calls)
    @rule(
        limit=st.integers(1, 6),
        requests=st.sampled_from([None, 120.0]),
        tokens=st.sampled_from([None, 2_000.0]),
        shared=st.booleans(),
    )
    def another_endpoint(
        self, limit: int, requests: float | None, tokens: float | None, shared: bool
    ) -> None:
        self.make(limit, requests, tokens, shared=shared)

    @rule(role=st.sampled_from([TEAM, TEAM, BACKGROUND]), count=st.integers(1, 4))
    def calls_arrive(self, role: str, count: int) -> None:
        for _ in range(count):
            self.begin(self.ask(role))

    @rule(urgency=st.floats(0, 9), uses_it=st.booleans())
    def a_reservation_arrives(self, urgency: float, uses_it: bool) -> None:
        self.begin(self.reserve(urgency, uses_it=uses_it))

    @rule()
    def all_that_can_run_runs(self) -> None:
        self.settle()

    @rule(seconds=st.floats(0.01, 3))
    def time_passes(self, seconds: float) -> None:
        self.settle(seconds)

    @precondition(lambda self: self.endpoint.open)
    @rule(data=st.data())
    def a_reply_comes(self, data: st.DataObject) -> None:
        self.pick(data).set_result(text_reply("done"))

    @precondition(lambda self: self.endpoint.open)
    @rule(
        data=st.data(),
        kind=st.sampled_from([ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.SERVER]),
        pause=st.sampled_from([None, 0.5]),
        count=st.integers(1, 20),
    )
    def errors_come(
        self, data: st.DataObject, kind: ErrorKind, pause: float | None, count: int
    ) -> None:
        for _ in range(count):  # many make a storm
            if self.endpoint.open:
                error = ProviderError("no", kind=kind, retry_after=pause)
                self.pick(data).set_exception(error)
                self.settle()

    @precondition(lambda self: self.idle)
    @rule()
    def a_reservation_ends_unused(self) -> None:
        self.idle[0].set()

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), count=st.integers(1, 5), at_once=st.booleans())
    def calls_are_cancelled(self, data: st.DataObject, count: int, at_once: bool) -> None:
        for _ in range(count):
            data.draw(st.sampled_from(self.calls)).cancel()
            if not at_once:
                self.settle()

    @precondition(lambda self: self.endpoint.open and self.connections.waiting)
    @rule(data=st.data(), steps=st.integers(0, 3))
    def a_reply_comes_and_waiters_are_cancelled(self, data: st.DataObject, steps: int) -> None:
        # Also at the moment when a waiter was let in and has not resumed yet.
        chosen = [call for call in self.calls if data.draw(st.booleans())]

        async def cancel() -> None:
            for _ in range(steps):
                await asyncio.sleep(0)
            for call in chosen:
                call.cancel()

        self.pick(data).set_result(text_reply("done"))
        self.loop.run_until_complete(cancel())

    def pick(self, data: st.DataObject) -> asyncio.Future[ChatReply]:
        unset = [reply for reply in self.endpoint.open if not reply.done()]
        if not unset:
            self.settle()
            return self.loop.create_future()
        return data.draw(st.sampled_from(unset))

    # -- what is promised -----------------------------------------------------------------------

    @invariant()
    def connections_are_those_that_are_used(self) -> None:
        self.settle()
        self.forget_ended_calls()
        connections = self.connections
        used = len(self.endpoint.open) + len(self.idle)
        assert connections.in_flight == used
        assert connections.in_flight <= connections.limit
        assert connections.waiting == len(self.calls) - used
        if connections.waiting and connections.in_flight < connections.allowed:
            all_background = not connections.waiting_of_team
            waits_for_the_team = self.shared and connections.in_flight and all_background
            assert waits_for_the_team or connections.pause() > 0, "somebody waits for nothing"
        assert self.unhandled == []

    def forget_ended_calls(self) -> None:
        for call in self.calls:
            if call.done() and not call.cancelled():
                assert isinstance(call.exception(), ProviderError | None)
        self.calls = [call for call in self.calls if not call.done()]

    def teardown(self) -> None:
        try:
            for _ in range(1_000):
                for reply in list(self.endpoint.open):
                    if not reply.done():
                        reply.set_result(text_reply("done"))
                for event in self.idle:
                    event.set()
                self.settle(1.0)
                self.forget_ended_calls()
                if not self.calls:
                    break
            assert self.calls == [], "a waiter was forgotten"
            assert (self.connections.in_flight, self.connections.waiting) == (0, 0)
            assert self.unhandled == []
        finally:
            self.loop.close()


GateStates.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
test_the_gate_in_all_its_states = pytest.mark.long(GateStates.TestCase)
