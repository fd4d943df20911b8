"""Makes a failed call again, a finite number of times, and ends a run that can only fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError

FATAL = frozenset(
    {ErrorKind.AUTH, ErrorKind.MODEL_NOT_FOUND, ErrorKind.QUOTA, ErrorKind.REDIRECTED}
)
"""Errors that every further attempt at the same model would have too."""

_REFUSED = (ErrorKind.SETTING_REFUSED, ErrorKind.STREAM_REFUSED)
_FATAL_IN_A_ROW = 3
_FORBIDDEN = 403
_MOST_SETTINGS = 5  # that can be refused, one after the other
_SHORTEST_PAUSE = 1.0  # seconds; less is asked for by a proxy that knows of no pause
_LONGEST_PAUSE = 366 * 86_400.0  # seconds that a date is made of
_MOST_DOUBLINGS = 20  # of a pause, which reaches its cap long before

OnWait = Callable[["Wait"], None]


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause before the next attempt, for a display."""

    seconds: float
    attempt: int
    """The attempt that failed, counted from 1."""
    error: ProviderError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a call is made again."""

    max_retries: int = 5
    """Further attempts after failures. Two cases do not count and are bounded by `timeout` alone: a
    rate limit that names a pause of a second or more, and an endpoint that has replied before and
    cannot be reached now. Nor does a setting that the model does not take, of which there are
    few."""
    timeout: float = 600.0
    """Seconds of a call, its queue left out, after which no further attempt is made."""
    base: float = 0.25
    """Seconds; the n-th backoff of a call is drawn from 0 to base · 2^(n-1) (full jitter)."""
    cap: float = 60.0
    """Seconds; the longest backoff."""
    probe: float = 5.0
    """Seconds; the longest backoff while an endpoint cannot be reached, so that calls go on soon
    after it is back."""


class Retry:
    """Waits and calls again when that may help, and raises when an endpoint is out of reach.

    A model that has never replied is given up at its first fatal error (a wrong key, an unknown
    name, a used-up quota), one that has after three in a row: an endpoint can have a bad moment,
    during which the call is made again. Background calls end no run.

    The pause is the longer one of two: that which the endpoint asked for (plus up to a tenth, so
    that calls that were turned away together do not come back together), and exponential backoff
    with full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    An endpoint that asks for more than the time of a call is given up like a used-up quota.

    Args:
        inner: The model that is called.
        policy: How often and how long.
        name: The model, for a message.
        rng: Source of the jitter.
        monotonic: Clock in seconds.
        on_wait: Called with each pause before it starts.
        sleep: Awaited for each pause, in seconds.
        notes: Kind of error -> what a user should know when it ends the run.
    """

    def __init__(
        self,
        inner: ChatModel,
        policy: RetryPolicy,
        *,
        name: str,
        rng: random.Random,
        monotonic: Callable[[], float],
        on_wait: OnWait | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        notes: Mapping[ErrorKind, str] | None = None,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._name = name
        self._rng = rng
        self._monotonic = monotonic
        self._on_wait = on_wait
        self._sleep = sleep
        self._notes = notes or {}
        self._has_replied = False
        self._fatal_in_a_row = 0

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request, trying again what may pass; raises the last attempt's error.

        Raises:
            EndpointDown: No attempt could be sent, or the model can only fail.
        """
        try:
            return await self._until_it_replies(request, on_text)
        except ProviderError as error:
            if error.kind is ErrorKind.UNREACHABLE:
                raise self._down(error) from error
            raise

    async def _until_it_replies(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        started, number = self._monotonic(), 1
        queued = paused = 0.0
        failures = 0  # that count
        while True:
            waited = request.waited + paused + queued
            try:
                reply = await self._attempt(
                    replace(request, attempt=number, waited=waited), on_text
                )
                return reply if number == 1 else replace(reply, attempts=number)
            except ProviderError as error:
                if not self._is_retryable(error):
                    raise
                if error.kind in _REFUSED and number <= _MOST_SETTINGS:
                    number += 1
                    continue  # at once: the provider leaves the setting out from now on
                is_outage = self._is_an_outage(error)
                failures += not (is_outage or _is_asked_to_wait(error))
                pause = self._pause(error, number if is_outage else failures, is_outage=is_outage)
                # Time in the queue is not the endpoint's fault and does not count.
                queued += error.queued
                elapsed = self._monotonic() - started - queued + pause
                allowed = self._policy.max_retries
                if _is_too_long(error, self._policy) and not request.labels.background:
                    raise self._paused(error, pause) from error
                if failures > allowed or allowed == 0 or elapsed >= self._policy.timeout:
                    raise
                if on_text is not None:
                    on_text(None)
                if self._on_wait is not None:
                    self._on_wait(Wait(pause, number, error))
                await self._sleep(pause)
            paused += pause
            number += 1

    async def _attempt(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        try:
            reply = await self._inner.generate(request, on_text)
        except ProviderError as error:
            if error.kind in FATAL and not request.labels.background:
                self._fatal_in_a_row += 1
                if not self._has_replied or self._fatal_in_a_row >= _FATAL_IN_A_ROW:
                    raise self._down(error) from error
            raise
        self._has_replied, self._fatal_in_a_row = True, 0
        return reply

    def _down(self, error: ProviderError) -> EndpointDown:
        note = self._notes.get(error.kind)
        return EndpointDown(f"{self._name} is out of reach: {error}{f' ({note})' if note else ''}")

    def _paused(self, error: ProviderError, pause: float) -> EndpointDown:
        until = datetime.now().astimezone() + timedelta(seconds=min(pause, _LONGEST_PAUSE))
        return EndpointDown(
            f"{self._name} asks for a pause until {until:%Y-%m-%d %H:%M %Z}: {error}"
        )

    def _is_retryable(self, error: BaseException) -> bool:
        if not isinstance(error, ProviderError):
            return False
        if error.kind in FATAL and self._has_replied:
            # A 403 can be about the request (a filter in front of the endpoint). If it is about the
            # model, the third in a row ends the run, and if it was transient no call is lost.
            return error.status != _FORBIDDEN
        return error.retryable

    def _is_an_outage(self, error: ProviderError) -> bool:
        return error.kind is ErrorKind.UNREACHABLE and self._has_replied

    def _pause(self, error: ProviderError, failures: int, *, is_outage: bool) -> float:
        asked = (error.retry_after or 0.0) * (1 + 0.1 * self._rng.random())
        cap = self._policy.probe if is_outage else self._policy.cap
        ceiling = min(cap, self._policy.base * 2 ** min(max(0, failures - 1), _MOST_DOUBLINGS))
        return max(asked, self._rng.uniform(0, ceiling))


def _is_asked_to_wait(error: ProviderError) -> bool:
    return error.kind is ErrorKind.RATE_LIMIT and (error.retry_after or 0.0) >= _SHORTEST_PAUSE


def _is_too_long(error: ProviderError, policy: RetryPolicy) -> bool:
    return error.retry_after is not None and error.retry_after >= policy.timeout
