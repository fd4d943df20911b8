"""Retries failed calls a finite number of times, and ends a run that can only fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.layers.transit import in_transit

FATAL = frozenset(
    {
        ErrorKind.AUTH,
        ErrorKind.MODEL_NOT_FOUND,
        ErrorKind.QUOTA,
        ErrorKind.REDIRECTED,
        ErrorKind.PROXY,
        ErrorKind.IMAGES_REFUSED,
    }
)
"""Errors that every further attempt at the same model would repeat."""

_REFUSED = (ErrorKind.SETTING_REFUSED, ErrorKind.STREAM_REFUSED)
_BUSY = (ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED)
_FATAL_IN_A_ROW = 3
_FORBIDDEN = 403
_MOST_SETTINGS = 5  # settings that can be refused, one after the other
_SHORTEST_PAUSE = 1.0  # seconds; proxies that know no real pause ask for less
_LONGEST_PAUSE = 366 * 86_400.0  # maximum seconds that are converted to a date
_MOST_DOUBLINGS = 20  # doublings of a backoff, which reaches its cap long before

OnWait = Callable[["Wait"], None]


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause before the next attempt, for display."""

    seconds: float
    attempt: int
    """Number of the failed attempt, counted from 1."""
    error: ProviderError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number, backoff and total time of the retries of a call."""

    max_retries: int = 5
    """Maximum number of retries. Two cases do not count and are bounded by `timeout` alone: a rate
    limit or an overload (see `Retry` for exceptions), and an endpoint that has replied before but
    is unreachable now. A refused setting does not count either; there are only a few. Nor does an
    attempt during which this process was stopped."""
    timeout: float = 600.0
    """Seconds of a call after which there are no more retries, excluding its time in the queue and
    while this process was stopped."""
    base: float = 0.25
    """Base of the backoff in seconds: the n-th backoff of a call is drawn from 0 to base · 2^(n-1)
    (full jitter)."""
    cap: float = 60.0
    """Maximum backoff in seconds."""
    probe: float = 5.0
    """Maximum backoff in seconds while an endpoint is unreachable, so that calls resume soon after
    it is back."""


class Retry:
    """Layer that retries failed calls with backoff, and raises when an endpoint is out of reach.

    A model that has never replied is given up at its first fatal error (a wrong key, an unknown
    name, an exhausted quota); one that has replied, after three in a row: an endpoint can fail for
    a moment, during which the call is retried. A model that refuses a picture is given up at once,
    unless it has replied to one before. Background calls end no run.

    The pause is the longer of two: the one that the endpoint asked for (plus up to a tenth, so that
    calls rejected together do not come back together), and exponential backoff with full jitter
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). An endpoint that
    asks for a pause longer than the timeout of a call is given up, as with an exhausted quota.

    A rate limit or an overload that names no pause of a second or more counts toward `max_retries`
    only after a call has waited its whole time in vain, until the next reply: otherwise a quota
    that looks like a limit would hold up each question of a run by that time. Of background calls,
    which hold up the end of a run, and of calls in batches, each of which takes hours, only rate
    limits that name a pause of a second or more do not count.

    Args:
        inner: Model to call.
        policy: Retry policy.
        name: Name of the model, for messages.
        rng: Random number generator for the jitter.
        monotonic: Clock in seconds.
        on_wait: Function called with each pause before it starts.
        sleep: Function awaited for each pause, in seconds.
        notes: Kind of error -> hint for the user when it ends the run.
        replied: Names of models that have replied, also to other processes; None: none has.
        in_batches: Whether calls are made in batches.
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
        replied: set[str] | None = None,
        in_batches: bool = False,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._name = name
        self._rng = rng
        self._monotonic = monotonic
        self._on_wait = on_wait
        self._sleep = sleep
        self._notes = notes or {}
        self._replied = set[str]() if replied is None else replied
        self._in_batches = in_batches
        self._fatal_in_a_row = 0
        self._has_seen = False  # a picture
        self._replies = 0
        self._in_vain = -1  # replies when a call was given up that had waited for another one

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request, retrying transient errors; raise the error of the last attempt.

        Raises:
            ProviderError: The call failed and was not, or no longer, retried.
            EndpointDown: No attempt could be sent, or the model can only fail.
        """
        try:
            return await self._until_it_replies(request, on_text)
        except ProviderError as error:
            if error.kind is ErrorKind.UNREACHABLE:
                raise self._down(error) from error
            raise

    async def _until_it_replies(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        first = in_transit(request)
        started, number, before = self._monotonic(), 1, first.waited
        queued = paused = stopped = 0.0
        failures = refusals = 0  # failures: only those that count toward `max_retries`
        unasked = 0  # errors after which only the backoff says how long to wait
        replies = self._replies
        while True:
            waited = before + paused + queued
            try:
                sent = in_transit(first, attempt=number, waited=waited)
                reply = await self._attempt(sent, on_text)
                return reply if number == 1 else replace(reply, attempts=number)
            except ProviderError as error:
                if not self._is_retryable(error):
                    raise
                refusals += error.kind in _REFUSED
                if error.kind in _REFUSED and refusals <= _MOST_SETTINGS:
                    number += 1
                    continue  # without a pause: the provider omits the setting from now on
                is_outage = self._is_an_outage(error)
                failures += not (is_outage or self._is_to_wait(error, request) or error.stopped)
                unasked += not (is_outage or _is_asked_to_wait(error) or error.stopped)
                pause = self._pause(error, number if is_outage else unasked, is_outage=is_outage)
                # Time in the queue is not the endpoint's fault and does not count.
                queued += error.queued
                stopped += error.stopped
                now = self._monotonic()
                elapsed = now - started - queued - stopped + pause
                allowed = self._policy.max_retries
                if _is_too_long(error, self._policy) and not request.labels.background:
                    raise self._paused(error, pause) from error
                if elapsed >= self._policy.timeout and error.kind in _BUSY:
                    self._in_vain = max(self._in_vain, replies)
                if failures > allowed or allowed == 0 or elapsed >= self._policy.timeout:
                    raise
                if on_text is not None:
                    on_text(None)
                if self._on_wait is not None:
                    self._on_wait(Wait(pause, number, error))
                await self._sleep(pause)
                stopped += max(0.0, self._monotonic() - now - pause)
            paused += pause
            number += 1

    async def _attempt(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        try:
            reply = await self._inner.generate(request, on_text)
        except ProviderError as error:
            if error.kind in FATAL and not request.labels.background:
                self._fatal_in_a_row += 1
                is_blind = error.kind is ErrorKind.IMAGES_REFUSED and not self._has_seen
                is_new = is_blind or not self._has_replied
                if is_new or self._fatal_in_a_row >= _FATAL_IN_A_ROW:
                    raise self._down(error) from error
            raise
        self._replies += 1
        self._replied.add(self._name)
        self._has_seen |= any(message.pictures for message in request.messages)
        self._fatal_in_a_row = 0
        return reply

    @property
    def _has_replied(self) -> bool:
        return self._name in self._replied

    def _down(self, error: ProviderError) -> EndpointDown:
        if error.kind is ErrorKind.IMAGES_REFUSED:
            return EndpointDown(
                f"{self._name} takes no pictures: {error}; choose a model that takes them, or ask "
                "without them by --images drop"
            )
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
            # A 403 can concern the request (a filter in front of the endpoint). If it concerns the
            # model, the third in a row ends the run; if it was transient, no call is lost. A proxy
            # knows the host alone.
            return error.kind is ErrorKind.PROXY or error.status != _FORBIDDEN
        return error.retryable

    def _is_an_outage(self, error: ProviderError) -> bool:
        return error.kind is ErrorKind.UNREACHABLE and self._has_replied

    def _is_to_wait(self, error: ProviderError, request: ChatRequest) -> bool:
        """Return whether an error is a limit or an overload that does not count."""
        if request.labels.background or self._in_batches:
            return error.kind is ErrorKind.RATE_LIMIT and _is_asked_to_wait(error)
        is_in_vain = self._in_vain == self._replies
        return error.kind in _BUSY and (_is_asked_to_wait(error) or not is_in_vain)

    def _pause(self, error: ProviderError, failures: int, *, is_outage: bool) -> float:
        asked = (error.retry_after or 0.0) * (1 + 0.1 * self._rng.random())
        cap = self._policy.probe if is_outage else self._policy.cap
        ceiling = min(cap, self._policy.base * 2 ** min(max(0, failures - 1), _MOST_DOUBLINGS))
        return max(asked, self._rng.uniform(0, ceiling))


def _is_asked_to_wait(error: ProviderError) -> bool:
    return error.kind in _BUSY and (error.retry_after or 0.0) >= _SHORTEST_PAUSE


def _is_too_long(error: ProviderError, policy: RetryPolicy) -> bool:
    return error.retry_after is not None and error.retry_after >= policy.timeout
