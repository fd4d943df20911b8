"""The calls about batches at an endpoint, each made again as long as that may help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from mdagents_llm.chat import ChatRequest
from mdagents_llm.clock import Clock, ms_of
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.layers.batch_journal import Batch
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.wire import BatchApi, Line

LONGEST_POLL = 60.0
"""Seconds between two looks at a batch, at most."""
CANCELLING = 10.0
"""Seconds for a call that is about cancelling: somebody waits for it."""
NOT_FOUND = 404
"""HTTP status of a call about a batch that the endpoint does not know."""
_FIRST_POLL = 1.0  # seconds after submission
_SLOWER = 1.5
_LOST_REPLY = frozenset(
    {ErrorKind.CONNECTION, ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.BAD_BODY}
)
"""Errors after which a batch may have been made all the same."""
_TELLING = 2  # failures in a row, after which a line says so

T = TypeVar("T")


class BatchCalls:
    """The batches of one model, by calls that outlast a bad moment of the endpoint.

    Args:
        api: The batches.
        name: The model, for a message.
        clock: For times.
        policy: How patiently a call is made again.
        sleep: Awaited for each pause, in seconds.
        say: Shows a line of progress.
        known: Ids of batches that are ours, in all runs of the process.
    """

    def __init__(
        self,
        api: BatchApi,
        *,
        name: str,
        clock: Clock,
        policy: RetryPolicy,
        sleep: Callable[[float], Awaitable[None]],
        say: Callable[[str], None],
        known: set[str],
    ) -> None:
        self._api = api
        self._name = name
        self._clock = clock
        self._policy = policy
        self._sleep = sleep
        self._say = say
        self._known = known
        self._finding = asyncio.Lock()
        self._has_replied = False

    def know(self, batch: Batch) -> None:
        """Note whose batch an id is, so that it is not taken for another's."""
        if batch.id:
            self._known.add(batch.id)

    async def submit(self, batch: Batch, requests: Mapping[str, ChatRequest]) -> None:
        """Submit requests, unless an attempt whose reply was lost has done so; set the id.

        Raises:
            ProviderError: The endpoint refuses. A `rate_limit` means that its queue is full.
        """
        may_be_there = False

        async def once() -> None:
            nonlocal may_be_there
            if may_be_there and await self._is_found(batch):
                return
            try:
                batch.id = await self._api.submit(batch.tag, requests)
            except ProviderError as error:
                may_be_there = error.kind in _LOST_REPLY
                raise
            self.know(batch)

        await self._patiently(once, queue_may_be_full=True)

    async def find(self, batch: Batch) -> bool:
        """Look for a batch whose submission had no reply; set its id if it is there.

        What was found before, and turned out to be another's, is not found again.
        """
        return await self._patiently(lambda: self._is_found(batch))

    async def _is_found(self, batch: Batch) -> bool:
        async with self._finding:  # two that are alike must not both take the same
            since = ms_of(batch.submitted_at) / 1000
            ids = await self._api.find(batch.tag, len(batch.keys), since)
            batch.id = next((one for one in ids if one not in self._known), "")
            batch.is_found = bool(batch.id)
            self.know(batch)
            return batch.is_found

    async def until_it_ends(self, batch: Batch) -> ProviderError | None:
        """Wait for the end of a batch; return why it was not worked on at all, None if it was.

        Raises:
            ProviderError: With status 404: there is no such batch.
        """
        pause, told = _FIRST_POLL, ""
        began = ms_of(batch.submitted_at) / 1000
        while True:
            state = await self._patiently(lambda: self._api.state(batch.id), is_there=True)
            if state.has_ended:
                return state.problem
            minutes = (self._clock.now().timestamp() - began) / 60
            count = "" if state.answered is None else f", {state.answered} done"
            if (said := f"{state.said}{count}") != told:
                told = said
                self._say(f"{self.called(batch)}: {said} after {minutes:.0f} min")
            await self._sleep(pause)
            pause = min(LONGEST_POLL, pause * _SLOWER)

    async def lines(self, batch: Batch) -> Mapping[str, Line]:
        """Return what became of the requests of a batch that has ended; raises likewise."""
        return await self._patiently(lambda: self._api.lines(batch.id, batch.keys), is_there=True)

    async def cancel(self, batches: Sequence[Batch]) -> list[str]:
        """Let the provider work on nothing further; return the ids of those that go on.

        One that may be another's goes on.
        """
        cancelled = await asyncio.gather(*(self._is_cancelled(batch) for batch in batches))
        return [batch.id for batch, done in zip(batches, cancelled, strict=True) if not done]

    async def _is_cancelled(self, batch: Batch) -> bool:
        if batch.is_found and not self._api.keeps_names:
            return False
        try:
            async with asyncio.timeout(CANCELLING):
                await self._api.cancel(batch.id)
        except (ProviderError, TimeoutError):
            return False
        return True

    def called(self, batch: Batch) -> str:
        """Return what people call a batch."""
        return f"batch of {len(batch.keys)} calls at {self._name}"

    async def _patiently(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        queue_may_be_full: bool = False,
        is_there: bool = False,
    ) -> T:
        """Make a call again as long as that may help.

        Args:
            call: At the endpoint.
            queue_may_be_full: Whether a rate limit that names no pause, or lasts, is for the
                caller.
            is_there: Whether the call is about a batch that the endpoint has made, so that "no such
                batch" may pass.

        Raises:
            ProviderError: It cannot help.
            EndpointDown: It did not help.
        """
        began, failures, most = self._clock.monotonic(), 0, self._policy.max_retries
        while True:
            try:
                result = await call()
            except ProviderError as error:
                failures += 1
                is_limit = error.kind is ErrorKind.RATE_LIMIT
                if queue_may_be_full and is_limit and (not error.retry_after or failures > most):
                    raise
                is_missing = is_there and error.status == NOT_FOUND and failures <= most
                if not (error.retryable or is_missing):
                    raise
                seconds = self._clock.monotonic() - began
                gives_up = not self._has_replied and not is_limit and failures > most
                if gives_up or seconds > self._policy.timeout:
                    raise EndpointDown(f"{self._name} is out of reach: {error}") from error
                if failures == _TELLING:
                    self._say(f"{self._name} says nothing of its batches ({error}); asked again")
                backoff = min(LONGEST_POLL, self._policy.base * 2 ** min(failures, 20))
                await self._sleep(backoff if error.retry_after is None else error.retry_after)
            else:
                self._has_replied = True
                return result
