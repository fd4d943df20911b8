"""A single attempt at a provider, with a timeout and a ledger row."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.clock import Clock
from mdagents_llm.errors import ErrorKind, LimitExceeded, ProviderError, StorageError
from mdagents_llm.layers.transit import in_transit
from mdagents_llm.layers.turnstile import turnstile_of
from mdagents_llm.ledger import ABORTED, CallRow, Ledger, Logged, PriceOf

ATTEMPT_TIMEOUT = 120.0
"""Default timeout of one attempt at an endpoint, in seconds."""
_LATE = 1.0
"""Seconds after which a timeout that is due has been held up, so that a reply may wait unread."""
STOPPED = 10.0
"""Seconds after which it is not a busy processor that held it up: the process was stopped (Ctrl-Z,
SIGSTOP, `docker pause`) or the machine slept."""
_BEFORE = 0.001  # seconds; of the timers that are due, the earliest goes first
_TO_READ = 5.0
"""Seconds to read what came in the meantime."""


class Attempt:
    """Layer that times out a hanging attempt, and records a row for every attempt.

    An HTTP client's own read timeout restarts with each byte, so that an endpoint that trickles
    bytes would never time out. A reply that came while this process was stopped is read.

    Args:
        inner: Model of the provider.
        ledger: Ledger for the rows.
        provider: Name of the provider, for the row.
        model: Name of the requested model, for the row.
        price: Price of the model.
        clock: Clock for the start time and the latency.
        timeout: Seconds from the start of the attempt to its last byte.
        logged: Texts to include in a row.
    """

    def __init__(
        self,
        inner: ChatModel,
        ledger: Ledger,
        *,
        provider: str,
        model: str,
        price: PriceOf,
        clock: Clock,
        timeout: float = ATTEMPT_TIMEOUT,
        logged: Logged = Logged(),
    ) -> None:
        self._inner = inner
        self._ledger = ledger
        self._row = partial(CallRow.of, provider=provider, model=model, price=price, logged=logged)
        self._clock = clock
        self._timeout = timeout

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Make one attempt and record it; the reply has its latency set."""
        started_at, started = self._clock.timestamp(), self._clock.monotonic()
        sent = in_transit(request)

        def elapsed() -> float:
            return self._clock.monotonic() - started

        def book(reply: ChatReply | None, latency: float, failure: str = "") -> None:
            row = self._row(
                request,
                reply,
                started_at=started_at,
                attempt=sent.attempt,
                waited=sent.waited,
                latency=latency,
                failure=failure,
            )
            self._ledger.add(row)

        try:
            reply = await self._in_time(request, on_text)
        except ProviderError as error:
            book(error.reply, elapsed(), error.kind.value)
            raise
        except LimitExceeded as error:
            book(error.reply, elapsed(), "" if error.reply else ABORTED)
            raise
        except BaseException:
            # A full disk must not hide the cancellation from the code that requested it.
            with contextlib.suppress(StorageError):
                book(None, elapsed(), ABORTED)
            raise
        latency = elapsed()
        if sent.on_reply is not None:
            sent.on_reply(reply)
        try:
            await turnstile_of(asyncio.get_running_loop()).enter()
        except BaseException:
            with contextlib.suppress(StorageError):
                book(reply, latency)
            raise
        book(reply, latency)
        return replace(reply, latency=latency)

    async def _in_time(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._timeout
        limit = asyncio.timeout_at(due)
        was_stopped = False

        def look() -> None:
            nonlocal was_stopped
            late = loop.time() - due
            was_stopped = late > STOPPED
            if late > _LATE:
                limit.reschedule(loop.time() + _TO_READ)

        try:
            async with limit:
                looking = loop.call_at(due - _BEFORE, look)
                try:
                    return await self._inner.generate(request, on_text)
                finally:
                    looking.cancel()
        except TimeoutError:
            message = f"no complete reply within {self._timeout:g} s"
            error = ProviderError(message, kind=ErrorKind.TIMEOUT)
            error.stopped = loop.time() - due if was_stopped else 0.0
            raise error from None
        except ProviderError as error:
            error.stopped = loop.time() - due if was_stopped else 0.0
            raise
