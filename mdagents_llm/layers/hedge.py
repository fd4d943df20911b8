"""Hedged requests: sends a second attempt alongside a slow one, and takes the first reply.

`Hedge` is outside the gate, so that the second attempt waits for its own connection and counts
against every limit like any other. But time in the gate's queue must not trigger it: when a queue
is long, a second attempt only makes it longer. So the gate reports when an attempt gets its
connection (`Transit.on_sent`), and the delay counts from there. (If `Hedge` were inside the
gate, a failed first attempt would keep its connection while the second waits for one: with every
connection held like that, none would ever become free.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import ProviderError
from mdagents_llm.layers.transit import in_transit


class Hedge:
    """Layer that makes a second attempt when the first has sent nothing for a while.

    The technique is hedged requests (Dean and Barroso, "The Tail at Scale", CACM 56(2), 2013): it
    overtakes the few calls that hang, at the cost of paying for their tokens twice. The usage of
    the cancelled attempt is unknown; its row in the ledger is `aborted`.

    - The attempt with the first text or the first reply wins; the other is cancelled at that
      moment, and none of its text reaches the caller.
    - If one fails, the other continues if it was already sent. An unsent second attempt is
      cancelled: `Retry` decides what to do after a failure.
    - If both fail, the error of the first is raised, with the longer of the two pauses.

    Args:
        inner: Model with its gate. Background calls are not hedged.
        seconds: Silent seconds on a connection after which the second attempt is made.
        sleep: Function awaited for the delay, in seconds.
    """

    def __init__(
        self,
        inner: ChatModel,
        seconds: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._seconds = seconds
        self._sleep = sleep

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request by the faster of two attempts; both have ended when this returns."""
        if request.labels.background:
            return await self._inner.generate(request, on_text)
        race = _Race(self._inner, request, on_text)
        try:
            async with asyncio.TaskGroup() as group:
                race.first.task = group.create_task(race.run(race.first))
                race.second.task = group.create_task(self._second_attempt(race))
        except BaseExceptionGroup as errors:
            error = errors.exceptions[0]
            raise error from error.__cause__
        return race.outcome()

    async def _second_attempt(self, race: _Race) -> None:
        await race.first.started.wait()
        await self._sleep(self._seconds)
        await race.run(race.second)


class _Attempt:
    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.reply: ChatReply | None = None
        self.error: ProviderError | None = None

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class _Race:
    """Two attempts at one request; the text and reply of at most one reach the caller."""

    def __init__(self, model: ChatModel, request: ChatRequest, on_text: OnText | None) -> None:
        self.first = _Attempt()
        self.second = _Attempt()
        self._model = model
        self._request = request
        self._on_text = on_text
        self._leader: _Attempt | None = None

    async def run(self, attempt: _Attempt) -> None:
        request = in_transit(self._request, on_sent=attempt.started.set)
        try:
            reply = await self._model.generate(request, self._on_text_of(attempt))
            if self._leads(attempt):
                attempt.reply = reply
        except ProviderError as error:
            attempt.error = error
        finally:
            # Cancel here, not where both are awaited: the other attempt may be about to get the
            # connection that this one gave back.
            other = self._other(attempt)
            if not other.started.is_set():
                other.cancel()

    def outcome(self) -> ChatReply:
        for attempt in (self.first, self.second):
            if attempt.reply is not None:
                return attempt.reply
        errors = [a.error for a in (self.first, self.second) if a.error is not None]
        pauses = [error.retry_after for error in errors if error.retry_after is not None]
        errors[0].retry_after = max(pauses, default=None)
        raise errors[0]

    def _on_text_of(self, attempt: _Attempt) -> OnText | None:
        on_text = self._on_text
        if on_text is None:
            return None

        def deliver(text: str | None) -> None:
            if self._leads(attempt):
                on_text(text)

        return deliver

    def _leads(self, attempt: _Attempt) -> bool:
        if self._leader is None:
            self._leader = attempt
            self._other(attempt).cancel()
        return self._leader is attempt

    def _other(self, attempt: _Attempt) -> _Attempt:
        return self.second if attempt is self.first else self.first
